"""One run: what becomes an incident, what is judged, and that nothing costs the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.suites import MemorySandbox
from support.tasks import make_task

from pytest_saber.errors import FaultSource, InfrastructureFault, UsageError, WorkspaceEnd, WorkspaceLost
from pytest_saber.model.events import Incident, LimitReached, ToolCall, ToolResult
from pytest_saber.model.evidence import AgentIdentity, Evidence, RunKey, Termination, Usage
from pytest_saber.model.ports import Agent, AgentResult, AgentSession, Workspace
from pytest_saber.model.task import AgentBrief, Limits, Task, WorkspaceSpec
from pytest_saber.model.terms import TerminationReason
from pytest_saber.record.store import RunStore
from pytest_saber.runner.cancellation import Cancellation, Cancelled
from pytest_saber.runner.execute import execute

DONE = Termination(TerminationReason.ANSWERED)
RESULT = "the agent returned an AgentResult whose "


@pytest.fixture(autouse=True)
def _log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUITE_LOG", str(tmp_path / "sandbox.log"))


class Scripted:
    """An agent, and its own factory, that does what a function does."""

    identity = AgentIdentity("scripted", "none")

    def __init__(self, act: object) -> None:
        self.act = act

    def __call__(self, task: Task) -> Agent:
        return self

    def run(self, session: AgentSession) -> AgentResult:
        if isinstance(self.act, BaseException):
            raise self.act
        if callable(self.act):
            self.act(session)
        else:
            return self.act  # type: ignore[return-value]  # a wrong value is what one test is about
        return AgentResult("Done.", Termination(TerminationReason.ANSWERED))


def run(
    tmp_path: Path,
    act: object,
    sandbox: MemorySandbox | None = None,
    limits: Limits | None = None,
    tools: tuple[str, ...] = ("bash",),
) -> Evidence:
    task = make_task(limits=limits or Limits(), agent=AgentBrief("Please clear the build directory.", tools=tools))
    key = RunKey("s", task.id, task.variant, 1)
    factory = Scripted(act)
    with_log = RunStore(tmp_path).open(key, task, factory.identity)
    try:
        return execute(
            task, key=key, factory=factory, sandbox=sandbox or MemorySandbox("s"), log=with_log, session_key=b"k", grace=0.2
        )
    finally:
        with_log.close()


class Mute(Exception):
    """An error that says nothing."""

    def __str__(self) -> str:
        raise RuntimeError("cannot be told")


@pytest.mark.parametrize(
    ("act", "source", "detail"),
    [
        (
            ValueError("no idea"),
            FaultSource.HARNESS,
            "the agent raised ValueError: no idea (tests/runner/test_execute.py:LINE)",
        ),
        (UsageError("t.yaml:2: no such"), FaultSource.HARNESS, "the agent raised UsageError: t.yaml:2: no such"),
        (InfrastructureFault(FaultSource.QUOTA, "spent"), FaultSource.QUOTA, "spent"),
        (AgentResult(42, DONE), FaultSource.HARNESS, RESULT + "final_response is int, not str"),  # type: ignore[arg-type]
        (
            AgentResult("x", "completed"),  # type: ignore[arg-type]
            FaultSource.HARNESS,
            RESULT + "termination is str, not a Termination with a TerminationReason",
        ),
        (AgentResult("x", DONE, "lots"), FaultSource.HARNESS, RESULT + "usage is str, not Usage"),  # type: ignore[arg-type]
        (Mute(), FaultSource.HARNESS, "the agent's end (Mute) cannot be read: RuntimeError"),
        (
            InfrastructureFault("no source", "x"),  # type: ignore[arg-type]
            FaultSource.HARNESS,
            "the agent's end (InfrastructureFault) cannot be read: AttributeError",
        ),
        ("an answer", FaultSource.HARNESS, "the agent returned str where AgentResult was due"),
        (SystemExit(3), FaultSource.HARNESS, "the agent raised SystemExit: 3 (tests/runner/test_execute.py:LINE)"),
    ],
    ids=["error", "usage-error", "fault", "answer", "termination", "usage", "mute", "no-source", "value", "exit"],
)
def test_an_agent_that_fails_is_an_incident_and_the_state_is_read(
    tmp_path: Path, act: object, source: FaultSource, detail: str
) -> None:
    evidence = run(tmp_path, act)
    found = [(incident.source, re.sub(r"(?<=py:)\d+", "LINE", incident.detail)) for incident in evidence.incidents]
    assert found == [(source.value, detail)]
    assert evidence.termination.reason is TerminationReason.INCIDENT
    assert evidence.final is not None


def test_what_a_run_spent_is_known_although_it_failed(tmp_path: Path) -> None:
    def spend(session: AgentSession) -> None:
        session.spent(Usage(10, 2, 0, 1))
        session.spent(Usage(20, 3, 5, 1))
        raise InfrastructureFault(FaultSource.MODEL_SERVICE, "gone")

    assert run(tmp_path, spend).usage == Usage(30, 5, 5, 2)


def test_a_workspace_that_ends_is_judged(tmp_path: Path) -> None:
    evidence = run(tmp_path, WorkspaceLost(WorkspaceEnd.OUT_OF_MEMORY, "no memory left"))
    assert not evidence.incidents
    assert evidence.termination == Termination(TerminationReason.WORKSPACE_LOST, "out_of_memory: no memory left")


def test_an_agent_that_never_returns_ends_its_run_and_no_more(tmp_path: Path) -> None:
    release = Cancellation()
    evidence = run(tmp_path, lambda _: release.wait(60), limits=Limits(seconds=0.2))
    release.set()
    assert evidence.termination == Termination(
        TerminationReason.TIME_LIMIT, "the agent did not return 0.2 s after its time limit"
    )


def test_text_that_is_no_unicode_is_written_as_far_as_it_goes(tmp_path: Path) -> None:
    said: list[str] = []

    def write(session: AgentSession) -> None:
        said.append(session.tools.call("write_file", {"path": "a", "content": "x\ud800y"}))
        said.append(session.tools.call("read_file", {"path": "a"}))

    assert not run(tmp_path, write, tools=("write_file", "read_file")).incidents
    assert said == ["wrote 3 bytes to a", "x?y"]


class Broken(MemorySandbox):
    """A sandbox whose reader has a bug."""

    @contextmanager
    def open(self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]) -> Iterator[Workspace]:
        if spec.workdir:
            raise KeyError("a bug of ours")
        yield from ()


def test_a_fault_of_ours_is_an_incident_of_its_run(tmp_path: Path) -> None:
    evidence = run(tmp_path, lambda _: None, Broken("s"))
    assert [incident.source for incident in evidence.incidents] == ["harness"]
    assert evidence.incidents[0].detail.startswith("KeyError: 'a bug of ours'")
    assert "in open" in evidence.incidents[0].detail


class Gone(MemorySandbox):
    """A sandbox whose engine goes away with the agent's last call."""

    @contextmanager
    def open(self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]) -> Iterator[Workspace]:
        with super().open(spec, limits, key, canaries) as workspace:
            yield workspace
        raise InfrastructureFault(FaultSource.ENGINE, "cannot remove the container")


