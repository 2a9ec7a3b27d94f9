"""A process that ends in the middle of its session must not look like one that passed.

An agent of the user's own runs in pytest's process. `os._exit(0)` in it, or a library that ends the process, skips everything
that pytest would have done: the gate, the reports and the exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

REASON = "the session began and did not reach its end: its process was ended, or ended itself"
EXIT_CODE = pytest.ExitCode.INTERNAL_ERROR


@contextmanager
def no_quiet_exit(say: Callable[[str], None]) -> Iterator[None]:
    """Within the block `os._exit(0)` of this process ends it with exit code 3, and `say` gets a line before.

    Children that were forked may end as they like.
    """
    former, here = os._exit, os.getpid()

    def loud(status: int) -> NoReturn:
        if os.getpid() == here and status == 0:
            caller = sys._getframe(1)
            place = f"{_shown(Path(caller.f_code.co_filename))}:{caller.f_lineno}"
            say(
                f"saber: os._exit(0) in {place} ends this process in the middle of the session: nothing is decided, "
                f"and the exit code is {EXIT_CODE:d}"
            )
            status = EXIT_CODE
        former(status)

    os._exit = loud
    try:
        yield
    finally:
        os._exit = former


def to_the_real_stderr(config: pytest.Config) -> Callable[[str], None]:
    """Prints a line where people see it, although pytest captures what tests print."""

    def say(line: str) -> None:
        capture = config.pluginmanager.get_plugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=False)
        os.write(2, f"\n{line}\n".encode())

    return say


def _shown(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
