"""What a process that executes runs holds: the pipeline, the look-ahead, and what they started.

Made when the first test asks for a run, so that a session without a task loads nothing. Look-ahead begins once the first
item of an agent is being set up: its `saber_agent` fixture, a user's own included, then has its value, and every later
item that uses the same fixture and nothing unusual can start before its turn.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_saber.errors import EvidenceError, HarmfulRun, InfrastructureFault
from pytest_saber.pytest_glue.collection import AGENT, EPOCH, TASK, fixture_definitions, runs_agent, task_of
from pytest_saber.pytest_glue.settings import RULE_KINDS, Settings, kinds

if TYPE_CHECKING:
    from pytest_saber.annotate.semantic import SemanticJudge
    from pytest_saber.model.evidence import Evidence
    from pytest_saber.model.ports import AgentFactory, Sandbox, Workspace
    from pytest_saber.model.summary import RunRecord
    from pytest_saber.model.task import Task
    from pytest_saber.model.verdict import Rules, Verdict
    from pytest_saber.pytest_glue.progress import ProgressLine
    from pytest_saber.runner.cancellation import Cancellation
    from pytest_saber.runner.pipeline import Completed, Pipeline
    from pytest_saber.runner.scheduler import Scheduler
    from pytest_saber.sandbox.engine import Patience


@dataclass(frozen=True, slots=True)
class SaberRun:
    """A finished run, as the `saber_run` fixture gives it."""

    evidence: Evidence
    verdict: Verdict
    record: RunRecord
    path: Path
    """The folder of the run's evidence."""

    def check(self) -> None:
        """Raise HarmfulRun when the run was harmful; its text stands alone."""
        __tracebackhide__ = True
        if self.verdict.harmful:
            from pytest_saber.reports import failure

            raise HarmfulRun(failure.render(self.record))


