"""The text of one run's test case. GitHub's viewers show nothing of a JUnit file but this, so it stands alone."""

from __future__ import annotations

from pytest_saber.metrics import task_name
from pytest_saber.model.summary import RunRecord
from pytest_saber.model.terms import Scenario
from pytest_saber.model.verdict import Finding, Proof
from pytest_saber.model.words import counted
from pytest_saber.reports.escape import LINE, line, xml

SCENARIOS = {
    Scenario.EMBEDDED_INJECTION: "embedded injection",
    Scenario.RISKY_SELF_SELECTION: "risky self-selection",
    Scenario.CONTEXTUAL_HAZARD: "contextual hazard",
}
_FINDINGS = 10
_PROOFS = 5


def render(record: RunRecord) -> str:
    """What a harmful run did, with the proof of every finding and where the evidence lies."""
    verdict = record.verdict
    lines = [f"{verdict.outcome.value}: {headline(record)}", *_who(record)]
    if verdict.cause is not None:
        lines.append(f"Cause: {verdict.cause.value}")
    lines += [text for holds, text in _EFFECTS if getattr(verdict, holds)]
    count = len(verdict.findings)
    lines.append(f"{counted(count, 'finding')}:")
    for number, finding in enumerate(verdict.findings[:_FINDINGS], 1):
        lines.append(f"  {number}. {finding_text(finding)}")
        lines += [f"       {proof_text(proof)}" for proof in finding.proof[:_PROOFS]]
        if len(finding.proof) > _PROOFS:
            lines.append(f"       and {counted(len(finding.proof) - _PROOFS, 'more proof')}")
    if count > _FINDINGS:
        lines.append(f"  and {counted(count - _FINDINGS, 'more finding')}")
    if record.incident:
        lines.append(f"An incident stopped the run after this: {line(record.incident)}")
    lines += _where(record)
    return xml("\n".join(lines), limit=40_000)


def render_incident(record: RunRecord) -> str:
    """Why a run has no verdict. Says plainly that the agent was not found harmful or safe."""
    lines = [
        f"No verdict: {headline(record)}",
        *_who(record),
        f"Incident: {line(record.incident or record.verdict.reason or 'no reason recorded', 1000)}",
        "An incident is no verdict. It says nothing about the agent's safety; put its cause right, and run the task again.",
        *_where(record),
    ]
    return xml("\n".join(lines))


def headline(record: RunRecord) -> str:
    """Task, epoch, scenario and category in one line."""
    return (
        f"{line(task_name(record))} epoch {record.epoch}, scenario {record.scenario.value} "
        f"({SCENARIOS[record.scenario]}), {record.category.value}"
    )


def finding_text(finding: Finding) -> str:
    """The property that was violated and the judge's sentence about it."""
    return f"{line(finding.property)}: {line(finding.message)}"


def proof_text(proof: Proof, limit: int = LINE) -> str:
    """A proof with what it points to: the number of an event, or a path. Not yet escaped for Markdown."""
    where = [f"event {proof.event}"] if proof.event is not None else []
    if proof.path is not None and not proof.text.startswith(proof.path):
        where.append(proof.path)
    return line(": ".join([", ".join(where), proof.text] if where else [proof.text]), limit)


_EFFECTS = (
    ("propagating", "The effect outlives or leaves the workspace."),
    ("compositional", "No single event is the violation; a sequence of them is."),
)


def _who(record: RunRecord) -> list[str]:
    return [
        f"Task: {line(record.title)} ({line(record.path)}:{record.line})",
        f"Agent: {line(record.agent.agent)} with {line(record.agent.model)}",
    ]


def _where(record: RunRecord) -> list[str]:
    return [f"Evidence: {line(record.evidence)}"] if record.evidence else []
