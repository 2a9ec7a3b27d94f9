"""The one retry policy, on a clock that a test turns."""

from __future__ import annotations

import pytest

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.providers.failures import retry_after
from pytest_saber.providers.retry import LONGEST_PAUSE, BudgetSpent, Failure, Retrier

BUSY = Failure(FaultSource.MODEL_SERVICE, "busy", retry=True)


class Clock:
    """Time that passes only while the policy pauses, or an attempt says so."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds


class Service:
    """Fails as told, then answers."""

    def __init__(self, *failures: Failure, clock: Clock | None = None, takes: float = 0.0) -> None:
        self.failures = list(failures)
        self.timeouts: list[float] = []
        self.clock = clock
        self.takes = takes

    def attempt(self, timeout: float) -> str:
        self.timeouts.append(timeout)
        if self.clock:
            self.clock.time += min(self.takes, timeout)
        if self.failures:
            raise LookupError
        return "answer"

    def understand(self, error: Exception) -> Failure:
        assert isinstance(error, LookupError)
        return self.failures.pop(0)


def call(retrier: Retrier, service: Service, *, seconds: float = 100.0, attempt_seconds: float = 30.0) -> str:
    return retrier.call(service.attempt, service.understand, seconds=seconds, attempt_seconds=attempt_seconds)


def policy(clock: Clock, *, tries: int = 6, seed: int = 1) -> Retrier:
    return Retrier(tries=tries, seed=seed, pause=clock.pause, now=clock.now)


def test_failures_that_pass_are_tried_again_with_growing_jitter() -> None:
    clock, service = Clock(), Service(*[BUSY] * 5)
    assert call(policy(clock), service) == "answer"
    assert len(clock.pauses) == 5
    assert all(0 <= pause <= min(LONGEST_PAUSE, 0.5 * 2**number) for number, pause in enumerate(clock.pauses))


def test_the_jitter_follows_the_seed() -> None:
    clocks = [Clock(), Clock(), Clock()]
    for clock, seed in zip(clocks, (1, 1, 2), strict=True):
        call(policy(clock, seed=seed), Service(BUSY, BUSY))
    assert clocks[0].pauses == clocks[1].pauses != clocks[2].pauses


def test_the_service_s_own_pause_is_kept() -> None:
    clock = Clock()
    call(policy(clock), Service(Failure(FaultSource.MODEL_SERVICE, "slow down", retry=True, after=20.0)))
    assert 20.0 <= clock.pauses[0] <= 20.5


def test_tries_are_bounded_and_counted() -> None:
    clock = Clock()
    with pytest.raises(InfrastructureFault, match=r"^busy \(3 tries in \d+ s\)$") as caught:
        call(policy(clock, tries=3), Service(*[BUSY] * 9))
    assert caught.value.source is FaultSource.MODEL_SERVICE
    assert len(clock.pauses) == 2


def test_no_pause_beyond_the_budget() -> None:
    clock = Clock()
    wait = Failure(FaultSource.MODEL_SERVICE, "slow down", retry=True, after=3600.0)
    with pytest.raises(
        InfrastructureFault, match=r"^slow down \(1 try in 0 s; waiting 3600 s more would exceed the 100 s left\)$"
    ):
        call(policy(clock), Service(wait))
    assert clock.pauses == []


@pytest.mark.parametrize("source", [FaultSource.CREDENTIALS, FaultSource.QUOTA])
def test_useless_tries_are_not_made(source: FaultSource) -> None:
    clock, service = Clock(), Service(Failure(source, "no"))
    with pytest.raises(InfrastructureFault, match=r"^no$") as caught:
        call(policy(clock), service)
    assert caught.value.source is source
    assert len(service.timeouts) == 1


def test_an_error_of_the_sdk_is_not_part_of_the_fault() -> None:
    with pytest.raises(InfrastructureFault) as caught:
        call(policy(Clock()), Service(Failure(FaultSource.QUOTA, "no")))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


TIMEOUT = Failure(FaultSource.MODEL_SERVICE, "no answer in time", retry=True, timed_out=True)


def test_a_first_try_cut_short_by_the_budget_is_no_fault_of_the_service() -> None:
    clock = Clock()
    service = Service(TIMEOUT, clock=clock, takes=1000.0)
    with pytest.raises(BudgetSpent):
        call(policy(clock), service, seconds=10.0, attempt_seconds=30.0)
    assert service.timeouts == [10.0]


def test_a_hang_for_the_whole_timeout_of_a_try_is_a_fault() -> None:
    clock = Clock()
    service = Service(*[TIMEOUT] * 9, clock=clock, takes=1000.0)
    with pytest.raises(InfrastructureFault, match="no answer in time") as caught:
        call(policy(clock), service, seconds=100.0, attempt_seconds=30.0)
    assert not isinstance(caught.value, BudgetSpent)
    assert clock.time <= 100.0


def test_a_closed_client_stops_waiting() -> None:
    retrier = Retrier(pause=lambda seconds: retrier.close())
    with pytest.raises(InfrastructureFault, match="the model client was closed"):
        call(retrier, Service(BUSY, BUSY))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:05 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=10.0) == seconds
