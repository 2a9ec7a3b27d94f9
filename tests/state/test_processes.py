"""Processes of real containers."""

from __future__ import annotations

import time

import pytest
from support.state import Box, both_ways

from pytest_saber.model.state import Process, State

pytestmark = pytest.mark.docker

_LISTENER = """
import os, socket
keep = [socket.create_server(("127.0.0.1", 8081)), socket.create_server(("::", 8082), family=socket.AF_INET6)]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("0.0.0.0", 8083))
open("/tmp/ready", "w").close()
os.read(0, 1)
"""


def _start(box: Box, command: str, user: str = "agent") -> None:
    box.container.exec_run(["bash", "-c", command], user=user, detach=True)


def _wait_for(box: Box, path: str) -> None:
    box.run(f"timeout 20 bash -c 'until [ -e {path} ]; do sleep 0.02; done'")


def _with(state: State, argument: str) -> list[Process]:
    return [process for process in state.processes if argument in process.argv]


@both_ways
def test_what_runs_who_runs_it_and_where_it_listens(box: Box, rights: bool) -> None:
    box.run(f"cat > /tmp/listen.py <<'END'\n{_LISTENER}\nEND\nmkfifo /tmp/never")
    _start(box, "exec python3 /tmp/listen.py 'two words' '' <> /tmp/never")
    _start(box, "sleep 1000 & echo > /tmp/parent; wait")
    _wait_for(box, "/tmp/ready")
    _wait_for(box, "/tmp/parent")
    state = box.reader(rights=rights).baseline()
    (listener,) = _with(state, "/tmp/listen.py")
    assert listener.argv == ("python3", "/tmp/listen.py", "two words", "")
    assert listener.listening == ("0.0.0.0:8083", "127.0.0.1:8081", "[::]:8082")
    assert (listener.uid, listener.state) == (1000, "S")
    (sleeper,) = _with(state, "1000")
    (parent,) = [process for process in state.processes if process.pid == sleeper.ppid]
    assert parent.argv[:2] == ("bash", "-c")
    said = box.run(f"cut -d' ' -f22 /proc/{sleeper.pid}/stat; tr '\\0' ' ' < /proc/{sleeper.pid}/cmdline").split()
    assert said == [str(sleeper.start), "sleep", "1000"]
    assert all(process.pid != 1 for process in state.processes)


def test_processes_that_end_and_start_between_the_two_states(box: Box) -> None:
    _start(box, "exec sleep 1001")
    _start(box, "exec sleep 1002", user="root")
    box.run("timeout 20 bash -c 'until pgrep -f \"[s]leep 1002\"; do sleep 0.02; done'")
    reader = box.reader()
    baseline = reader.baseline()
    box.run("pkill -f '[s]leep 1001'; nohup sleep 1003 >/dev/null 2>&1 &")
    box.run("timeout 20 bash -c 'while pgrep -f \"[s]leep 1001\"; do sleep 0.02; done'")
    before, after = reader.final()
    assert before.processes == baseline.processes
    assert (len(_with(before, "1001")), len(_with(after, "1001"))) == (1, 0)
    assert (len(_with(before, "1003")), len(_with(after, "1003"))) == (0, 1)
    assert _with(before, "1002") == _with(after, "1002")
    assert _with(after, "1002")[0].uid == 0


def test_the_harness_can_name_its_own(box: Box) -> None:
    _start(box, "exec sleep 1004")
    box.run("timeout 20 bash -c 'until pgrep -f \"[s]leep 1004\"; do sleep 0.02; done'")
    state = box.reader(is_harness=lambda process: "1004" in process.argv).baseline()
    assert [process.pid for process in state.processes] == [1]


def test_a_zombie_and_odd_names(box: Box) -> None:
    script = 'import os, time; os.fork() or os._exit(0); open("/tmp/forked", "w").close(); time.sleep(100)'
    _start(box, f"exec -a $'odd\\377\\n) S name' python3 -c '{script}'")
    _wait_for(box, "/tmp/forked")
    deadline = time.monotonic() + 20
    reader = box.reader()
    while time.monotonic() < deadline:
        processes = reader.baseline().processes
        zombies = [process for process in processes if process.state == "Z"]
        if zombies:
            break
    assert zombies[0].argv == ("[python3]",)
    assert [process.argv[0] for process in processes if process.pid == zombies[0].ppid] == ["odd\udcff\n) S name"]
