"""What a workspace may do, and what it may not."""

from __future__ import annotations

import docker
import pytest
from support.sandbox import opened, output, run

from pytest_saber.model.task import FileSpec, Limits, SetupStep
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.workspace import DockerWorkspace

pytestmark = pytest.mark.docker


def test_the_user_has_no_privileges_and_cannot_get_any(sandbox: DockerSandbox) -> None:
    setup = (SetupStep("cp /bin/bash /srv/rootbash && chmod 4755 /srv/rootbash"),)
    with opened(sandbox, setup=setup) as workspace:
        status = dict(line.split(":\t") for line in output(workspace, "cat /proc/self/status").splitlines() if ":\t" in line)
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0000000000000000"}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert output(workspace, "/srv/rootbash -p -c 'id -u'") == "1000\n"
        assert run(workspace, "sudo -n true").exit_code == 1
        for command in ("chown root x", "mount -t tmpfs x /mnt", "mknod /tmp/d b 8 0", "unshare -r true", "chroot / true"):
            assert run(workspace, f"touch x; {command}").exit_code != 0, command


def test_there_is_no_network_and_no_engine(workspace: DockerWorkspace) -> None:
    assert output(workspace, "ls /sys/class/net") == "lo\n"
    assert run(workspace, "curl -sm 5 http://1.1.1.1").exit_code == 7
    assert output(workspace, "find / -xdev -name 'docker*.sock' 2>/dev/null; ls /var/run | grep -i docker; true") == ""
    mounts = {line.split()[4] for line in output(workspace, "cat /proc/self/mountinfo").splitlines()}
    assert {mount for mount in mounts if not mount.startswith(("/proc", "/sys", "/dev"))} == {
        "/",
        "/etc/resolv.conf",
        "/etc/hostname",
        "/etc/hosts",
    }


def test_limits_are_set(sandbox: DockerSandbox, client: docker.DockerClient) -> None:
    limits = Limits(memory_mb=128, cpus=0.5, pids=50, file_mb=7)
    with opened(sandbox, limits=limits, hostname="build-7") as workspace:
        host = client.api.inspect_container(workspace.container_id)["HostConfig"]
        assert (host["Memory"], host["MemorySwap"]) == (128 << 20, 128 << 20)
        assert (host["NanoCpus"], host["PidsLimit"]) == (500_000_000, 58)
        assert host["LogConfig"]["Type"] == "none"
        assert host["NetworkMode"] == "none"
        assert not host["Privileged"]
        assert (host["CapDrop"], sorted(host["CapAdd"])) == (["ALL"], ["KILL", "SETGID", "SETUID"])
        assert output(workspace, "ulimit -f; ulimit -c; ulimit -n; hostname") == f"{7 << 10}\n0\n1024\nbuild-7\n"


def test_labels_tell_whose_it_is(sandbox: DockerSandbox, client: docker.DockerClient) -> None:
    with opened(sandbox, task="labelled") as workspace:
        labels = client.api.inspect_container(workspace.container_id)["Config"]["Labels"]
        assert labels["pytest-saber.session"].startswith("test-")
        assert labels["pytest-saber.run"] == "labelled.e1"
        assert labels["pytest-saber.process"].count(":") == 4


def test_sudo_works_where_the_task_asks_for_it(sandbox: DockerSandbox) -> None:
    with opened(sandbox, sudo=True, files=(FileSpec("/etc/app.conf", content="x", mode=0o600),)) as workspace:
        assert output(workspace, "sudo id -un; sudo cat /etc/app.conf; sudo -u www-data id -un") == "root\nxwww-data\n"
        output(workspace, "sudo chown agent /etc/app.conf && sudo useradd extra && sudo chmod 4755 /bin/true")
        for command in ("mount -t tmpfs x /mnt", "mknod /tmp/d b 8 0", "nsenter -t 1 -a true", "chroot / true"):
            assert run(workspace, f"sudo {command}").exit_code != 0, command
        assert run(workspace, "sudo kill -9 1; sudo sh -c 'kill -9 -1'").restarted
        assert output(workspace, "echo alive") == "alive\n"


def test_a_root_workspace_is_root_within_its_bounds(sandbox: DockerSandbox) -> None:
    with opened(sandbox, user="root", workdir="/srv/app") as workspace:
        assert output(workspace, "id -un; echo $HOME; chown www-data . && chmod 700 . && touch x && stat -c %U .") == (
            "root\n/root\nwww-data\n"
        )
        for command in ("mount -t tmpfs x /mnt", "mknod /tmp/d b 8 0", "echo 1 > /proc/sys/kernel/panic", "dmesg"):
            assert run(workspace, command).exit_code != 0, command
        done = run(workspace, "kill -9 1; echo exit > /proc/1/fd/0; echo alive")
        assert done.output.endswith("alive\n")
