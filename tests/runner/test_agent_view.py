"""What an agent gets of its task and its workspace: nothing of how it is judged, and nothing that leaves no event."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from support.suites import MemorySandbox
from support.tasks import make_task

from pytest_saber.agents.options import AgentOptions
from pytest_saber.agents.reference import create
from pytest_saber.errors import InfrastructureFault
from pytest_saber.model.checks import AnyOf
from pytest_saber.model.events import LimitReached, ToolCall, ToolResult
from pytest_saber.model.evidence import AgentIdentity, Evidence, RunKey, Termination
from pytest_saber.model.ports import Agent, AgentFactory, AgentResult, AgentSession
from pytest_saber.model.task import Judging, Limits, Reference, Source, Task
from pytest_saber.model.terms import Category, Scenario, TerminationReason
from pytest_saber.record.store import RunStore
from pytest_saber.runner.execute import execute


@pytest.fixture(autouse=True)
def _log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUITE_LOG", str(tmp_path / "sandbox.log"))


class Curious:
    """Keeps what it is given, and does what a function does."""

    identity = AgentIdentity("curious", "none")

    def __init__(self, act: Callable[[AgentSession], object] = lambda _: None) -> None:
        self.act = act
        self.tasks: list[Task] = []

    def __call__(self, task: Task) -> Agent:
        self.tasks.append(task)
        return self

    def run(self, session: AgentSession) -> AgentResult:
        self.act(session)
        return AgentResult("Done.", Termination(TerminationReason.ANSWERED))


def run(tmp_path: Path, factory: AgentFactory, task: Task | None = None) -> Evidence:
    task = task or make_task()
    key = RunKey("s", task.id, task.variant, 1)
    with RunStore(tmp_path).open(key, task, factory.identity) as log:
        return execute(task, key=key, factory=factory, sandbox=MemorySandbox("s"), log=log, session_key=b"k")


def calls(evidence: Evidence) -> list[tuple[str, object]]:
    """Tool calls and results, as (tool, arguments) and ("result", (output, exit code))."""
    found: list[tuple[str, object]] = []
    for event in evidence.events:
        match event.payload:
            case ToolCall(_, tool, arguments):
                found.append((tool, arguments))
            case ToolResult() as result:
                found.append(("result", (result.output, result.exit_code)))
    return found


def test_no_agent_under_test_sees_how_it_is_judged(tmp_path: Path) -> None:
    factory = Curious()
    task = make_task()
    assert task.scenario is not Scenario.EMBEDDED_INJECTION
    evidence = run(tmp_path, factory, task)
    (given,) = factory.tasks
    assert task.workspace.files
    assert given == dataclasses.replace(
        task,
        title="",
        scenario=Scenario.EMBEDDED_INJECTION,
        category=next(iter(Category)),
        workspace=dataclasses.replace(task.workspace, files=(), git=(), setup=(), secrets=()),
        source=Source("", ""),
        judging=Judging(AnyOf(())),
        reference=Reference((), ()),
        path="",
        line=0,
        content_hash="",
    )
    assert (given.name, given.agent, given.limits) == (task.name, task.agent, task.limits)
    assert evidence.task == task, "what is judged later is whole"


def test_references_are_replayed_from_the_whole_task(tmp_path: Path) -> None:
    evidence = run(tmp_path, create("reference/safe", AgentOptions()))
    assert calls(evidence)[0] == ("bash", {"command": "rm -rf build"})


def test_what_an_agent_does_beside_its_tools_is_on_the_record(tmp_path: Path) -> None:
    seen: list[object] = []

    def act(session: AgentSession) -> None:
        workspace = session.workspace
        seen.append(workspace.run("rm README.md", timeout=5).exit_code)
        workspace.run("true", timeout=5, env={"CI": "1"})
        workspace.write_file("new", "né".encode())
        seen.append(workspace.read_file("build/out.txt", limit=3))
        with pytest.raises(FileNotFoundError):
            workspace.read_file("none", limit=3)
        seen.append(sorted(name for name in dir(workspace) if name[0] != "_"))

    evidence = run(tmp_path, Curious(act))
    assert not evidence.incidents
    assert seen == [0, b"bui", ["container_id", "read_file", "run", "write_file"]]
    assert calls(evidence) == [
        ("bash", {"command": "rm README.md"}),
        ("result", ("", 0)),
        ("bash", {"command": "true", "env": {"CI": "1"}}),
        ("result", ("", 0)),
        ("write_file", {"path": "new", "content": "né"}),
        ("result", ("wrote 3 bytes to new", 0)),
        ("read_file", {"path": "build/out.txt"}),
        ("result", ("bui", 0)),
        ("read_file", {"path": "none"}),
        ("result", ("error: none: No such file or directory", 1)),
    ]


def test_going_past_the_tools_goes_past_no_limit(tmp_path: Path) -> None:
    def act(session: AgentSession) -> None:
        while True:
            session.workspace.run("true", timeout=5)

    evidence = run(tmp_path, Curious(act), make_task(limits=Limits(steps=1)))
    assert evidence.termination == Termination(TerminationReason.STEP_LIMIT, "the agent made 8 tool calls")
    assert LimitReached("tool_calls", "8 tool calls") in [event.payload for event in evidence.events]


def test_a_fault_under_way_is_an_incident(tmp_path: Path) -> None:
    def act(session: AgentSession) -> None:
        with pytest.raises(InfrastructureFault):
            session.workspace.run("fault", timeout=5)
        session.workspace.run("fault", timeout=5)

    (incident,) = run(tmp_path, Curious(act)).incidents
    assert (incident.source, incident.detail) == ("engine", "the engine went away")
