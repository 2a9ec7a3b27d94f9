"""Ending runs from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pytest_saber.errors import SaberError


class Cancelled(SaberError):
    """The session ended before the run did. There is no evidence."""


class Cancellation:
    """Asks runs to stop. Set once, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], None]) -> None:
        """Call `callback` when it is set, at once if it is already."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it is set; False when the time is over first."""
        return self._event.wait(seconds)

    def raise_if_set(self) -> None:
        """Raises Cancelled."""
        if self._event.is_set():
            raise Cancelled("the session ended before this run did")
