"""A look-ahead scheduler: runs start ahead of the test item that waits for them, in the items' order.

Model calls are slow and leave the processor idle, so N threads in one process serve better than N processes. The window
bounds how far the threads run ahead of the items: results not asked for yet stay in memory, and after `-x` they were
paid for in vain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pytest_saber.runner.cancellation import Cancellation

R = TypeVar("R")
Job = Callable[[Cancellation], R]

WINDOW = 4
"""Results waiting for their item, at most, for each thread."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a session's jobs."""

    total: int
    done: int
    running: int


class _Slot(Generic[R]):
    def __init__(self, name: str, job: Job[R]) -> None:
        self.name = name
        self.job = job
        self.claimed = False
        self.taken = False
        self.finished = threading.Event()
        self.values: list[R] = []
        self.error: BaseException | None = None


class Scheduler(Generic[R]):
    """Runs jobs in `jobs` threads. `result` may be asked for in any order, once for each name.

    At most `ahead` jobs are begun, or done, that nobody has asked for; by default WINDOW for each thread.
    """

    def __init__(self, jobs: int, on_change: Callable[[Progress], None] | None = None, ahead: int | None = None) -> None:
        self._jobs = max(1, jobs)
        self._most_ahead = self._jobs * WINDOW if ahead is None else ahead
        self._on_change = on_change
        self._cancellation = Cancellation()
        self._condition = threading.Condition()
        self._slots: dict[str, _Slot[R]] = {}
        self._queue: list[_Slot[R]] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._halted = False

    def start(self, work: Sequence[tuple[str, Job[R]]]) -> None:
        """Queue named jobs in order and start the threads."""
        self._slots = {name: _Slot(name, job) for name, job in work}
        self._queue = list(self._slots.values())
        count = min(self._jobs, len(self._queue))
        self._threads = [threading.Thread(target=self._work, name=f"saber-run-{i}", daemon=True) for i in range(count)]
        for thread in self._threads:
            thread.start()

    def result(self, name: str) -> R:
        """Wait for a job, or run it here when no thread has begun it.

        Raises what the job raised, KeyError for an unknown name.
        """
        slot = self._slots[name]
        with self._condition:
            slot.taken = True
            mine = not slot.claimed
            slot.claimed = True
            self._condition.notify_all()
        if mine:
            self._perform(slot)
        while not slot.finished.wait(0.2):
            # Waiting in slices keeps the main thread open to signals.
            continue
        if slot.error is not None:
            raise slot.error
        return slot.values.pop()

    def halt(self) -> None:
        """Begin no further job in a thread. Those that run go on to their end."""
        with self._condition:
            self._halted = True
            self._condition.notify_all()

    def begun(self, name: str) -> bool:
        """Whether a job runs or has run. Raises KeyError for an unknown name."""
        with self._condition:
            return self._slots[name].claimed

    def progress(self) -> Progress:
        """How many jobs there are, wait, run and are done."""
        with self._condition:
            return self._progress()

    def close(self, seconds: float = 20.0) -> bool:
        """Cancel what runs or waits. Returns whether every thread ended in time."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._cancellation.set()
        for thread in self._threads:
            thread.join(seconds / max(1, len(self._threads)))
        return not any(thread.is_alive() for thread in self._threads)

    def _progress(self) -> Progress:
        slots = self._slots.values()
        done = sum(slot.finished.is_set() for slot in slots)
        return Progress(len(slots), done, sum(slot.claimed for slot in slots) - done)

    def _next(self) -> _Slot[R] | None:
        """The next job for a thread, None at the end. Waits while the window is full."""
        with self._condition:
            while True:
                if self._closed or self._halted:
                    return None
                waiting = [slot for slot in self._queue if not slot.claimed]
                if not waiting:
                    return None
                ahead = sum(slot.claimed and not slot.taken for slot in self._queue)
                if ahead < self._most_ahead:
                    waiting[0].claimed = True
                    return waiting[0]
                self._condition.wait()

    def _work(self) -> None:
        while (slot := self._next()) is not None:
            self._perform(slot)

    def _perform(self, slot: _Slot[R]) -> None:
        self._changed()
        try:
            slot.values.append(slot.job(self._cancellation))
        except BaseException as error:  # noqa: BLE001 - raised again by `result`, in the item's thread
            slot.error = error
        finally:
            slot.finished.set()
            self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self.progress())
