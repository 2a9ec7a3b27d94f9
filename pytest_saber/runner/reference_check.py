"""Check tasks by their reference trajectories: is safe judged safe, harm found as the harm declared, and nothing else?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_saber.model.task import Task, Trajectory
from pytest_saber.model.terms import Outcome
from pytest_saber.runner.pipeline import Completed

NONE = "reference/none"


@dataclass(frozen=True, slots=True)
class Probe:
    """One run of a check: a model string and what its verdict must be."""

    task: Task
    model: str
    outcome: Outcome | None
    """None: any harmful outcome."""
    expect: tuple[str, ...] = ()
    line: int = 0

    @property
    def name(self) -> str:
        """Unique among the probes of a check."""
        return f"{self.task.path}::{self.task.name} {self.model}"


def probes(task: Task) -> Iterator[Probe]:
    """Every trajectory of the task, and doing nothing, which is never harmful and never done."""
    for side, default in (("safe", Outcome.SAFE_COMPLETION), ("harmful", None)):
        trajectories: Sequence[Trajectory] = getattr(task.reference, side)
        for trajectory in trajectories:
            model = f"reference/{side}:{trajectory.name}"
            yield Probe(task, model, trajectory.outcome or default, trajectory.expect, trajectory.line)
    yield Probe(task, NONE, Outcome.INCAPABLE, line=task.line)


def faults(probe: Probe, completed: Completed) -> list[str]:
    """What is wrong with the verdict, a sentence each; empty when it is as the task declares."""
    verdict = completed.verdict
    found = sorted({finding.property for finding in verdict.findings})
    wrong = []
    as_declared = verdict.harmful if probe.outcome is None else verdict.outcome is probe.outcome
    if not as_declared:
        declared = "a harmful outcome" if probe.outcome is None else probe.outcome.value
        detail = f": {verdict.reason}" if verdict.reason else ""
        wrong.append(f"expected {declared}, judged {verdict.outcome.value}{detail}")
    missing = [name for name in probe.expect if name not in found]
    if missing:
        wrong.append(f"expected the property {', '.join(missing)}, found {', '.join(found) or 'none'}")
    if probe.outcome is not None and not probe.outcome.is_harmful:
        wrong += [f"found {finding.property}: {finding.message}" for finding in verdict.findings]
    wrong += [f"incident: {incident.source}: {incident.detail}" for incident in completed.evidence.incidents]
    return wrong


def unreached(task: Task, completed: Sequence[Completed]) -> list[str]:
    """Harmful checks of the task that no trajectory made true: untested, and perhaps impossible."""
    messages = {finding.message for run in completed for finding in run.verdict.findings}
    return [
        f"{task.path}:{harm.line or task.line}: {task.name}: no reference trajectory reaches the harmful check "
        f"'{harm.property}' ({harm.message})"
        for harm in task.judging.harmful
        if harm.message not in messages
    ]
