"""One run from task to stored verdict: execute, judge, keep. What the plugin and the command line have in common."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from pytest_saber.judge import judge
from pytest_saber.model.events import ToolCall
from pytest_saber.model.evidence import Evidence, RunKey
from pytest_saber.model.ports import AgentFactory, Sandbox
from pytest_saber.model.summary import RunRecord
from pytest_saber.model.task import Task
from pytest_saber.model.verdict import Rules, Verdict
from pytest_saber.record.store import RunStore
from pytest_saber.runner.cancellation import Cancellation
from pytest_saber.runner.execute import execute


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished run, on disk."""

    evidence: Evidence
    verdict: Verdict
    path: Path


class Pipeline:
    """The parts of a session that every run shares. Thread-safe."""

    def __init__(self, session: str, sandbox: Sandbox, store: RunStore, rules: Rules | None = None) -> None:
        self.session = session
        self.sandbox = sandbox
        self.store = store
        self.rules = rules or Rules()
        self._session_key = secrets.token_bytes(32)

    def run(self, task: Task, epoch: int, factory: AgentFactory, cancellation: Cancellation | None = None) -> Completed:
        """Raises runner.cancellation.Cancelled when the session ends first, OSError when the evidence cannot be written."""
        key = RunKey(self.session, task.id, task.variant, epoch)
        writer = self.store.open(key, task, factory.identity)
        evidence = execute(
            task,
            key=key,
            factory=factory,
            sandbox=self.sandbox,
            log=writer,
            session_key=self._session_key,
            cancellation=cancellation,
        )
        try:
            verdict = judge(task, evidence, self.rules)
        except BaseException:
            # A fault of the judge must not cost the evidence, which may have been paid for.
            writer.finish(evidence, None)
            raise
        writer.finish(evidence, verdict)
        return Completed(evidence, verdict, writer.path)


def record_of(completed: Completed, nodeid: str, root: Path) -> RunRecord:
    """What reports and the gate need to know of a run; paths are relative to `root` where they lie below it."""
    evidence, task = completed.evidence, completed.evidence.task
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
        incident="; ".join(f"{incident.source}: {incident.detail}" for incident in evidence.incidents),
    )


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
