"""Execute one task variant: provision, let the agent work, read the state, and return the evidence."""

from __future__ import annotations

import dataclasses
import threading
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pytest_saber import __version__
from pytest_saber.errors import FaultSource, InfrastructureFault, SaberError, TaskError, WorkspaceLost
from pytest_saber.model import canary
from pytest_saber.model.events import JSON, Event, Incident, LimitReached, Message
from pytest_saber.model.evidence import AgentIdentity, Evidence, RunKey, Termination, Usage
from pytest_saber.model.ports import AgentFactory, AgentResult, AgentSession, Recorder, Sandbox, Workspace
from pytest_saber.model.state import State
from pytest_saber.model.task import Step, Task
from pytest_saber.model.terms import TerminationReason
from pytest_saber.runner.agent_view import RecordedWorkspace, task_for
from pytest_saber.runner.cancellation import Cancellation, Cancelled
from pytest_saber.runner.toolbox import RunClock, RunOver, WorkspaceToolbox

GRACE_SECONDS = 15.0
"""How long an agent may go on after the run's time limit before the run ends without it."""


class EventLog(Recorder, Protocol):
    """A recorder that can be read back."""

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far."""
        ...


def execute(
    task: Task,
    *,
    key: RunKey,
    factory: AgentFactory,
    sandbox: Sandbox,
    log: EventLog,
    session_key: bytes,
    cancellation: Cancellation | None = None,
    grace: float = GRACE_SECONDS,
) -> Evidence:
    """Run `task` once. Infrastructure faults become incidents in the evidence; raises only Cancelled."""
    cancellation = cancellation or Cancellation()
    cancellation.raise_if_set()
    run = _Run(task, key, factory, sandbox, log, canary.derive(task.workspace.secrets, session_key, key), cancellation, grace)
    evidence = run.perform()
    cancellation.raise_if_set()
    return evidence


class _Run:
    """What is known of a run so far."""

    def __init__(
        self,
        task: Task,
        key: RunKey,
        factory: AgentFactory,
        sandbox: Sandbox,
        log: EventLog,
        canaries: Mapping[str, str],
        cancellation: Cancellation,
        grace: float,
    ) -> None:
        self.task = task
        self.key = key
        self.factory = factory
        self.sandbox = sandbox
        self.log = log
        self.canaries = canaries
        self.cancellation = cancellation
        self.grace = grace
        self.incidents: list[Incident] = []
        self.baseline = State()
        self.final: State | None = None
        self.agent: AgentIdentity = factory.identity
        self.result = AgentResult("", Termination(TerminationReason.INCIDENT, "the run did not start"))

    def perform(self) -> Evidence:
        started = datetime.now(UTC).isoformat(timespec="seconds")
        begin = time.monotonic()
        platform: dict[str, str] = {"pytest-saber": __version__}
        try:
            platform.update(self.sandbox.describe())
            with self.sandbox.open(self.task.workspace, self.task.limits, self.key, self.canaries) as workspace:
                self.baseline = workspace.baseline()
                self.result = self._agent(workspace)
                self.cancellation.raise_if_set()
                for limit in workspace.limits_hit():
                    self.log.record(LimitReached("workspace", limit))
                self._read_final(workspace)
        except InfrastructureFault as fault:
            self._incident(fault.source, str(fault))
        except WorkspaceLost as lost:
            # Before the agent acted, a workspace that ends is the task's or the engine's doing.
            self._incident(FaultSource.ENGINE, f"the workspace ended while it was built: {lost}")
        except TaskError as error:
            self._incident(FaultSource.HARNESS, f"the task could not be set up: {error}")
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours is an incident of this run, and its evidence is kept
            where = "".join(traceback.format_exception(error)[-3:])
            self._incident(FaultSource.HARNESS, f"{type(error).__name__}: {error}\n{where}")
        return Evidence(
            key=self.key,
            task=self.task,
            agent=self.agent,
            events=self.log.events,
            baseline=self.baseline,
            final=self.final,
            final_response=self.result.final_response,
            termination=self.result.termination,
            incidents=tuple(self.incidents),
            canaries=self.canaries,
            usage=self.result.usage,
            started=started,
            seconds=round(time.monotonic() - begin, 3),
            platform=platform,
        )

    def _agent(self, workspace: Workspace) -> AgentResult:
        """Let the agent work in a thread of its own, so that one that hangs ends its run and no more."""
        task = filled(self.task, self.canaries)
        limits = task.limits
        clock = RunClock(limits.seconds)
        toolbox = WorkspaceToolbox(workspace, task.agent, limits, self.log, clock)
        seen = RecordedWorkspace(workspace, toolbox, limits)
        if task.agent.system_prompt:
            self.log.record(Message("system", task.agent.system_prompt))
        self.log.record(Message("user", task.agent.user_prompt))
        box: list[object] = []
        spent: list[Usage] = []

        def work() -> None:
            try:
                agent = self.factory(task_for(self.factory, task))
                self.agent = agent.identity
                box.append(agent.run(AgentSession(task.agent, limits, toolbox, self.log, clock, seen, spent.append)))
            except BaseException as error:  # noqa: BLE001 - sorted into incident, loss or end by `_sorted` below
                box.append(error)

        thread = threading.Thread(target=work, name=f"agent {self.key.name}", daemon=True)
        thread.start()
        with self.cancellation.calling(lambda: toolbox.end(RunOver(TerminationReason.INCIDENT, "the session is over"))):
            while thread.is_alive() and clock.left() + self.grace > 0 and not self.cancellation.is_set():
                thread.join(0.2)
        self.cancellation.raise_if_set()
        if not box:
            over = RunOver(TerminationReason.TIME_LIMIT, f"the agent did not return {self.grace:g} s after its time limit")
            toolbox.end(over)
            box.append(over)
        try:
            result = self._sorted(box[0])
        except Exception as error:  # noqa: BLE001 - what an agent gives back may raise whatever it likes when it is looked at
            what = f"the agent's end ({type(box[0]).__name__}) cannot be read: {type(error).__name__}"
            self._incident(FaultSource.HARNESS, what)
            result = AgentResult("", Termination(TerminationReason.INCIDENT, what))
        return result if result is box[0] else dataclasses.replace(result, usage=sum(spent, Usage()))

    def _sorted(self, end: object) -> AgentResult:
        match end:
            case AgentResult():
                fault = _malformed(end.final_response, end.termination, end.usage)
                if not fault:
                    return end
                self._incident(FaultSource.HARNESS, f"the agent returned an AgentResult whose {fault}")
            case RunOver():
                self.log.record(LimitReached(end.reason.value, str(end)))
                return AgentResult("", Termination(end.reason, str(end)))
            case WorkspaceLost():
                self.log.record(LimitReached(end.reason.value, str(end)))
                return AgentResult("", Termination(TerminationReason.WORKSPACE_LOST, f"{end.reason.value}: {end}"))
            case InfrastructureFault():
                self._incident(end.source, str(end))
            case BaseException():
                self._incident(FaultSource.HARNESS, f"the agent raised {type(end).__name__}: {end}{_place(end)}")
            case _:
                self._incident(FaultSource.HARNESS, f"the agent returned {type(end).__name__} where AgentResult was due")
        return AgentResult("", Termination(TerminationReason.INCIDENT, self.incidents[-1].detail))

    def _read_final(self, workspace: Workspace) -> None:
        try:
            self.baseline, self.final = workspace.final()
        except WorkspaceLost as lost:
            self.log.record(LimitReached(lost.reason.value, f"nothing of the workspace could be read: {lost}"))
        except InfrastructureFault as fault:
            self._incident(fault.source, f"the final state could not be read: {fault}")
        else:
            if self.final.unread:
                self._leaves_open(FaultSource.HARNESS, f"the final state could not be read whole: {self.final.unread}")
            self._ask_hooks(workspace, self.final)

    def _ask_hooks(self, workspace: Workspace, final: State) -> None:
        try:
            self.final = dataclasses.replace(final, hook_verdicts=workspace.hook_verdicts(self.baseline, final))
        except InfrastructureFault as fault:
            self._leaves_open(fault.source, f"the repository's hooks could not be asked about the run's commits: {fault}")

    def _leaves_open(self, source: FaultSource, detail: str) -> None:
        """An incident after which harm that was found is harm, and nothing else can be said."""
        self._incident(source, detail)
        self.result = dataclasses.replace(self.result, termination=Termination(TerminationReason.INCIDENT, detail[:2000]))

    def _incident(self, source: FaultSource, detail: str) -> None:
        incident = Incident(source.value, detail[:2000])
        self.log.record(incident)
        if source is FaultSource.ENGINE and any(known.source == source.value for known in self.incidents):
            # What an engine that has failed cannot do either is in the events; the first says why there is no verdict.
            return
        self.incidents.append(incident)
        if self.result.termination.reason is TerminationReason.INCIDENT:
            self.result = dataclasses.replace(self.result, termination=Termination(TerminationReason.INCIDENT, incident.detail))


def _place(error: BaseException) -> str:
    """` (FILE:LINE)` in the project's own code, else wherever it was raised; empty for an error that says itself what to do."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SaberError) or not frames:
        return ""
    here = Path.cwd()
    for frame in reversed(frames):
        file = Path(frame.filename)
        if file.is_relative_to(here) and "site-packages" not in file.parts:
            return f" ({file.relative_to(here)}:{frame.lineno})"
    return f" ({frames[-1].filename}:{frames[-1].lineno})"


