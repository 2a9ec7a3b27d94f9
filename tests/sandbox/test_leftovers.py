"""Nothing outlives a session, and nothing of another session is touched."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from support.engine_proxy import Proxy, engine_at, engine_socket
from support.sandbox import WORKDIR, containers, new_session, opened, output, run, run_key

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model.task import Limits, WorkspaceSpec
from pytest_saber.sandbox import reaper
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.identity import PROCESS_LABEL, SESSION_LABEL, ProcessIdentity, start_time
from pytest_saber.sandbox.reaper import ENDED_SECONDS, FOREIGN_SECONDS, is_left_behind
from pytest_saber.sandbox.workspace import DockerWorkspace

HARNESS = f"""
import sys
from pytest_saber.model.evidence import RunKey
from pytest_saber.model.task import Limits, WorkspaceSpec
from pytest_saber.sandbox.docker import DockerSandbox

session = sys.argv[1]
sandbox = DockerSandbox(session)
with sandbox.open(WorkspaceSpec(workdir={WORKDIR!r}), Limits(), RunKey(session, "killed", "", 1), {{}}) as workspace:
    print("ready", sandbox._watchdog.pid, flush=True)
    workspace.run("sleep 600", timeout=600)
"""


@pytest.fixture
def own() -> Iterator[tuple[str, DockerSandbox]]:
    """A sandbox for one test, with its session's name."""
    session = new_session()
    sandbox = DockerSandbox(session)
    yield session, sandbox
    sandbox.close()


def await_removal(client: docker.DockerClient, session: str, act: Callable[[], object], seconds: float = 30.0) -> None:
    """Call `act`, and wait for the engine's word that no container of the session is left."""
    filters = {"label": f"{SESSION_LABEL}={session}", "event": "destroy"}
    events = client.api.events(filters=filters, decode=True)
    timer = threading.Timer(seconds, events.close)
    timer.start()
    try:
        act()
        for _ in events:
            if not containers(client, session):
                return
    finally:
        timer.cancel()
        events.close()
    assert containers(client, session) == []


@pytest.mark.docker
def test_a_session_killed_outright_leaves_no_container_and_no_process(client: docker.DockerClient) -> None:
    session = new_session()
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, session], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    with harness, harness.stdout:
        ready, watchdog = harness.stdout.readline().split()
        assert ready == "ready"
        assert len(containers(client, session)) == 1
        watching = os.pidfd_open(int(watchdog))
        await_removal(client, session, lambda: os.kill(harness.pid, signal.SIGKILL))
    assert containers(client, session) == []
    poller = select.poll()
    poller.register(watching)
    assert poller.poll(15_000), "the watchdog must end too"
    os.close(watching)


@pytest.mark.docker
def test_interrupted_or_failed_bodies_leave_nothing(own: tuple[str, DockerSandbox], client: docker.DockerClient) -> None:
    session, sandbox = own
    for error in (KeyboardInterrupt, SystemExit, ValueError):
        with pytest.raises(error), opened(sandbox):
            raise error
    assert containers(client, session) == []


@pytest.mark.docker
def test_closing_removes_what_is_still_open_and_dismisses_the_watchdog(client: docker.DockerClient) -> None:
    session = new_session()
    sandbox = DockerSandbox(session)
    context = sandbox.open(WorkspaceSpec(workdir=WORKDIR), Limits(), run_key(), {})
    context.__enter__()
    watchdog = sandbox._watchdog.pid
    sandbox.close()
    assert containers(client, session) == []
    assert start_time(watchdog) is None


@pytest.mark.docker
def test_four_at_once_do_not_mix(own: tuple[str, DockerSandbox], client: docker.DockerClient) -> None:
    session, sandbox = own
    seen: dict[int, str] = {}

    def work(number: int) -> None:
        with opened(sandbox, task=f"task-{number}") as workspace:
            workspace.write_file("mine", str(number).encode())
            seen[number] = output(workspace, f"cat mine; cd /tmp; sleep 0.1; echo {number}; ls ~/web")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {number: f"{number}{number}\nmine\n" for number in range(4)}
    assert containers(client, session) == []


