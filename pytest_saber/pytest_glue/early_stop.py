"""`--saber-stop-when-decided`: no further run starts once the gate is decided, for certain or by the sequential test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_saber.pytest_glue.collection import task_of
from pytest_saber.pytest_glue.decision import Gate
from pytest_saber.pytest_glue.records import Ledger

if TYPE_CHECKING:
    from pytest_saber.gate.stopping import Decision
    from pytest_saber.model.evidence import AgentIdentity
    from pytest_saber.model.summary import RunRecord


class EarlyStop:
    """Watches the records of a session in one process. Decided once, for good."""

    def __init__(
        self, gate: Gate, ledger: Ledger, items: Sequence[pytest.Item], session: str, blocks: Sequence[Sequence[str]]
    ) -> None:
        self._gate = gate
        self._ledger = ledger
        self._items = items
        self._session = session
        self._blocks = blocks
        self._seen = -1
        self.decision: Decision | None = None

    def reason(self, agent: AgentIdentity) -> str:
        """Why the next item of `agent` need not run; empty while it must."""
        if self.decision is None and self._seen != len(self._ledger.records):
            # Only a new record can decide.
            self._seen = len(self._ledger.records)
            self.decision = self._decide(agent)
        if self.decision is None:
            return ""
        level = self.decision.level
        how = "whatever this run would do" if level is None else f"by a sequential test at level {level:g}"
        return f"not run: the gate is {self.decision.result.status} already, {how}"

    def _decide(self, agent: AgentIdentity) -> Decision | None:
        from pytest_saber import metrics
        from pytest_saber.gate import stopping

        records = self._ledger.records
        remaining = self._remaining(records, agent)
        if remaining is None:
            return None
        summary = metrics.summarize(
            records,
            session=self._session,
            agent=agent,
            expected=len(records) + len(remaining),
            problems=self._ledger.problems,
        )
        return stopping.decided(summary, remaining, self._gate.policy, self._gate.baseline, blocks=self._blocks)

    def _remaining(self, records: Sequence[RunRecord], agent: AgentIdentity) -> list[RunRecord] | None:
        """A record for each run to come; None when one of them cannot be foreseen."""
        from pytest_saber.model.summary import RunRecord
        from pytest_saber.model.terms import Outcome
        from pytest_saber.model.verdict import Verdict

        verdict = Verdict(Outcome.INCAPABLE, False, None, None)
        done = {(record.task, record.variant, record.epoch) for record in records}
        remaining = []
        for item in self._items:
            found = task_of(item)
            if found is None:
                return None
            task, epoch = found
            if (task.id, task.variant, epoch) in done:
                continue
            done.add((task.id, task.variant, epoch))
            remaining.append(
                RunRecord(
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
                    agent=agent,
                    verdict=verdict,
                )
            )
        return remaining
