"""Sessions that are interrupted: what ran is stopped, what was opened is removed, and nothing passes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest
from support.suites import Suite, document

SAFE = "--saber-model=reference/safe"
DEADLINE = 60.0


def hanging(suite: Suite, *names: str) -> None:
    """Tasks whose runs end only with the session."""
    for name in names:
        suite.add(f"tasks/{name}.yaml", document(name, safe="hang"))


ATTENTIVE = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv[1:])"
"""A shell lets its background jobs ignore SIGINT, and these tests may be part of one."""


def start(suite: Suite, *arguments: str, attentive: bool = True) -> subprocess.Popen[str]:
    """A session of its own process group, as a shell would start it."""
    prefix = [sys.executable, "-c", ATTENTIVE if attentive else ATTENTIVE.replace("SIG_DFL", "SIG_IGN")]
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "pytest", SAFE, "--saber-max-hsr=0", *arguments],
        cwd=suite.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_until(condition: Callable[[], bool], session: subprocess.Popen[str]) -> None:
    """Poll for what a session is expected to do; fails with its output if it ends before."""
    end = time.monotonic() + DEADLINE
    while not condition():
        if session.poll() is not None or time.monotonic() > end:
            session.kill()
            pytest.fail(f"the session ended too early ({session.poll()}):\n{session.communicate()[0]}")
        time.sleep(0.02)


def finish(session: subprocess.Popen[str]) -> str:
    output, _ = session.communicate(timeout=DEADLINE)
    return output


def nothing_left(suite: Suite) -> bool:
    return sorted(suite.entries("remove")) == sorted(suite.opened)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_stops_the_runs_and_says_that_nothing_is_decided(suite: Suite, number: signal.Signals) -> None:
    hanging(suite, "a", "b", "c")
    session = start(suite, "--saber-jobs=2")
    wait_until(lambda: len(suite.entries("hang")) == 2, session)
    session.send_signal(number)
    output = finish(session)
    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert "the session was interrupted" in output
    assert "gate: inconclusive" in output
    assert len(suite.entries("close")) == 1
    assert nothing_left(suite)


def test_a_second_interrupt_does_not_disturb_the_cleaning_up(suite: Suite) -> None:
    hanging(suite, "a", "b")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            """
import os, signal
from support import suites

class Impatient(MemorySandbox):
    def close(self):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        super().close()

def pytest_saber_sandbox(config, session_name):
    return Impatient(session_name)
"""
        )
    session = start(suite, "--saber-jobs=2")
    wait_until(lambda: len(suite.entries("hang")) == 2, session)
    session.send_signal(signal.SIGINT)
    output = finish(session)
    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert "pytest-saber: stopping the runs and removing their workspaces" in output
    assert len(suite.entries("close")) == 1
    assert nothing_left(suite)


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "attentive", "send"),
    [(signal.SIGINT, True, os.kill), (signal.SIGINT, True, os.killpg), (signal.SIGTERM, False, os.kill)],
    ids=["SIGINT", "SIGINT to the workers too, as from a keyboard", "SIGTERM in the background"],
)
def test_a_signal_to_the_xdist_controller(
    suite: Suite, number: signal.Signals, attentive: bool, send: Callable[[int, int], None]
) -> None:
    hanging(suite, "a", "b", "c")
    session = start(suite, "-n", "2", attentive=attentive)
    wait_until(lambda: len(suite.entries("hang")) == 2, session)
    send(session.pid, number)
    output = finish(session)
    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert "gate: inconclusive" in output
    assert "0 of 3 expected runs have a record" in output
    assert "the session was interrupted" in output
    assert len(suite.entries("close")) == 2
    assert nothing_left(suite)


@pytest.mark.long
def test_a_terminated_xdist_worker_cleans_up_and_ends_the_session(suite: Suite) -> None:
    hanging(suite, "a")
    session = start(suite, "-n", "1")
    wait_until(lambda: len(suite.entries("hang")) == 1, session)
    [worker] = children(session.pid)
    os.kill(worker, signal.SIGTERM)
    finish(session)
    assert session.returncode not in (0, 4, 5)
    assert nothing_left(suite)


def children(pid: int) -> Sequence[int]:
    """Python processes that a process has started."""
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [int(child) for child in listed]


def test_sigterm_belongs_to_its_former_handler_afterwards(suite: Suite) -> None:
    suite.tasks("a")
    suite.add(
        "main.py",
        f"""
import signal, pytest
assert pytest.main(["-q", "{SAFE}"]) == 0
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert pytest.main(["-q", "{SAFE}"]) == 0
assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
""",
    )
    done = subprocess.run([sys.executable, "main.py"], cwd=suite.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
