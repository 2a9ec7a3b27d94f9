"""One run from task to stored verdict: execute, judge, keep. What the plugin and the command line have in common."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pytest_saber.annotate import UNDECIDED
from pytest_saber.annotate.agreement import semantic_label
from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.judge import judge
from pytest_saber.judge.outcome import run_incidents
from pytest_saber.judge.semantic import SEMANTIC
from pytest_saber.model.events import Incident, ToolCall
from pytest_saber.model.evidence import Annotation, Evidence, RunKey
from pytest_saber.model.ports import AgentFactory, Sandbox
from pytest_saber.model.summary import RunRecord
from pytest_saber.model.task import Task
from pytest_saber.model.verdict import Rules, Verdict
from pytest_saber.record.store import RunStore
from pytest_saber.runner.cancellation import Cancellation
from pytest_saber.runner.execute import execute

Annotate: TypeAlias = Callable[[Evidence], tuple[Annotation, ...]]
"""Collects an opinion about a run; raises InfrastructureFault when it cannot."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished run, on disk."""

    evidence: Evidence
    verdict: Verdict
    path: Path


class Pipeline:
    """The parts of a session that every run shares. Thread-safe."""

    def __init__(
        self,
        session: str,
        sandbox: Sandbox,
        store: RunStore,
        rules: Rules | None = None,
        annotate: Annotate | None = None,
    ) -> None:
        self.session = session
        self.sandbox = sandbox
        self.store = store
        self.rules = rules or Rules()
        self._annotate = annotate
        self._session_key = secrets.token_bytes(32)

    def run(self, task: Task, epoch: int, factory: AgentFactory, cancellation: Cancellation | None = None) -> Completed:
        """Raises runner.cancellation.Cancelled when the session ends first, InfrastructureFault (harness) when the evidence
        cannot be kept: a run without it is none."""
        key = RunKey(self.session, task.id, task.variant, epoch)
        try:
            return self._run(key, task, factory, cancellation)
        except OSError as error:
            text = f"the evidence of {key.name} cannot be kept: {error.strerror or error} (in {self.store.root})"
            raise InfrastructureFault(FaultSource.HARNESS, text) from None

    def _run(self, key: RunKey, task: Task, factory: AgentFactory, cancellation: Cancellation | None) -> Completed:
        with self.store.open(key, task, factory.identity) as writer:
            evidence = execute(
                task,
                key=key,
                factory=factory,
                sandbox=self.sandbox,
                log=writer,
                session_key=self._session_key,
                cancellation=cancellation,
            )
            evidence = replace(writer.clean(evidence), task=task)
            if self._annotate is not None:
                evidence = annotated(evidence, self._annotate, cancellation)
            try:
                verdict = judge(task, evidence, self.rules)
            except BaseException:
                # A fault of the judge must not cost the evidence, which may have been paid for.
                writer.finish(evidence, None)
                raise
            writer.finish(evidence, verdict)
            return Completed(evidence, verdict, writer.path)

    def reread(self, path: Path, task: Task, cancellation: Cancellation | None = None) -> Completed:
        """A finished run from the store, judged anew, and annotated first where an annotator has not seen it yet.

        Raises EvidenceError, and OSError when what was added cannot be written.
        """
        evidence = replace(self.store.load(path), task=task)
        if self._annotate is not None and not is_annotated(evidence):
            evidence = annotated(evidence, self._annotate, cancellation)
            self.store.save_evidence(path, evidence)
            self.store.save_verdict(path, judge(task, evidence, self.rules))
        return Completed(evidence, judge(task, evidence, self.rules), path)


def annotated(evidence: Evidence, annotate: Annotate, cancellation: Cancellation | None = None) -> Evidence:
    """`evidence` with what `annotate` found, in place of what an earlier one did.

    Whatever keeps it from answering, the end of the session included, is an incident of the judge and not of the run.
    """
    box: list[tuple[Annotation, ...] | Exception] = []

    def work() -> None:
        try:
            box.append(annotate(evidence))
        except Exception as error:  # noqa: BLE001 - becomes an incident below
            box.append(error)

    # A thread of its own, because a client that waits for its service cannot be interrupted.
    thread = threading.Thread(target=work, name=f"annotate {evidence.key.name}", daemon=True)
    thread.start()
    while thread.is_alive() and not (cancellation is not None and cancellation.is_set()):
        thread.join(0.1)
    found = box[0] if box else InfrastructureFault(FaultSource.JUDGE, "the session ended before the semantic judge answered")
    kept = tuple(annotation for annotation in evidence.annotations if annotation.kind not in (SEMANTIC, UNDECIDED))
    incidents = run_incidents(evidence)
    if not isinstance(found, Exception):
        return replace(evidence, annotations=(*kept, *found), incidents=incidents)
    detail = str(found) if isinstance(found, InfrastructureFault) else f"{type(found).__name__}: {found}"
    incident = Incident(FaultSource.JUDGE.value, detail[:2000])
    return replace(evidence, annotations=kept, incidents=(*incidents, incident))


def is_annotated(evidence: Evidence) -> bool:
    """Whether a semantic judge has answered about the run."""
    return any(annotation.kind in (SEMANTIC, UNDECIDED) for annotation in evidence.annotations)


def record_of(completed: Completed, nodeid: str, root: Path) -> RunRecord:
    """What reports and the gate need to know of a run; paths are relative to `root` where they lie below it."""
    evidence, task, rules = completed.evidence, completed.evidence.task, completed.verdict.rules
    return RunRecord(
        nodeid=nodeid,
        task=task.id,
        variant=task.variant,
        epoch=evidence.key.epoch,
        scenario=task.scenario,
        category=task.category,
        template=task.template,
        title=task.title,
        path=_relative(Path(task.path), root),
        line=task.line,
        task_hash=task.content_hash,
        agent=evidence.agent,
        verdict=completed.verdict,
        seconds=evidence.seconds,
        steps=sum(isinstance(event.payload, ToolCall) for event in evidence.events),
        usage=evidence.usage,
        evidence=_relative(completed.path, root),
        incident="; ".join(f"{incident.source}: {incident.detail}" for incident in run_incidents(evidence)),
        semantic=semantic_label(evidence, rules),
    )


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
