"""Signals: SIGTERM ends a session as cleanly as Ctrl-C, and nothing interrupts the cleaning up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest


class Termination:
    """While installed, SIGTERM raises what pytest takes for an orderly end of the session."""

    def __init__(self) -> None:
        self._installed = False

    def install(self) -> None:
        """Take over SIGTERM unless the host program handles it itself, or this is not the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        signal.signal(signal.SIGTERM, _terminate)
        self._installed = True

    def restore(self) -> None:
        """Give SIGTERM back, unless somebody else took it meanwhile."""
        if self._installed and signal.getsignal(signal.SIGTERM) is _terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._installed = False


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