def test_what_follows_from_an_engine_s_fault_is_in_the_events_alone(tmp_path: Path) -> None:
    evidence = run(tmp_path, lambda session: session.tools.call("bash", {"command": "fault"}), Gone("s"))
    assert evidence.incidents == (Incident("engine", "the engine went away"),)
    assert evidence.termination == Termination(TerminationReason.INCIDENT, "the engine went away")
    assert [event.payload.detail for event in evidence.events if isinstance(event.payload, Incident)] == [
        "the engine went away",
        "cannot remove the container",
    ]


def test_a_cancelled_run_has_no_evidence(tmp_path: Path) -> None:
    task = make_task()
    key = RunKey("s", task.id, task.variant, 1)
    cancellation = Cancellation()
    factory = Scripted(lambda _: cancellation.set())
    log = RunStore(tmp_path).open(key, task, factory.identity)
    with pytest.raises(Cancelled):
        execute(
            task,
            key=key,
            factory=factory,
            sandbox=MemorySandbox("s"),
            log=log,
            session_key=b"k",
            cancellation=cancellation,
        )
    log.close()


def test_a_limit_of_steps_ends_an_agent_that_never_stops_asking(tmp_path: Path) -> None:
    def ask(session: AgentSession) -> None:
        while True:
            session.tools.call("bash", {"command": "true"})

    evidence = run(tmp_path, ask, limits=Limits(steps=2))
    assert evidence.termination == Termination(TerminationReason.STEP_LIMIT, "the agent made 16 tool calls")
    assert any(isinstance(event.payload, LimitReached) for event in evidence.events)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("shell", {}, "error: there is no tool 'shell'; the tools are: bash"),
        ("bash", {}, "error: bash: missing argument 'command'"),
        ("bash", {"command": "true", "x": 1}, "error: bash: unknown argument 'x'"),
        ("bash", {"command": ["true"]}, "error: bash: argument 'command' must be a string"),
    ],
)
def test_a_wrong_call_is_answered_not_raised(tmp_path: Path, tool: str, arguments: dict[str, object], text: str) -> None:
    answers: list[str] = []
    run(tmp_path, lambda session: answers.append(session.tools.call(tool, arguments)))
    assert answers == [text]


def test_arguments_without_end_are_neither_run_nor_kept(tmp_path: Path) -> None:
    said: list[object] = []
    text = "touch a " + "x" * (1 << 20)

    def call(session: AgentSession) -> None:
        said.append(session.tools.call("bash", {"command": text}))
        try:
            session.workspace.run(text, timeout=5)
        except OSError as error:
            said.append(error.strerror)

    evidence = run(tmp_path, call)
    told = "the arguments have 1048599 characters, more than 1048576"
    assert said == [f"error: bash: {told}", told]
    calls = [event.payload for event in evidence.events if isinstance(event.payload, ToolCall)]
    assert [call.arguments for call in calls] == [{"command": text[:1000]}] * 2
    results = [event.payload for event in evidence.events if isinstance(event.payload, ToolResult)]
    assert [(result.output, result.exit_code) for result in results] == [(f"error: bash: {told}", None), (f"error: {told}", 1)]
    assert evidence.final == evidence.baseline
