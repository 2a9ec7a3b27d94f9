"""What happens inside a workspace's limits is bounded, reported as the workspace's doing, and leaves a readable state."""

from __future__ import annotations

import docker
import pytest
from support.sandbox import WORKDIR, opened, output, run

from pytest_saber.errors import WorkspaceEnd, WorkspaceLost
from pytest_saber.model.task import FileSpec, Limits
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.workspace import DockerWorkspace

pytestmark = pytest.mark.docker

HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"


def test_a_process_out_of_memory_dies_and_the_shell_lives(sandbox: DockerSandbox) -> None:
    with opened(sandbox, limits=Limits(memory_mb=64)) as workspace:
        output(workspace, "KEPT=1")
        done = run(workspace, f"python3 -c '{HOG}'")
        assert (done.exit_code, done.restarted) == (137, False)
        assert workspace.limits_hit() == ("memory: 1 processes were killed at the limit of 64 MiB",)
        assert output(workspace, "echo $KEPT") == "1\n"
        assert workspace.ended() is None


def test_a_shell_out_of_memory_is_restarted(sandbox: DockerSandbox) -> None:
    with opened(sandbox, limits=Limits(memory_mb=64)) as workspace:
        done = run(workspace, "x=x; while :; do x=$x$x; done")
        assert (done.exit_code, done.restarted) == (137, True)
        assert output(workspace, "echo alive") == "alive\n"


def test_shared_memory_counts(sandbox: DockerSandbox) -> None:
    with opened(sandbox, limits=Limits(memory_mb=48)) as workspace:
        done = run(workspace, "head -c 100M /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x")
        assert done.output.endswith(f"No space left on device\n{24 << 20}\n")


def test_memory_that_no_process_holds_costs_commands_but_not_the_workspace(sandbox: DockerSandbox) -> None:
    """`/dev` is a file system in memory too, which root may fill: killing processes then frees nothing."""
    with opened(sandbox, user="root", limits=Limits(memory_mb=48)) as workspace:
        done = run(workspace, "head -c 100M /dev/zero > /dev/x")
        assert done.exit_code == 137
        assert workspace.limits_hit()[0].startswith("memory: ")
        assert f"{WORKDIR}" in workspace.final()[1].files


def test_a_first_process_out_of_memory_is_the_workspace_s_end(sandbox: DockerSandbox) -> None:
    with opened(sandbox, user="root", limits=Limits(memory_mb=48)) as workspace:
        workspace.baseline()
        with pytest.raises(WorkspaceLost, match="the workspace ran out of its 48 MiB of memory") as caught:
            run(workspace, "echo made > made; echo 1000 > /proc/1/oom_score_adj; head -c 100M /dev/zero > /dev/x; sleep 60")
        assert caught.value.reason is WorkspaceEnd.OUT_OF_MEMORY
        assert workspace.final()[1].files[f"{WORKDIR}/made"].text == "made\n"


@pytest.mark.parametrize("bomb", [":(){ :|:& };:", "while :; do sleep 100 & done", "f() { f & f; }; f"])
def test_a_fork_bomb_stays_inside(sandbox: DockerSandbox, bomb: str) -> None:
    with opened(sandbox, limits=Limits(pids=40)) as workspace:
        # A machine under load may not start so many processes in a second.
        for _ in range(30):
            run(workspace, bomb, timeout=1)
            done = run(workspace, "echo builtin works; ls", timeout=1)
            assert "builtin works" in done.output
            if hit := workspace.limits_hit():
                break
        assert hit[0].startswith("pids: ")
        assert workspace.final()[1].notes == ()


def test_output_without_end_is_bounded(sandbox: DockerSandbox) -> None:
    with opened(sandbox) as workspace:
        done = run(workspace, "yes", timeout=0.5)
        assert done.timed_out
        assert done.truncated
        assert len(done.output) < 40_000
        output(workspace, "(yes & disown); true")
        assert output(workspace, "pkill yes; echo quiet").endswith("quiet\n")


@pytest.mark.long
def test_a_gigabyte_of_output_passes(sandbox: DockerSandbox) -> None:
    with opened(sandbox) as workspace:
        done = run(workspace, "head -c 1G /dev/zero; echo end", timeout=60)
        assert (done.exit_code, done.truncated) == (0, True)
        assert done.output.endswith("\0end\n")


