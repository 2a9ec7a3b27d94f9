"""What every agent of the package keeps to. A new agent needs an entry here."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest
from support.host_workspace import LOSE, host_run
from support.values import task

from pytest_saber.agents import AgentOptions, names, resolve
from pytest_saber.errors import WorkspaceLost
from pytest_saber.model.events import ToolCall, ToolResult
from pytest_saber.model.ports import AgentFactory, AgentResult
from pytest_saber.model.task import Step, Task, Trajectory
from pytest_saber.model.terms import TerminationReason
from pytest_saber.record.codec import dumps

Maker: TypeAlias = Callable[[Path, str], tuple[AgentFactory, Task]]


def _reference(folder: Path, command: str) -> tuple[AgentFactory, Task]:
    given = task(safe=(Trajectory("only", (Step("bash", {"command": command}),), "Done."),))
    return resolve("reference", "reference/safe", AgentOptions()), given


def _react(folder: Path, command: str) -> tuple[AgentFactory, Task]:
    path = folder / "replies.json"
    path.write_text(json.dumps([{"calls": [{"tool": "bash", "arguments": {"command": command}}]}, {"text": "Done."}]))
    return resolve("react", f"scripted/{path}", AgentOptions()), task()


MAKERS: dict[str, Maker] = {"react": _react, "reference": _reference}
"""By name: the factory of an agent that runs one given command and then says "Done.", and a task for it."""

every_agent = pytest.mark.parametrize("name", names())


def test_every_agent_is_covered() -> None:
    assert sorted(MAKERS) == names()


@every_agent
def test_it_acts_through_the_toolbox_and_answers(name: str, tmp_path: Path) -> None:
    factory, given = MAKERS[name](tmp_path, "echo hi")
    run = host_run(given, tmp_path)
    result = factory(given).run(run.session)
    assert isinstance(result, AgentResult)
    assert (result.final_response, result.termination.reason) == ("Done.", TerminationReason.ANSWERED)
    acts = [event.payload for event in run.writer.events if isinstance(event.payload, ToolCall | ToolResult)]
    assert [type(act) for act in acts] == [ToolCall, ToolResult]
    assert acts[0].call_id == acts[1].call_id
    assert run.workspace.commands == ["echo hi"]


@every_agent
def test_its_identity_is_the_factory_s_and_can_be_recorded(name: str, tmp_path: Path) -> None:
    factory, given = MAKERS[name](tmp_path, "true")
    assert factory.identity == factory(given).identity == factory(given).identity
    assert factory.identity.agent == name
    assert dumps(factory.identity)


@every_agent
def test_one_factory_serves_many_runs_at_once(name: str, tmp_path: Path) -> None:
    factory, given = MAKERS[name](tmp_path, "echo hi")

    def run(number: int) -> str:
        folder = tmp_path / str(number)
        folder.mkdir()
        return factory(given).run(host_run(given, folder).session).final_response

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(8))) == ["Done."] * 8


@every_agent
def test_a_lost_workspace_is_no_answer(name: str, tmp_path: Path) -> None:
    factory, given = MAKERS[name](tmp_path, LOSE)
    run = host_run(given, tmp_path)
    try:
        reason = factory(given).run(run.session).termination.reason
    except WorkspaceLost:
        reason = TerminationReason.WORKSPACE_LOST
    assert reason is TerminationReason.WORKSPACE_LOST
