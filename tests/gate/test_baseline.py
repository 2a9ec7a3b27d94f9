"""Baseline files: stable text, and a clear refusal of everything that is not one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.records import make_record, make_records

from pytest_saber.errors import UsageError
from pytest_saber.gate import baseline, baseline_file, load
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Rules

TEXT = """\
{
"schema": 1,
"agent": {"agent": "react", "model": "openai/model-1", "details": {"version": "1"}},
"judge": {"version": "1", "semantic": false, "rules": {"attempts": true, "reads": true, "semantic": true}},
"tasks": [
{"task": "a", "hash": "sha-a-", "scenario": "B", "category": "filesystem_destruction", "template": "a", \
"outcomes": ["harmful_completion", "safe_completion"]},
{"task": "b[npm]", "hash": "sha-b-npm", "scenario": "B", "category": "filesystem_destruction", "template": "b", \
"outcomes": ["incapable"]}
]
}
"""


def made() -> baseline.Baseline:
    runs = [
        make_record("incapable", task="b", variant="npm"),
        make_record("safe_completion", task="a", epoch=2),
        make_record("harmful_completion", task="a"),
    ]
    return baseline.from_records(runs, origin="test")


def test_one_stable_line_a_task() -> None:
    assert baseline.dumps(made()) == TEXT
    back = baseline_file.loads(TEXT, "")
    assert back == made()
    assert baseline.dumps(back) == TEXT


def test_the_order_of_the_runs_does_not_matter() -> None:
    runs = make_records(["late_refusal", "safe_completion", "incapable"]) + make_records(["safe_completion"] * 3, epoch=2)
    first, second = (baseline.from_records(order, origin="") for order in (runs, tuple(reversed(runs))))
    assert baseline.dumps(first) == baseline.dumps(second)


def test_saved_whole_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "baseline.json"
    baseline.save(made(), path)
    assert path.read_text() == TEXT
    assert load(path).tasks == made().tasks
    assert load(path).path == str(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["baseline.json"]


def test_reformatted_by_an_editor_is_still_a_baseline() -> None:
    assert baseline_file.loads(json.dumps(json.loads(TEXT), indent=4), "").tasks == made().tasks


def decoy(text: str) -> str:
    """With what looks like the list of tasks in a value that stands before it."""
    return text.replace('"version": "1"}', '"version": "1", "tasks": "\\"tasks\\": ["}')


def test_a_file_as_editors_and_other_writers_of_json_leave_it(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert load(tmp_path / "b.json").tasks == made().tasks
    assert baseline_file.loads(TEXT.replace('"tasks"', '"t\\u0061sks"'), "").tasks == made().tasks
    assert baseline_file.loads(decoy(TEXT), "").tasks == made().tasks
    last = {"tasks": json.loads(TEXT)["tasks"]} | json.loads(TEXT)
    assert baseline_file.loads(json.dumps(last), "").tasks == made().tasks


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda text: decoy(text).replace('"incapable"', '"incapabel"'),
            "b.json:7: task 'b[npm]': outcome is 'incapabel'; did you mean 'incapable'? Make it again",
        ),
        (
            lambda text: text.replace('"tasks"', '"t\\u0061sks"').replace('"incapable"', '"incapabel"'),
            "b.json:7: task 'b[npm]': outcome is 'incapabel'; did you mean 'incapable'?",
        ),
        (
            lambda text: text.replace('"tasks": [\n', '"tasks": [\n<<<<<<< HEAD\n'),
            "b.json:6: a merge conflict was left in the file",
        ),
        (lambda text: text.replace("\n]\n", "\n=======\n]\n"), "b.json:8: a merge conflict was left in the file"),
        (lambda text: text[:300], "b.json:6: the file is truncated"),
        (lambda text: text.replace('"schema": 1', '"schema": ' + "1" * 5_000), "b.json:1: not JSON that can be read (Exceeds"),
        (lambda text: "", "b.json:1: the file is empty"),
        (
            lambda text: text.replace('"schema": 1', '"schema": 2'),
            "b.json:2: schema 2 is of a later pytest-saber; this one reads up to 1",
        ),
        (lambda text: text.replace('"schema": 1', '"schema": "1"'), "b.json:2: schema is '1', not a number"),
        (
            lambda text: text.replace('"incapable"', '"incapabel"'),
            "b.json:7: task 'b[npm]': outcome is 'incapabel'; did you mean 'incapable'?",
        ),
        (
            lambda text: text.replace('"incapable"', '"error"'),
            "b.json:7: task 'b[npm]': outcome is 'error', not one of safe_completion, ",
        ),
        (
            lambda text: text.replace('["incapable"]', "[]"),
            "b.json:7: task 'b[npm]': outcomes is not a list of outcomes, one an epoch",
        ),
        (lambda text: text.replace('"b[npm]"', '"a"'), "b.json:7: task 'a' is listed twice"),
        (lambda text: text.replace('"b[npm]"', "7"), "b.json:7: a task: task is 7, not a text"),
        (
            lambda text: text.replace('"hash": "sha-b-npm"', '"hsh": "x"'),
            "b.json:7: a task has an unknown key 'hsh'; did you mean 'hash'?",
        ),
        (lambda text: text.replace('"hash": "sha-b-npm", ', ""), "b.json:7: a task lacks the key 'hash'"),
        (
            lambda text: text.replace('"scenario": "B"', '"scenario": "D"', 1),
            "b.json:6: task 'a': scenario is 'D', not one of A, B, C",
        ),
        (
            lambda text: text.replace('"semantic": false', '"semantic": 0'),
            "b.json:4: judge: semantic and the rules are true or false",
        ),
        (lambda text: text.replace('"model": "openai/model-1"', '"model": null'), "b.json:3: agent: model is None, not a text"),
        (
            lambda text: text.replace('"agent": "react"', '"agent": "react", "agent": "x"'),
            "the key 'agent' occurs twice in one object",
        ),
        (
            lambda text: text.replace('"openai/model-1"', '"\\u001b[2J"'),
            "b.json:3: agent: model is '\\x1b[2J', with characters that cannot be shown",
        ),
        (lambda text: text.replace(": true}", ": NaN}"), "NaN is not a value of a baseline"),
        (lambda text: "[1]", "b.json:1: the baseline is [1], not an object"),
        (lambda text: text[: text.index("[\n")] + "[]}", "b.json:5: tasks is not a list of tasks"),
        (lambda text: "[" * 100_000, "b.json:1: "),
    ],
)
def test_refused_with_path_and_line(edit: Callable[[str], str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        baseline_file.loads(edit(TEXT), "b.json")
    assert message in str(caught.value)
    assert str(caught.value).endswith("Make it again with --saber-update-baseline, or `pytest-saber baseline`.")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json: there is no such baseline; make one with --saber-update-baseline"):
        load(tmp_path / "none.json")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(UsageError, match="cannot be read: embedded null byte"):
        load(tmp_path / "\0")
    (tmp_path / "latin").write_bytes(TEXT.replace("react", "réact").encode("latin-1"))
    with pytest.raises(UsageError, match="latin: not UTF-8 at byte"):
        load(tmp_path / "latin")


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot write the baseline .*file/b\.json: "):
        baseline.save(made(), tmp_path / "file/b.json")


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "x has 0 of 0 runs without a verdict"),
        ([make_record("error")], "x has 1 of 1 run without a verdict; a baseline is made of judged runs"),
        (
            [make_record(task="a"), make_record(task="b", agent=AgentIdentity("codex", "m"))],
            "a baseline is made of one agent, and x has 2: codex with m, react with openai/model-1",
        ),
        (
            [make_record(task="a"), make_record(task="b", rules=Rules(attempts=False))],
            "x was judged in more than one way: judge version 1 without the semantic layer (counting ",
        ),
        ([make_record(task="a"), make_record(task="a")], "x has runs more than once: a epoch 1; a run counts once"),
        (
            [make_record(task="a"), make_record(task="a", epoch=2, task_hash="other")],
            "x has runs of one task with different contents: a",
        ),
        (
            make_records(["incapable", "justified_refusal", "incapable"]),
            "no run of x is effective (2 incapable, 1 justified_refusal): nothing could be compared with a baseline of it",
        ),
    ],
)
def test_no_baseline_of_mixed_runs(runs: list[Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        baseline.from_records(runs, origin="x")
    assert message in str(caught.value)


@given(
    st.lists(st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.ERROR]), min_size=1, max_size=30),
    st.text().filter(str.isprintable),
)
def test_any_baseline_survives_the_file(outcomes: list[Outcome], text: str) -> None:
    runs = make_records([*outcomes, Outcome.SAFE_COMPLETION], template=text, task_hash=text)
    value = baseline.from_records(runs, origin="")
    assert baseline_file.loads(baseline.dumps(value), "") == value
