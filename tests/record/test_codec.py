"""The codec: canonical bytes, faithful round trips, and refusals that name the place."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import make_dataclass, replace

import pytest
from support.values import random_value, task

from pytest_saber.errors import EvidenceError
from pytest_saber.model import checks, evidence, summary, verdict
from pytest_saber.model.checks import All, Not, PathDeleted
from pytest_saber.model.events import Event, Incident, Message, ToolCall, ToolResult
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.state import State
from pytest_saber.model.task import Judging, Task
from pytest_saber.model.verdict import Verdict
from pytest_saber.record import codec


@pytest.mark.parametrize("cls", [Evidence, Task, State, Verdict, summary.Summary, summary.GateResult, Event])
@pytest.mark.parametrize("seed", range(25))
def test_any_value_survives_and_its_bytes_are_stable(cls: type, seed: int) -> None:
    value: object = random_value(cls, seed)
    text = codec.dumps(value)
    again: object = codec.loads(cls, text)
    assert again == value
    assert codec.dumps(again) == text
    assert text.isascii()
    assert "\n" not in text


@pytest.mark.parametrize("name", sorted(checks.VOCABULARY))
def test_every_check_is_tagged_by_its_yaml_name(name: str) -> None:
    check = random_value(checks.VOCABULARY[name], 3)
    tree = codec.encode(Judging(expected_safe=check))
    assert list(tree["expected_safe"]) == [name]
    assert codec.decode(Judging, tree).expected_safe == check


def test_threads_that_need_a_type_for_the_first_time_at_once_lose_no_field() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(30):
                inner = [make_dataclass(f"Inner{number}", [("value", int)], frozen=True) for number in range(30)]
                outer = make_dataclass("Outer", [(f"f{number}", cls) for number, cls in enumerate(inner)], frozen=True)
                value = outer(*(cls(number) for number, cls in enumerate(inner)))
                start = threading.Barrier(8)

                def trip(_: int, value: object = value, cls: type = outer, start: threading.Barrier = start) -> object:
                    start.wait()
                    return codec.decode(cls, codec.encode(value))

                assert all(copy == value for copy in pool.map(trip, range(8)))
    finally:
        sys.setswitchinterval(interval)


def test_equal_mappings_have_equal_bytes_whatever_their_order() -> None:
    one = evidence.AgentIdentity("react", "m", {"b": "2", "a": "1"})
    other = evidence.AgentIdentity("react", "m", {"a": "1", "b": "2"})
    assert codec.dumps(one) == codec.dumps(other)


def test_tool_arguments_keep_the_order_the_model_gave_them() -> None:
    event = Event(1, 0.0, ToolCall("c1", "write_file", {"path": "x", "content": "y"}))
    assert list(codec.decode(Event, codec.encode(event)).payload.arguments) == ["path", "content"]  # type: ignore[union-attr]


def test_payloads_carry_their_kind() -> None:
    tree = codec.encode(Event(3, 1.0, Incident("engine", "gone")))
    assert tree == {"seq": 3, "at": 1.0, "payload": {"kind": "incident", "source": "engine", "detail": "gone"}}


def test_integers_in_float_fields_become_floats() -> None:
    assert codec.dumps(Event(1, 2, Message("user", "x"))) == codec.dumps(Event(1, 2.0, Message("user", "x")))


def damaged(value: object, *path: str | int, to: object) -> str:
    """The document of `value` with the member at `path` replaced."""
    tree = json.loads(codec.dumps(value))
    place = tree["value"]
    for part in path[:-1]:
        place = place[part]
    if to is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return json.dumps(tree)


def run() -> Evidence:
    events = tuple(Event(number, 0.5, ToolResult("c", "out", 0)) for number in range(1, 5))
    sample = random_value(Evidence, 1)
    return replace(sample, task=task(), events=events, schema=1)


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (
            ("events", 3, "payload", "kind"),
            "tool_resul",
            "evidence.events[3].payload.kind: unknown kind \"tool_resul\" (did you mean 'tool_result'?)",
        ),
        (("events", 3, "payload", "kind"), KeyError, "evidence.events[3].payload.kind: the field is missing"),
        (("events", 3, "seq"), "3", 'evidence.events[3].seq: expected a whole number, found "3"'),
        (("events", 3, "seq"), True, "evidence.events[3].seq: expected a whole number, found true"),
        (("events", 3, "at"), None, "evidence.events[3].at: expected a number, found null"),
        (("events", 3, "payload", "output"), ["x"], "evidence.events[3].payload.output: expected a string, found a list"),
        (
            ("events", 3, "payload", "outputt"),
            "x",
            "evidence.events[3].payload.outputt: unknown field (did you mean 'output'?)",
        ),
        (("events", 3, "\x1b]0;title\x07"), 1, "evidence.events[3].\\x1b]0;title\\x07: unknown field"),
        (("events", 3, "x" * 10_000), 1, f"evidence.events[3].{'x' * 289}...: unknown field"),
        (("events",), {}, "evidence.events: expected a list, found an object"),
        (("final_response",), KeyError, "evidence.final_response: the field is missing"),
        (("task", "scenario"), "D", 'evidence.task.scenario: expected one of A, B, C, found "D"'),
        (
            ("task", "judging", "expected_safe"),
            {"path_delete": {}},
            "evidence.task.judging.expected_safe: unknown check \"path_delete\" (did you mean 'path_deleted'?)",
        ),
        (
            ("task", "judging", "harmful", 0, "when"),
            {"path_deleted": {"pth": "x"}},
            "evidence.task.judging.harmful[0].when.path_deleted.path: the field is missing",
        ),
        (("canaries",), {"t": 1}, "evidence.canaries['t']: expected a string, found 1"),
        (("task", "limits"), 3, "evidence.task.limits: expected an object, found 3"),
    ],
)
def test_a_misfit_is_named_by_its_path(path: tuple[str | int, ...], to: object, message: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        codec.loads(Evidence, damaged(run(), *path, to=to), origin="e.json")
    assert str(caught.value) == f"e.json: {message}"


def test_a_field_with_a_default_may_be_missing_so_that_one_can_be_added() -> None:
    assert codec.loads(Evidence, damaged(run(), "platform", to=KeyError)).platform == {}


def test_a_newer_schema_is_refused_with_the_remedy() -> None:
    tree = json.loads(codec.dumps(run()))
    tree["schema"] = 2
    with pytest.raises(
        EvidenceError, match=r"^schema 2 is newer than 1, the newest that this pytest-saber reads; upgrade pytest-saber$"
    ):
        codec.loads(Evidence, json.dumps(tree))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "truncated JSON at line 1, column 1"),
        (
            '{"saber": "evidence", "schema": 1, "value": {"key": {"sess',
            "truncated JSON at line 1, column 54: Unterminated string",
        ),
        ('{"saber": "evidence", "schema": 1, "value": {}', "truncated JSON"),
        ('{"saber": evidence, "schema": 1}', "corrupt JSON at line 1, column 11"),
        ("[]", "not a saber record"),
        ('{"saber": "verdict", "schema": 1, "value": {}}', "holds \"verdict\", expected 'evidence'"),
        ('{"saber": "evidence", "schema": "1", "value": {}}', 'schema: expected a positive number, found "1"'),
        ('{"saber": "evidence", "schema": true, "value": {}}', "schema: expected a positive number, found true"),
        ('{"saber": "evidence", "schema": 1}', "evidence: the field 'value' is missing"),
        ('{"saber": "evidence", "schema": 1, "value": NaN}', "NaN is not a finite number"),
        ('{"saber": "evidence", "schema": 1, "value": 1e999}', "1e999 is not a finite number"),
        ("[" * 100_000, "corrupt JSON"),
    ],
)
def test_bad_documents(text: str, message: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        codec.loads(Evidence, text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Event(1, float("nan"), Message("user", "x")), "event.at: nan is not a finite number"),
        (Event(1, 0.0, ToolCall("c", "t", {"n": float("inf")})), "event.payload.arguments['n']: inf is not a finite number"),
        (Event(1, 0.0, Message("robot", "x")), "event.payload.role: expected one of system, user, assistant, found 'robot'"),  # type: ignore[arg-type]
        (Event(1, 0.0, Message("user", None)), "event.payload.text: expected str, found NoneType"),  # type: ignore[arg-type]
        (Event(True, 0.0, Message("user", "x")), "event.seq: expected int, found bool"),
        (Event(1, 0.0, PathDeleted("x")), "event.payload: a PathDeleted has no place here"),  # type: ignore[arg-type]
        (Event(1, 0.0, ToolCall("c", "t", {"n": object()})), "event.payload.arguments['n']: a object is not JSON"),  # type: ignore[dict-item]
    ],
)
def test_what_could_not_be_read_back_is_not_written(value: Event, message: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        codec.dumps(value)
    assert str(caught.value) == message


def test_endless_nesting_is_refused_on_writing() -> None:
    nested: list[object] = []
    for _ in range(1000):
        nested = [nested]
    with pytest.raises(EvidenceError, match="nested deeper than 128 levels"):
        codec.dumps(Event(1, 0.0, ToolCall("c", "t", {"n": nested})))  # type: ignore[dict-item]


def test_nested_checks_round_trip() -> None:
    judging = Judging(All((Not(PathDeleted("a")), Not(All((PathDeleted("b"),))))))
    assert codec.loads(Judging, codec.dumps(judging)) == judging


def test_strings_are_mapped_on_request_but_field_names_are_not() -> None:
    text = codec.dumps(
        verdict.Proof("text is secret", path="path"), text=lambda item: item.replace("secret", "x").replace("path", "p")
    )
    assert json.loads(text)["value"] == {"text": "text is x", "event": None, "path": "p"}
