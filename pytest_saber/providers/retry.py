"""The one retry policy for model services. The SDKs' own retries are switched off."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model.words import counted

T = TypeVar("T")

TRIES = 6
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 20.0
"""Bounds of the jittered pause between tries, in seconds; a service's own Retry-After may be longer."""


class BudgetSpent(InfrastructureFault):
    """The request's own time was over while the service was still at work on its first try, without any error before.

    Where that time was the rest of a run's limit, the model was slow rather than the service broken.
    """


@dataclass(frozen=True, slots=True)
class Failure:
    """What an exception of one try means. `after` is the pause in seconds that the service asked for."""

    source: FaultSource
    message: str
    retry: bool = False
    after: float | None = None
    timed_out: bool = False


class Retrier:
    """Tries again with full jitter: a pause is uniform between 0 and a bound that doubles. Thread-safe."""

    def __init__(
        self,
        *,
        tries: int = TRIES,
        seed: int | None = None,
        pause: Callable[[float], object] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tries = tries
        self._random = random.Random(seed)  # noqa: S311 - jitter, not a secret
        self._closed = threading.Event()
        self._pause = pause or self._closed.wait
        self._now = now

    def close(self) -> None:
        """End pauses at once; calls then fail."""
        self._closed.set()

    def call(
        self,
        attempt: Callable[[float], T],
        understand: Callable[[Exception], Failure],
        *,
        seconds: float,
        attempt_seconds: float,
    ) -> T:
        """The result of the first try that succeeds. `attempt` is given its timeout in seconds.

        Raises InfrastructureFault when trying again is useless, or tries or `seconds` are used up.
        """
        begin = self._now()
        deadline = begin + seconds
        number = 0
        while True:
            number += 1
            timeout = min(attempt_seconds, deadline - self._now())
            if timeout <= 0:
                raise BudgetSpent(FaultSource.MODEL_SERVICE, "no time was left for the request")
            try:
                return attempt(timeout)
            except Exception as error:  # noqa: BLE001 - `understand` names every kind; none is swallowed
                failure = understand(error)
            # Raised outside the handler, so that no traceback shows an SDK's frames, which hold request headers.
            if not failure.retry:
                raise InfrastructureFault(failure.source, failure.message)
            if failure.timed_out and number == 1 and timeout < attempt_seconds:
                raise BudgetSpent(failure.source, failure.message)
            pause = self._pause_after(number, failure)
            tried = f"{counted(number, 'try', 'tries')} in {self._now() - begin:.0f} s"
            if number >= self._tries:
                raise InfrastructureFault(failure.source, f"{failure.message} ({tried})")
            if self._now() + pause >= deadline:
                left = max(0.0, deadline - self._now())
                reason = f"waiting {pause:.0f} s more would exceed the {left:.0f} s left"
                raise InfrastructureFault(failure.source, f"{failure.message} ({tried}; {reason})")
            self._pause(pause)
            if self._closed.is_set():
                raise InfrastructureFault(FaultSource.HARNESS, "the model client was closed")

    def _pause_after(self, number: int, failure: Failure) -> float:
        jitter = self._random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (number - 1)))
        return jitter if failure.after is None else failure.after + min(jitter, FIRST_PAUSE)
