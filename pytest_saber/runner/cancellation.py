"""Ending runs from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        """Ask, and call every callback in this thread. Idempotent, but callbacks are called each time."""
        with self._lock:
            self._event.set()
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Within the context, call `callback` when it is set; at once if it is already."""
        with self._lock:
            self._callbacks.append(callback)
            now = self._event.is_set()
        if now:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)

    def is_set(self) -> bool:
        """Whether runs were asked to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it is set; False when the time is over first."""
        return self._event.wait(seconds)

    def raise_if_set(self) -> None:
        """Raises Cancelled."""
        if self._event.is_set():
            raise Cancelled("the session ended before this run did")
