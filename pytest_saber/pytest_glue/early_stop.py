"""`--saber-stop-when-decided`: no further run starts once the gate is decided, for certain or by the sequential test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_saber.pytest_glue.collection import task_of
from pytest_saber.pytest_glue.decision import Gate
from pytest_saber.pytest_glue.records import Ledger

if TYPE_CHECKING:
    from pytest_saber.gate.stopping import Decision
    from pytest_saber.model.evidence import AgentIdentity
    from pytest_saber.model.summary import RunRecord

PLAN = "saber_plan"
"""Attribute of the first report of an xdist worker: its plan, each record as text."""


class EarlyStop:
    """Watches the records of a whole session, on the controller. Decided once, for good.

    `plan` has a record for each run of the session, with any verdict and agent; None when one cannot be foreseen.
    """

    def __init__(self, gate: Gate, ledger: Ledger, plan: Sequence[RunRecord] | None, session: str, seed: str) -> None:
        from pytest_saber.gate import sequential
        from pytest_saber.pytest_glue import order

        self._gate = gate
        self._ledger = ledger
        self._plan = plan
        self._session = session
        self._blocks = sequential.blocks(order.cells((run.template, run.scenario, run.category) for run in plan or ()), seed)
        self._seen = -1
        self._decision: Decision | None = None

    def reason(self, agent: AgentIdentity) -> str:
        """Why the next item of `agent` need not run; empty while it must."""
        if self._decision is None and self._seen != len(self._ledger.records):
            # Only a new record can decide.
            self._seen = len(self._ledger.records)
            self._decision = self._decide(agent)
        if self._decision is None:
            return ""
        level = self._decision.level
        how = "whatever this run would do" if level is None else f"by a sequential test at level {level:g}"
        return f"not run: the gate is {self._decision.result.status} already, {how}"

    def final(self, agent: AgentIdentity) -> Decision | None:
        """The decision at the end, when the runs that were under way have been recorded too.

        None also when it does not hold any more: incidents of those runs can make the session inconclusive.
        """
        return None if self._decision is None else self._decide(agent)

    def _decide(self, agent: AgentIdentity) -> Decision | None:
        from pytest_saber import metrics
        from pytest_saber.gate import stopping

        if self._plan is None:
            return None
        records = self._ledger.records
        done = {(record.task, record.variant, record.epoch) for record in records}
        remaining = [replace(run, agent=agent) for run in self._plan if (run.task, run.variant, run.epoch) not in done]
        summary = metrics.summarize(
            records,
            session=self._session,
            agent=agent,
            expected=len(records) + len(remaining),
            problems=self._ledger.problems,
        )
        settled = self._decision.tested if self._decision is not None else ()
        policy, baseline = self._gate.policy, self._gate.baseline
        return stopping.decided(summary, remaining, policy, baseline, blocks=self._blocks, settled=settled)


def foresee(items: Sequence[pytest.Item]) -> list[RunRecord] | None:
    """A record for each run of `items`, of no agent and with a verdict that means nothing; None when one is unknown."""
    from pytest_saber.model.evidence import AgentIdentity
    from pytest_saber.model.summary import RunRecord
    from pytest_saber.model.terms import Outcome
    from pytest_saber.model.verdict import Verdict

    plan: dict[tuple[str, str, int], RunRecord] = {}
    for item in items:
        found = task_of(item)
        if found is None:
            return None
        task, epoch = found
        record = RunRecord(
            nodeid=item.nodeid,
            task=task.id,
            variant=task.variant,
            epoch=epoch,
            scenario=task.scenario,
            category=task.category,
            template=task.template,
            title=task.title,
            path=task.path,
            line=task.line,
            task_hash=task.content_hash,
            agent=AgentIdentity("", ""),
            verdict=Verdict(Outcome.INCAPABLE, False, None, None),
        )
        plan.setdefault((task.id, task.variant, epoch), record)
    return list(plan.values())
