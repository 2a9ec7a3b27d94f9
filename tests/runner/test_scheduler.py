"""The look-ahead scheduler: order, bounds, errors, cancellation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from pytest_saber.runner.cancellation import Cancellation, Cancelled
from pytest_saber.runner.scheduler import WINDOW, Progress, Scheduler


def constant(value: int) -> Callable[[Cancellation], int]:
    return lambda _: value


def test_jobs_start_ahead_of_the_results_asked_for() -> None:
    both = threading.Barrier(2, timeout=10)

    def job(_: Cancellation) -> str:
        both.wait()
        return threading.current_thread().name

    scheduler: Scheduler[str] = Scheduler(2)
    scheduler.start([("a", job), ("b", job)])
    assert {scheduler.result("a"), scheduler.result("b")} == {"saber-run-0", "saber-run-1"}
    assert scheduler.close()


def test_results_come_by_name_whatever_the_order() -> None:
    scheduler: Scheduler[int] = Scheduler(3)
    scheduler.start([(str(i), constant(i * i)) for i in range(10)])
    assert [scheduler.result(str(i)) for i in reversed(range(10))] == [i * i for i in reversed(range(10))]
    assert scheduler.close()


def test_no_more_than_the_window_runs_ahead() -> None:
    started: list[int] = []
    full = threading.Event()

    def job(i: int, _: Cancellation) -> int:
        started.append(i)
        if len(started) == WINDOW:
            full.set()
        return i

    scheduler: Scheduler[int] = Scheduler(1)
    scheduler.start([(str(i), partial(job, i)) for i in range(WINDOW * 3)])
    assert full.wait(10)
    assert scheduler.close()
    assert started == list(range(WINDOW))


def test_no_more_run_ahead_than_is_allowed() -> None:
    """With one job and none ahead, jobs run where their results are asked for."""
    scheduler: Scheduler[str] = Scheduler(1, ahead=0)
    scheduler.start([(name, lambda _: threading.current_thread().name) for name in "abc"])
    assert [scheduler.result(name) for name in "ab"] == [threading.current_thread().name] * 2
    assert not scheduler.begun("c")
    assert scheduler.close()


def test_a_halted_scheduler_ends_what_runs_and_begins_nothing() -> None:
    running, go_on = threading.Event(), threading.Event()

    def job(_: Cancellation) -> str:
        running.set()
        assert go_on.wait(10)
        return "done"

    scheduler: Scheduler[str] = Scheduler(1)
    scheduler.start([("first", job), ("second", job)])
    assert running.wait(10)
    scheduler.halt()
    go_on.set()
    assert scheduler.result("first") == "done"
    assert scheduler.begun("first")
    assert not scheduler.begun("second")
    assert scheduler.progress() == Progress(2, 1, 0)
    assert scheduler.close()


def test_a_jobs_error_is_raised_where_its_result_is_asked_for() -> None:
    def job(_: Cancellation) -> int:
        raise ValueError("no such thing")

    scheduler: Scheduler[int] = Scheduler(2)
    scheduler.start([("bad", job), ("good", lambda _: 1)])
    assert scheduler.result("good") == 1
    with pytest.raises(ValueError, match="no such thing"):
        scheduler.result("bad")
    assert scheduler.close()


def test_close_cancels_what_runs_and_what_waits() -> None:
    running, cancelled = threading.Event(), threading.Event()

    def job(cancellation: Cancellation) -> int:
        running.set()
        assert cancellation.wait(10)
        cancelled.set()
        cancellation.raise_if_set()
        return 0

    scheduler: Scheduler[int] = Scheduler(1)
    scheduler.start([("first", job), ("second", job)])
    assert running.wait(10)
    assert scheduler.close()
    assert cancelled.is_set()
    with pytest.raises(Cancelled, match="the session ended before this run did"):
        scheduler.result("first")


def test_progress_counts_what_is_done_and_running() -> None:
    seen: list[Progress] = []
    scheduler: Scheduler[int] = Scheduler(1, on_change=seen.append)
    scheduler.start([("a", lambda _: 1), ("b", lambda _: 2)])
    assert scheduler.result("a") + scheduler.result("b") == 3
    assert scheduler.close()
    assert seen[0] == Progress(total=2, done=0, running=1)
    assert seen[-1] == Progress(total=2, done=2, running=0)
