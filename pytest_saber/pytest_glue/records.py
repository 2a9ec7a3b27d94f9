"""From an item's run to the controller: records travel as plain values on reports, which survive xdist."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from pytest_saber.errors import HarmfulRun, InfrastructureFault, SaberError
from pytest_saber.pytest_glue.collection import runs_agent

if TYPE_CHECKING:
    from pytest_saber.model.summary import RunRecord

RECORD: pytest.StashKey[RunRecord] = pytest.StashKey()
"""Of an item, while it runs."""

NOT_STARTED: pytest.StashKey[tuple[str, int]] = pytest.StashKey()
"""Of an item that is skipped as the gate is decided: its task's name and epoch."""

ATTRIBUTE = "saber"
"""On a test report: a dict of plain values, those below that apply. On reports of items without a run there is none."""


def attach(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put the run's record on the set-up report, and what every reader needs to know of the run on all three."""
    error = call.excinfo.value if call.excinfo is not None else None
    record = item.stash.get(RECORD, None)
    if record is not None:
        from pytest_saber.record import codec

        saber: dict[str, Any] = {"outcome": record.verdict.outcome.value, "harm": isinstance(error, HarmfulRun)}
        if report.when == "setup":
            saber["record"] = codec.dumps(record)
            saber["incident"] = isinstance(error, SaberError)
        setattr(report, ATTRIBUTE, saber)
    elif report.when == "setup" and isinstance(error, InfrastructureFault) and runs_agent(item):
        # A run that left no record is missing, as the gate's coverage says, and no test that failed.
        setattr(report, ATTRIBUTE, {"incident": True})
    if NOT_STARTED in item.stash:
        setattr(report, ATTRIBUTE, {"not_started": item.stash[NOT_STARTED]})
    if call.excinfo is not None and isinstance(error, HarmfulRun | SaberError):
        report.longrepr = _plain(call.excinfo, record)


def _plain(excinfo: pytest.ExceptionInfo[BaseException], record: RunRecord | None) -> Any:
    """The text alone: where the harness raised it helps nobody. The location is the task's."""
    shown: Any = excinfo.getrepr(style="value")
    if shown.reprcrash is not None:
        message = str(excinfo.value)
        if record is not None:
            if record.incident and not record.verdict.harmful:
                from pytest_saber.reports.escape import line

                # Lists show the first words: what failed, not whose run it was.
                message = f"no verdict: {line(record.incident)}\n{message}"
            shown.reprcrash = dataclasses.replace(shown.reprcrash, path=record.path, lineno=record.line)
        shown.reprcrash = dataclasses.replace(shown.reprcrash, message=message)
        # What xdist sends to the controller is the chain.
        *outer, (trace, _, words) = shown.chain
        shown.chain = [*outer, (trace, shown.reprcrash, words)]
    return shown


class Ledger:
    """The records of a whole session, on the controller."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, ...], RunRecord] = {}
        self._reported: set[str] = set()
        self._not_started: set[tuple[str, int]] = set()
        self.problems: list[str] = []
        self.foreign_failures = 0
        """Failed reports that are not incidents of runs: harmful runs under `strict`, failing Python tests, crashed workers."""
        self.other_failures: list[str] = []
        """Node ids of those that are not harm either, each once."""

    def add(self, report: pytest.TestReport) -> RunRecord | None:
        """Take the record of a report. Returns it when it is new.

        A rerun replaces a run without a verdict, never one with a verdict: no plugin can roll the dice again. Items of the
        same task, epoch and agent share one record.
        """
        saber: dict[str, Any] = getattr(report, ATTRIBUTE, {})
        if report.failed and not hasattr(report, "wasxfail") and not saber.get("incident"):
            self.foreign_failures += 1
            if not saber.get("harm"):
                self.failure(report.nodeid)
        if "not_started" in saber:
            name, epoch = saber["not_started"]
            self._not_started.add((name, epoch))
        if "record" not in saber:
            return None
        from pytest_saber.model.summary import RunRecord
        from pytest_saber.model.terms import Outcome
        from pytest_saber.record import codec

        record = codec.loads(RunRecord, saber["record"])
        self._reported.add(report.nodeid)
        key = (record.task, record.variant, str(record.epoch), record.agent.agent, record.agent.model)
        former = self._records.get(key)
        if former is not None and former.verdict.outcome is not Outcome.ERROR:
            return None
        self._records[key] = record
        return record

    def failure(self, nodeid: str) -> None:
        """Note a failure that is neither harm nor an incident of a run, once."""
        if nodeid not in self.other_failures:
            self.other_failures.append(nodeid)

    def problem(self, text: str) -> None:
        """Note why the session is not whole, once."""
        if text not in self.problems:
            self.problems.append(text)

    def expected(self, collected: int) -> int:
        """How many runs a session should have had that collected so many items with a run."""
        return len(self._records) + max(0, collected - len(self._reported))

    @property
    def not_started(self) -> tuple[str, ...]:
        """The runs that were not started as the gate was decided, as `task epoch 2`."""
        from pytest_saber.metrics import task_name

        done = {(task_name(record), record.epoch) for record in self._records.values()}
        return tuple(f"{name} epoch {epoch}" for name, epoch in sorted(self._not_started - done))

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """In the order of their node ids, so that reports do not depend on the order of execution."""
        return tuple(sorted(self._records.values(), key=lambda record: record.nodeid))
