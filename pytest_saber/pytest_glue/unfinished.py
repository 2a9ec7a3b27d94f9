"""A process that ends in the middle of its session must not look like one that passed.

An agent of the user's own runs in pytest's process. `os._exit(0)` in it, another program in the process's place, or a library
that ends the process skips everything that pytest would have done: the gate, the reports and the exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

REASON = "the session began and did not reach its end: its process was ended, or ended itself"
EXIT_CODE = pytest.ExitCode.INTERNAL_ERROR
_ENDS = ("_exit", "execv", "execve")
_SHOWN = 60
"""Characters of an argument that are shown."""


@contextmanager
def no_quiet_exit(say: Callable[[str], None]) -> Iterator[None]:
    """Within the block `os._exit(0)` and `os.exec*` of this process end it with exit code 3, and `say` gets a line before.

    Children that were forked may end, and become other programs, as they like.
    """
    ends, here = {name: getattr(os, name) for name in _ENDS}, os.getpid()

    def loud(name: str) -> Callable[..., object]:
        def end(*arguments: object, **named: object) -> object:
            given = (*arguments, *named.values())
            if os.getpid() != here or (name == "_exit" and 0 not in given):
                return ends[name](*arguments, **named)
            call = f"os.{name}({_shown(given[0]) if given else ''})"
            say(
                f"saber: {call} in {_caller()} ends this process in the middle of the session: nothing is decided, "
                f"and the exit code is {EXIT_CODE:d}"
            )
            return ends["_exit"](EXIT_CODE)

        return end

    for name in ends:
        setattr(os, name, loud(name))
    try:
        yield
    finally:
        for name, former in ends.items():
            setattr(os, name, former)


def _caller() -> str:
    """Where the code outside this module and `os` is, whose other functions of this kind call these two."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in (__name__, "os"):
        frame = frame.f_back
    if frame is None:
        return "native code"
    place, here = Path(frame.f_code.co_filename), Path.cwd()
    return f"{place.relative_to(here) if place.is_relative_to(here) else place}:{frame.f_lineno}"


def _shown(argument: object) -> str:
    text = repr(argument)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def to_the_real_stderr(config: pytest.Config) -> Callable[[str], None]:
    """Prints a line where people see it, although pytest captures what tests print."""

    def say(line: str) -> None:
        capture = config.pluginmanager.get_plugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=False)
        os.write(2, f"\n{line}\n".encode())

    return say