def test_a_full_disk_ends_the_workspace_and_its_state_is_read(sandbox: DockerSandbox) -> None:
    with opened(sandbox, limits=Limits(disk_mb=40, file_mb=30), files=(FileSpec("kept", content="kept"),)) as workspace:
        workspace.baseline()
        with pytest.raises(WorkspaceLost, match=r"the workspace uses \d+ MiB of disk, more than its 40 MiB") as caught:
            run(workspace, "rm kept; for i in 1 2 3 4; do head -c 30M /dev/zero > f$i; done; sleep 60", timeout=60)
        assert caught.value.reason is WorkspaceEnd.DISK_BUDGET
        assert (workspace.ended() or "").startswith("disk_budget: the workspace uses ")
        with pytest.raises(WorkspaceLost):
            run(workspace, "echo again")
        with pytest.raises(WorkspaceLost):
            workspace.read_file("f1", limit=1)
        before, after = workspace.final()
        assert f"{WORKDIR}/kept" in before.files
        assert f"{WORKDIR}/kept" not in after.files
        assert f"{WORKDIR}/f1" in after.files


def test_a_killed_container_is_the_workspace_s_end(sandbox: DockerSandbox, client: docker.DockerClient) -> None:
    with opened(sandbox) as workspace:
        workspace.baseline()
        output(workspace, "echo made > made")
        client.api.kill(workspace.container_id)
        with pytest.raises(WorkspaceLost, match=r"the workspace's container ended with exit code 137") as caught:
            run(workspace, "sleep 60")
        assert caught.value.reason is WorkspaceEnd.CONTAINER_DIED
        _, after = workspace.final()
        assert after.files[f"{WORKDIR}/made"].text == "made\n"


def test_a_first_process_that_is_stopped_is_given_up(
    sandbox: DockerSandbox, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_saber.sandbox.shell._GRACE", 0.5)
    with opened(sandbox) as workspace:
        client.api.pause(workspace.container_id)
        with pytest.raises(WorkspaceLost, match="first process does not answer any more; it was killed") as caught:
            run(workspace, "echo x", timeout=0.5)
        assert caught.value.reason is WorkspaceEnd.SHELL_LOST


def test_deleting_the_system_costs_programs_but_not_the_shell(sandbox: DockerSandbox) -> None:
    with opened(sandbox, user="root") as workspace:
        workspace.baseline()
        run(workspace, "rm -rf /bin /usr/bin /usr/sbin 2>/dev/null", timeout=60)
        assert output(workspace, "echo alive") == "alive\n"
        assert run(workspace, "ls").exit_code == 127
        assert run(workspace, "sleep 60; while :; do :; done", timeout=0.5).timed_out
        before, after = workspace.final()
        assert "/usr/bin/bash" in before.files
        assert "/usr/bin/bash" not in after.files


def test_the_harness_s_processes_are_not_in_the_state(workspace: DockerWorkspace) -> None:
    output(workspace, "sleep 321 & disown")
    commands = [process.argv for process in workspace.baseline().processes]
    assert commands == [("sleep", "321")]
    output(workspace, "pkill sleep")


def test_no_process_passes_for_the_harness_s_shell(workspace: DockerWorkspace) -> None:
    """Not by its command line and its parent, and not by the number of a shell that has ended."""
    disguised = ("bash", "--norc", "--noprofile", "--noediting", "-i", "-c", "sleep 322; :")
    output(
        workspace, "setsid -f bash --norc --noprofile --noediting -i -c 'sleep 322; :' </dev/null >/dev/null 2>&1; sleep 0.2"
    )
    (shell,) = [process for process in workspace.baseline().processes if process.argv[0] == "bash"]
    assert (shell.ppid, shell.argv) == (1, disguised)
    assert run(workspace, "kill -9 $$").restarted
    assert disguised in [process.argv for process in workspace.baseline().processes]
    assert workspace._inner is None
    output(workspace, "pkill -9 -f '[s]leep 322'")
    assert workspace.baseline().processes == ()
