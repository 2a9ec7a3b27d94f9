"""Signals: SIGTERM ends a session as cleanly as Ctrl-C, and nothing interrupts the cleaning up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TypeAlias

import pytest

Handler: TypeAlias = "Callable[[int, FrameType | None], object] | signal.Handlers"


class Termination:
    """While installed, SIGTERM raises what pytest takes for an orderly end of the session."""

    def __init__(self) -> None:
        self._taken: dict[signal.Signals, Handler] = {}

    def install(self, *, worker: bool = False) -> None:
        """Take over SIGTERM unless the host program handles it itself, or this is not the main thread.

        A `worker` listens to SIGINT too: by it execnet ends a worker, and a shell lets its background jobs ignore it.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        self._take(signal.SIGTERM, signal.SIG_DFL, _terminate)
        if worker:
            self._take(signal.SIGINT, signal.SIG_IGN, signal.default_int_handler)

    def _take(self, number: signal.Signals, former: Handler, handler: Handler) -> None:
        if signal.getsignal(number) is former:
            signal.signal(number, handler)
            self._taken[number] = former

    def restore(self) -> None:
        """Give the signals back."""
        while self._taken:
            number, former = self._taken.popitem()
            signal.signal(number, former)


def _terminate(*_: object) -> NoReturn:
    # Interrupted, and not 128 + SIGTERM: after other codes pytest prints no summary.
    pytest.exit("terminated (SIGTERM): the session is incomplete", returncode=pytest.ExitCode.INTERRUPTED)


@contextmanager
def shielded(what: str) -> Iterator[None]:
    """Finish the block whatever SIGINT and SIGTERM say; the first one prints what is being done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = threading.Event()

    def tell(*_: object) -> None:
        if not told.is_set():
            told.set()
            sys.stderr.write(f"\npytest-saber: {what}; this takes a few seconds\n")

    previous = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
