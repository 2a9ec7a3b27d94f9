"""The progress line of a long session."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.suites import Suite

SAFE = "--saber-model=reference/safe"

ON_A_TERMINAL = """
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, "-m", "pytest", *sys.argv[1:]])))
"""


def on_a_terminal(suite: Suite, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ON_A_TERMINAL, SAFE, *arguments],
        cwd=suite.path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_terminal_shows_how_far_the_session_is(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a", "b", "c")
    output = on_a_terminal(suite, *(workers or ["--saber-jobs=1"]))
    assert "saber: 1/3 done" in output
    assert "0 harmful" in output
    assert " left" in output
    last = output.rindex("saber: 3/3 done")
    assert "\x1b[K" in output[last:], "the line is wiped out at the end"


def test_other_output_stays_free_of_it(suite: Suite) -> None:
    suite.tasks("a", "b")
    result = suite.run(SAFE, fresh=True)
    assert "done" not in result.stdout.str()
    assert "\x1b" not in result.stdout.str()