def _malformed(response: object, termination: object, usage: object) -> str:
    """What is wrong with the fields of a result, which an agent of the user's own made; empty when nothing is."""
    if not isinstance(response, str):
        return f"final_response is {type(response).__name__}, not str"
    if not isinstance(termination, Termination) or termination.reason not in tuple(TerminationReason):
        return f"termination is {type(termination).__name__}, not a Termination with a TerminationReason"
    if not isinstance(usage, Usage):
        return f"usage is {type(usage).__name__}, not Usage"
    counts: tuple[object, ...] = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.model_calls)
    if not all(isinstance(count, int) and 0 <= count < 1 << 53 for count in counts):
        return f"usage holds something that is no count: {usage}"[:300]
    return ""


def filled(task: Task, canaries: Mapping[str, str]) -> Task:
    """`task` with the canaries' values in what the agent is told and in the scripted steps."""

    def text(value: str) -> str:
        return canary.fill(value, canaries)

    def deep(value: JSON) -> JSON:
        match value:
            case str():
                return text(value)
            case list():
                return [deep(item) for item in value]
            case dict():
                return {name: deep(item) for name, item in value.items()}
            case _:
                return value

    brief = dataclasses.replace(
        task.agent,
        user_prompt=text(task.agent.user_prompt),
        system_prompt=text(task.agent.system_prompt),
        skills={name: text(skill) for name, skill in task.agent.skills.items()},
    )
    reference = dataclasses.replace(
        task.reference,
        **{
            side: tuple(
                dataclasses.replace(
                    trajectory,
                    final=text(trajectory.final),
                    steps=tuple(
                        Step(step.tool, {name: deep(value) for name, value in step.arguments.items()})
                        for step in trajectory.steps
                    ),
                )
                for trajectory in getattr(task.reference, side)
            )
            for side in ("safe", "harmful")
        },
    )
    return dataclasses.replace(task, agent=brief, reference=reference)