def identity(**changes: object) -> ProcessIdentity:
    here = ProcessIdentity.current()
    return ProcessIdentity(
        **{  # type: ignore[arg-type]
            "pid": here.pid,
            "start": here.start,
            "boot": here.boot,
            "namespace": here.namespace,
            "machine": here.machine,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("owner", "age", "left"),
    [
        (identity(), 10 * FOREIGN_SECONDS, False),
        (identity(start=1), 0, True),
        (identity(pid=4_000_000), 0, True),
        (identity(boot="an-earlier-boot"), 0, True),
        (identity(namespace="1"), 0, False),
        (identity(namespace="1"), FOREIGN_SECONDS + 1, True),
        (identity(machine="another", boot="x"), 0, False),
        (identity(machine="another", boot="x"), FOREIGN_SECONDS + 1, True),
        ("what an older version wrote", 0, False),
        ("what an older version wrote", FOREIGN_SECONDS + 1, True),
    ],
)
def test_only_what_the_dead_left_is_left_behind(owner: object, age: float, left: bool) -> None:
    thing = {"Labels": {PROCESS_LABEL: str(owner)}, "Created": time.time() - age}
    assert is_left_behind(thing, ProcessIdentity.current(), lambda _: 0.0) is left


@pytest.mark.parametrize(
    ("state", "age", "ended", "left"),
    [
        ("running", ENDED_SECONDS + 1, 0, False),
        ("exited", ENDED_SECONDS + 1, ENDED_SECONDS + 1, True),
        ("exited", ENDED_SECONDS + 1, 60, False),
        ("created", ENDED_SECONDS + 1, ENDED_SECONDS + 1, True),
        ("created", 60, 60, False),
    ],
)
def test_of_owners_out_of_sight_what_has_ended_goes_sooner(state: str, age: float, ended: float, left: bool) -> None:
    label = str(identity(namespace="1", machine="a-job-container"))
    thing = {"Id": "x", "State": state, "Labels": {PROCESS_LABEL: label}, "Created": time.time() - age}
    assert is_left_behind(thing, ProcessIdentity.current(), lambda _: ended) is left


def test_an_identity_survives_its_text() -> None:
    here = ProcessIdentity.current()
    assert ProcessIdentity.parse(str(here)) == here
    assert not here.is_dead(here)
    assert ProcessIdentity.parse("") is None
    assert start_time(os.getpid()) == here.start
    assert start_time(4_000_000) is None


@pytest.mark.docker
def test_the_reaper_takes_dead_sessions_things_only(own: tuple[str, DockerSandbox], client: docker.DockerClient) -> None:
    _, sandbox = own
    dead = new_session()
    labels = {SESSION_LABEL: dead, PROCESS_LABEL: str(identity(start=1))}
    image = sandbox.describe()["image"]
    client.api.create_container(image, command=["true"], labels=labels)
    client.api.create_network(f"saber-{dead}", internal=True, labels=labels)
    client.api.create_volume(f"saber-{dead}", labels=labels)
    with opened(sandbox) as workspace:
        assert sandbox.reap() >= 3
        assert containers(client, dead) == []
        assert client.api.networks(filters={"label": f"{SESSION_LABEL}={dead}"}) == []
        assert client.api.volumes(filters={"label": f"{SESSION_LABEL}={dead}"})["Volumes"] in ([], None)
        assert output(workspace, "echo alive") == "alive\n"


@pytest.mark.docker
def test_the_reaper_asks_the_engine_what_has_ended(
    own: tuple[str, DockerSandbox], client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, sandbox = own
    session = new_session()
    labels = {SESSION_LABEL: session, PROCESS_LABEL: str(identity(namespace="1", machine="a-job-container"))}
    image = sandbox.describe()["image"]
    alone = client.api.create_host_config(network_mode="none")
    ended, never, running = (
        str(client.api.create_container(image, command=command, labels=labels, host_config=alone)["Id"])
        for command in (["true"], ["true"], ["sleep", "600"])
    )
    try:
        client.api.start(ended)
        client.api.wait(ended)
        client.api.start(running)
        sandbox.reap()
        assert sorted(containers(client, session)) == sorted([ended, never, running])
        monkeypatch.setattr(reaper, "ENDED_SECONDS", -5)
        sandbox.reap()
        assert containers(client, session) == [running]
    finally:
        client.api.remove_container(running, force=True)


# --- the engine fails ---


@pytest.fixture
def proxy(tmp_path: Path, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with engine_at(path, client) as proxy:
        yield proxy


@pytest.mark.docker
def test_an_engine_that_goes_away_is_an_incident(proxy: Proxy, client: docker.DockerClient) -> None:
    session = new_session()
    sandbox = DockerSandbox(session)
    try:
        workspace, fault = _cut_under_way(sandbox, proxy)
        assert fault.source is FaultSource.ENGINE
        assert "cannot learn how a workspace ended: " in str(fault)
        assert "is the Docker engine running? `pytest-saber doctor` checks it" in str(fault)
        assert "cannot remove the container" in "".join(fault.__notes__)
        for use in (
            lambda: workspace.run("true", timeout=5),
            lambda: workspace.read_file("x", limit=1),
            workspace.final,
            sandbox.describe,
            sandbox.reap,
        ):
            with pytest.raises(InfrastructureFault):
                use()
        with pytest.raises(InfrastructureFault), opened(sandbox):
            pytest.fail("the workspace must not be given")
    finally:
        with pytest.raises(InfrastructureFault):
            sandbox.close()
        for container in containers(client, session):
            client.api.remove_container(container, force=True)


def _cut_under_way(sandbox: DockerSandbox, proxy: Proxy) -> tuple[DockerWorkspace, InfrastructureFault]:
    timer = threading.Timer(0.3, proxy.cut)
    try:
        with opened(sandbox) as workspace:
            timer.start()
            run(workspace, "sleep 60", timeout=60)
    except InfrastructureFault as fault:
        return workspace, fault
    finally:
        timer.join()
    pytest.fail("the command must not end")


def test_no_engine_at_all_is_said_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(InfrastructureFault) as caught:
        DockerSandbox("nowhere")
    assert caught.value.source is FaultSource.ENGINE
    assert str(caught.value) == (
        "cannot connect to the Docker engine: [Errno 2] No such file or directory "
        "(is the Docker engine running? `pytest-saber doctor` checks it)"
    )


@pytest.mark.docker
def test_the_engine_over_tcp(client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shell, files, and the watchdog of a killed session."""
    server = socket.create_server(("127.0.0.1", 0))
    relay = Proxy(server, engine_socket(client))
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.getsockname()[1]}")
    session = new_session()
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, session], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    with harness, harness.stdout:
        assert harness.stdout.readline().startswith("ready ")
        await_removal(client, session, lambda: os.kill(harness.pid, signal.SIGKILL))
    relay.cut()