class Runtime:
    """The runs of one process. `jobs` of 0 means no look-ahead: each run happens when its item asks for it."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        session: str,
        jobs: int,
        progress: ProgressLine,
        judge: SemanticJudge | None = None,
    ) -> None:
        self.config = config
        self.settings = settings
        self.session = session
        self.items: Sequence[pytest.Item] = ()
        self._jobs = jobs
        self._progress = progress
        self._judge = judge
        self._resume = settings["resume"].flag
        self._pipeline: Pipeline | None = None
        self._cancellation: Cancellation | None = None
        self._patience: Patience | None = None
        """With the engine, over all runs that try to connect to it."""
        self._plans: dict[tuple[Any, ...], Scheduler[Completed]] = {}
        self._planned: set[str] = set()
        """Node ids of items that run ahead and have not asked for their run yet."""
        self._done: dict[tuple[Any, ...], Path] = {}
        """Runs with a verdict. Items of the same task, epoch and agent share them, and a rerun cannot roll the dice again."""
        self._workspaces = itertools.count(1)
        self._lock = threading.Lock()

    def run(self, request: pytest.FixtureRequest, task: Task, epoch: int, factory: AgentFactory) -> SaberRun:
        """The run of the requesting item: taken from the look-ahead, or done now.

        Raises InfrastructureFault for a run without a verdict, whose record is kept in the item's stash all the same.
        """
        from pytest_saber.pytest_glue.records import RECORD
        from pytest_saber.reports import junit
        from pytest_saber.runner.pipeline import record_of

        item = request.node
        with self._progress.waiting():
            completed = self._completed(item, task, epoch, factory)
        record = record_of(completed, item.nodeid, self.config.rootpath)
        item.stash[RECORD] = record
        # pytest copies the list to the item's three reports; JUnit keeps what the last one has.
        item.user_properties.extend(junit.properties(record))
        if not completed.verdict.outcome.is_harmful and not completed.verdict.outcome.is_safe:
            raise _incident(completed, record)
        return SaberRun(completed.evidence, completed.verdict, record, completed.path)

    def begun(self, item: pytest.Item, task: Task, epoch: int, factory: AgentFactory) -> bool:
        """Begin no further run ahead of its item. Whether that of `item` has begun, or is there from before: it counts."""
        for plan in self._plans.values():
            plan.halt()
        agent = agent_of(item)
        if (agent, task.name, task.content_hash, epoch) in self._done:
            return True
        if item.nodeid in self._planned and self._plans[agent].begun(item.nodeid):
            return True
        return self._resume and self._finished(self.pipeline, task, epoch, factory) is not None

    def workspace(self, task: Task, epoch: int) -> AbstractContextManager[Workspace]:
        """A provisioned workspace without an agent, for a hand-written test."""
        from pytest_saber.model import canary
        from pytest_saber.model.evidence import RunKey

        key = RunKey(self.session, task.id, f"{task.variant}-w{next(self._workspaces)}".lstrip("-"), epoch)
        # A fixed key is enough here: no agent under test sees these values.
        canaries = canary.derive(task.workspace.secrets, self.session.encode(), key)
        return self.pipeline.sandbox.open(task.workspace, task.limits, key, canaries)

    @property
    def pipeline(self) -> Pipeline:
        """Made when first needed."""
        with self._lock:
            if self._pipeline is None:
                from pytest_saber.providers import secrets
                from pytest_saber.pytest_glue.lazy_sandbox import LazySandbox
                from pytest_saber.record.store import RunStore
                from pytest_saber.runner.pipeline import Pipeline

                store = RunStore(self.settings["runs_dir"].path(self.config), redact=secrets(os.environ))
                self._pipeline = Pipeline(self.session, LazySandbox(self._connect), store, rules_of(self.settings), self._judge)
            return self._pipeline

    def _connect(self) -> Sandbox:
        sandbox: Sandbox | None = self.config.hook.pytest_saber_sandbox(config=self.config, session_name=self.session)
        if sandbox is None:
            from pytest_saber.sandbox.docker import DockerSandbox
            from pytest_saber.sandbox.engine import Patience

            # Connecting is tried by one run after the other, never by two at once.
            self._patience = self._patience or Patience()
            image = self.settings.text("image") or None
            sandbox = DockerSandbox(self.session, image=image, progress=self._progress.say, patience=self._patience)
        return sandbox

    def close(self) -> None:
        """Stop every run and remove everything of this process. Calling it again does nothing."""
        if self._cancellation is not None:
            self._cancellation.set()
        plans, self._plans = list(self._plans.values()), {}
        for plan in plans:
            plan.close()
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.sandbox.close()
        if self._judge is not None:
            self._judge.close()

    # --- look-ahead ------------------------------------------------------------------------------------------------

    def _completed(self, item: pytest.Item, task: Task, epoch: int, factory: AgentFactory) -> Completed:
        agent = agent_of(item)
        shared = (agent, task.name, task.content_hash, epoch)
        if shared in self._done:
            return self.pipeline.reread(self._done[shared], task)
        completed = self._scheduled(item, agent, task, epoch, factory)
        if completed.verdict.outcome.is_harmful or completed.verdict.outcome.is_safe:
            self._done[shared] = completed.path
        return completed

    def _scheduled(self, item: pytest.Item, agent: tuple[Any, ...], task: Task, epoch: int, factory: AgentFactory) -> Completed:
        plan = self._plans.get(agent)
        if plan is None and self._jobs > 0 and getattr(agent[0], "scope", None) == "session":
            plan = self._plan(item, agent, factory)
        if plan is not None and item.nodeid in self._planned:
            self._planned.discard(item.nodeid)
            return plan.result(item.nodeid)
        # Asked for again after an incident, or not foreseeable: an overridden task, a narrower agent fixture, an xdist worker.
        return self.perform(task, epoch, factory, self._cancel())

    def _plan(self, first: pytest.Item, agent: tuple[Any, ...], factory: AgentFactory) -> Scheduler[Completed]:
        from pytest_saber.runner.scheduler import Scheduler

        # What has begun when the gate is decided is paid for without need; the run that its item waits for is one of the jobs.
        ahead = self._jobs - 1 if self.settings["stop_when_decided"].flag else None
        plan: Scheduler[Completed] = Scheduler(self._jobs, self._progress.on_change, ahead)
        self._plans[agent] = plan
        work = []
        runs = set()
        start = next((index for index, item in enumerate(self.items) if item is first), len(self.items))
        for item in self.items[start:]:
            found = task_of(item)
            if found is None or item.nodeid in self._planned or not _foreseeable(item, agent):
                continue
            task, epoch = found
            if (task.name, epoch) in runs:
                # Shares the run of an earlier item.
                continue
            runs.add((task.name, epoch))
            self._planned.add(item.nodeid)
            work.append((item.nodeid, _job(self, task, epoch, factory)))
        plan.start(work)
        return plan

    def perform(self, task: Task, epoch: int, factory: AgentFactory, cancellation: Cancellation) -> Completed:
        """Execute and judge one run, or read it back when this session goes on with an earlier one."""
        pipeline = self.pipeline
        completed = self._earlier(pipeline, task, epoch, factory, cancellation) if self._resume else None
        completed = completed or pipeline.run(task, epoch, factory, cancellation)
        self._progress.count(completed.verdict.harmful)
        return completed

    def _earlier(
        self, pipeline: Pipeline, task: Task, epoch: int, factory: AgentFactory, cancellation: Cancellation
    ) -> Completed | None:
        path = self._finished(pipeline, task, epoch, factory)
        if path is None:
            return None
        try:
            return pipeline.reread(path, task, cancellation)
        except EvidenceError:  # damaged evidence is not a finished run: resuming repeats it
            return None

    def _finished(self, pipeline: Pipeline, task: Task, epoch: int, factory: AgentFactory) -> Path | None:
        return pipeline.store.finished(task, epoch, factory.identity, session=self.session)

    def _cancel(self) -> Cancellation:
        if self._cancellation is None:
            from pytest_saber.runner.cancellation import Cancellation

            self._cancellation = Cancellation()
        return self._cancellation


def rules_of(settings: Settings) -> Rules:
    """Which kinds of finding count in this session."""
    from pytest_saber.model.verdict import Rules

    counting = kinds(settings.text("rules"))
    return Rules(**{kind: kind in counting for kind in RULE_KINDS})


def _job(runtime: Runtime, task: Task, epoch: int, factory: AgentFactory) -> Any:
    return lambda cancellation: runtime.perform(task, epoch, factory, cancellation)


def agent_of(item: pytest.Item) -> tuple[Any, ...]:
    """What tells the agents of items apart: the fixture's definition, and its parameter where there are several models."""
    definition = fixture_definitions(item).get(AGENT, (None,))[-1]
    callspec = getattr(item, "callspec", None)
    return (definition, callspec.params.get(AGENT) if callspec is not None else None)


def _foreseeable(item: pytest.Item, agent: tuple[Any, ...]) -> bool:
    """Whether an item's run will be what its parametrisation says, and will be asked for."""
    definitions = fixture_definitions(item)
    return (
        runs_agent(item)
        and agent_of(item) == agent
        and all(len(definitions.get(name, ())) == 1 for name in ("saber_run", TASK, EPOCH))
        and next(item.iter_markers("skip"), None) is None
        and next(item.iter_markers("skipif"), None) is None
    )


def _incident(completed: Completed, record: RunRecord) -> InfrastructureFault:
    """What set-up raises for a run that an infrastructure fault ended."""
    from pytest_saber.errors import FaultSource
    from pytest_saber.reports import failure

    incidents = completed.evidence.incidents
    source = FaultSource(incidents[0].source) if incidents else FaultSource.HARNESS
    return InfrastructureFault(source, failure.render_incident(record))
