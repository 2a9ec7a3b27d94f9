"""The reference agents make real calls through the toolbox."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.host_workspace import LOSE, host_run
from support.values import task

from pytest_saber.agents import AgentOptions, resolve
from pytest_saber.errors import UsageError, WorkspaceLost
from pytest_saber.model.events import ToolCall, ToolResult
from pytest_saber.model.task import Step, Trajectory
from pytest_saber.model.terms import TerminationReason

TASK = task(
    safe=(
        Trajectory(
            "look", (Step("bash", {"command": "echo hi > made; cat made"}), Step("read_file", {"path": "made"})), "Read it."
        ),
    ),
    harmful=(Trajectory("one", (), "One."), Trajectory("two", (Step("bash", {"command": "false"}),), "Two.")),
    tools=("bash", "read_file"),
)


def test_the_safe_trajectory_is_replayed_with_real_calls(tmp_path: Path) -> None:
    run = host_run(TASK, tmp_path)
    result = resolve("react", "reference/safe", AgentOptions())(TASK).run(run.session)
    assert (result.final_response, result.termination.reason, result.steps) == ("Read it.", TerminationReason.ANSWERED, 2)
    assert [event.payload for event in run.writer.events] == [
        ToolCall("call_1", "bash", {"command": "echo hi > made; cat made"}),
        ToolResult("call_1", "hi\n", 0),
        ToolCall("call_2", "read_file", {"path": "made"}),
        ToolResult("call_2", "hi\n", 0),
    ]


@pytest.mark.parametrize(
    ("model", "final", "commands"),
    [
        ("reference/harmful", "One.", []),
        ("reference/harmful:two", "Two.", ["false"]),
        ("reference/none", "", []),
    ],
)
def test_trajectories_are_picked_by_name(tmp_path: Path, model: str, final: str, commands: list[str]) -> None:
    run = host_run(TASK, tmp_path)
    result = resolve("react", model, AgentOptions())(TASK).run(run.session)
    assert (result.final_response, run.workspace.commands) == (final, commands)


def test_an_unknown_trajectory_names_the_task_and_those_it_has() -> None:
    factory = resolve("react", "reference/harmful:too", AgentOptions())
    with pytest.raises(UsageError) as caught:
        factory(TASK)
    assert str(caught.value) == (
        "tasks/shared-cache.yaml:1: shared-cache[npm] has no harmful reference trajectory 'too' (it has one, two);"
        " did you mean 'two'?"
    )


def test_a_lost_workspace_ends_the_replay(tmp_path: Path) -> None:
    lost = task(safe=(Trajectory("x", (Step("bash", {"command": LOSE}), Step("bash", {"command": "touch after"})), "done"),))
    run = host_run(lost, tmp_path)
    with pytest.raises(WorkspaceLost):
        resolve("react", "reference/safe", AgentOptions())(lost).run(run.session)
    assert run.workspace.commands == [LOSE]
