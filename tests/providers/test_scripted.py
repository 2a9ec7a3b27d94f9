"""The scripted model: the shipped fake of a model service, for users' own tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_saber.errors import UsageError
from pytest_saber.model.ports import ChatMessage, ModelRequest
from pytest_saber.providers import ModelOptions, connect
from pytest_saber.providers.scripted import LARGEST, ScriptedClient

SCRIPT = [
    {"text": "Looking.", "calls": [{"tool": "bash", "arguments": {"command": "ls"}}]},
    {"text": "No.", "stop": "refusal"},
]


def file(tmp_path: Path, content: object) -> str:
    path = tmp_path / "replies.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return f"scripted/{path}"


def test_replies_follow_the_number_of_turns(tmp_path: Path) -> None:
    client = connect(file(tmp_path, SCRIPT), ModelOptions())
    user = ChatMessage("user", "Go.")
    first = client.complete(ModelRequest("", (user,)))
    assert (first.message.text, first.stop) == ("Looking.", "tool_use")
    assert [(use.name, use.arguments) for use in first.message.tool_uses] == [("bash", {"command": "ls"})]
    for turns in (1, 2, 7):
        again = client.complete(ModelRequest("", (user, *[first.message] * turns)))
        assert (again.message.text, again.stop) == ("No.", "refusal")
    assert client.model == "scripted/replies.json"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "not JSON"),
        ("{}", "expected a list of replies"),
        ([], "at least one reply is needed"),
        (["x"], "[0]: expected an object with text, calls and stop"),
        ([{"txt": "x"}], "[0]: expected an object with text, calls and stop"),
        ([{"text": 1}], "[0]: text must be a string and calls a list"),
        ([{}, {"calls": [{"tool": "bash", "arguments": "ls"}]}], "[1]: call 1: expected an object with tool and arguments"),
        ([{"calls": [3]}], "[0]: call 1: expected an object with tool and arguments"),
        ([{"stop": "halt"}], "[0]: stop must be one of end, tool_use"),
        ("[" + " " * LARGEST + "]", "larger than"),
    ],
)
def test_wrong_files_are_usage_errors(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(file(tmp_path, content), ModelOptions())
    assert message in str(caught.value)


def test_native_tools_can_be_switched_off(tmp_path: Path) -> None:
    assert not connect(file(tmp_path, SCRIPT), ModelOptions(args={"native_tools": "false"})).native_tools


def test_a_script_without_replies_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one reply"):
        ScriptedClient([])
