"""Reading a baseline file. It is edited and merged by people, so every fault is named with its line."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from pytest_saber.errors import UsageError
from pytest_saber.gate.baseline import SCHEMA, Baseline, BaselineTask, Judge
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.terms import Category, Outcome, Scenario
from pytest_saber.model.verdict import Rules

MAX_BYTES = 20_000_000
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)
_MEND = "Make it again with --saber-update-baseline, or `pytest-saber baseline`."
_RULES = ("attempts", "reads", "semantic")


class _Fault(Exception):
    def __init__(self, message: str, position: int | None = None) -> None:
        self.message = message
        self.position = position
        super().__init__(message)


def load(path: Path) -> Baseline:
    """Read and check a baseline file.

    Raises:
        UsageError: no such file, or not a baseline; names path and line, what is wrong, and how to mend it.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path}: not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such baseline; make one with --saber-update-baseline") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path}: larger than {MAX_BYTES} bytes, so it is no baseline")
    try:
        # With the mark that editors on Windows put first.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}. {_MEND}") from error
    return loads(text, str(path))


def loads(text: str, path: str) -> Baseline:
    """The baseline in `text`; `path` names it in errors and in the gate's messages.

    Raises:
        UsageError: as for `load`.
    """
    try:
        return _parse(text, path)
    except _Fault as fault:
        line = 1 if fault.position is None else text.count("\n", 0, fault.position) + 1
        raise UsageError(f"{path}:{line}: {fault.message}{'' if fault.message.endswith('?') else '.'} {_MEND}") from None
    except RecursionError:
        raise UsageError(f"{path}:1: nested too deeply to be a baseline. {_MEND}") from None


def _parse(text: str, path: str) -> Baseline:
    conflict = _CONFLICT.search(text)
    if conflict:
        raise _Fault("a merge conflict was left in the file", conflict.start())
    if not text.strip():
        raise _Fault("the file is empty")
    try:
        document = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        ends = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        what = "the file is truncated" if ends else f"not JSON ({error.msg})"
        raise _Fault(what, error.pos) from None
    except ValueError as error:
        raise _Fault(f"not JSON that can be read ({error})") from None
    top = _object(document, ("schema", "agent", "judge", "tasks"), "the baseline")
    schema = top["schema"]
    if type(schema) is not int or schema < 1:
        raise _Fault(f"schema is {_show(schema)}, not a number", text.find('"schema"'))
    if schema > SCHEMA:
        raise _Fault(f"schema {schema} is of a later pytest-saber; this one reads up to {SCHEMA}", text.find('"schema"'))
    try:
        agent, judge = _agent(top["agent"]), _judge(top["judge"])
    except _Fault as fault:
        key = "agent" if "agent" in fault.message else "judge"
        raise _Fault(fault.message, max(0, text.find(f'"{key}"'))) from None
    entries = top["tasks"]
    if not isinstance(entries, list) or not entries:
        raise _Fault("tasks is not a list of tasks", max(0, text.find('"tasks"')))
    tasks: dict[str, BaselineTask] = {}
    for entry, position in zip(entries, _positions(text), strict=True):
        try:
            task = _task(entry)
        except _Fault as fault:
            raise _Fault(fault.message, position) from None
        if task.task in tasks:
            raise _Fault(f"task {task.task!r} is listed twice", position)
        tasks[task.task] = task
    return Baseline(agent, judge, tuple(tasks[name] for name in sorted(tasks)), path)


def _positions(text: str) -> Iterator[int]:
    """Where each entry of the list of tasks begins; `text` has already been read as JSON."""
    decoder = json.JSONDecoder()
    position = _skip(text, _value(text, "tasks", decoder) + 1)
    while text[position] != "]":
        yield position
        _, end = decoder.raw_decode(text, position)
        position = _skip(text, end)


def _value(text: str, wanted: str, decoder: json.JSONDecoder) -> int:
    """Where the value of a key of the document begins, however the key is written and whatever other values hold."""
    position = _skip(text, text.index("{") + 1)
    while True:
        key, end = decoder.raw_decode(text, position)
        position = _skip(text, end, " \t\r\n:")
        if key == wanted:
            return position
        _, end = decoder.raw_decode(text, position)
        position = _skip(text, end)


def _skip(text: str, position: int, characters: str = " \t\r\n,") -> int:
    while text[position] in characters:
        position += 1
    return position


def _task(value: object) -> BaselineTask:
    entry = _object(value, ("task", "hash", "scenario", "category", "template", "outcomes"), "a task")
    name = _text(entry, "task", "a task")
    if not name:
        raise _Fault("a task has no name")
    what = f"task {name!r}"
    outcomes = entry["outcomes"]
    if not isinstance(outcomes, list) or not outcomes:
        raise _Fault(f"{what}: outcomes is not a list of outcomes, one an epoch")
    allowed = [outcome.value for outcome in Outcome if outcome is not Outcome.ERROR]
    return BaselineTask(
        task=name,
        hash=_text(entry, "hash", what),
        scenario=Scenario(_one_of(entry["scenario"], [scenario.value for scenario in Scenario], f"{what}: scenario")),
        category=Category(_one_of(entry["category"], [category.value for category in Category], f"{what}: category")),
        template=_text(entry, "template", what),
        outcomes=tuple(sorted(Outcome(_one_of(outcome, allowed, f"{what}: outcome")) for outcome in outcomes)),
    )


def _agent(value: object) -> AgentIdentity:
    entry = _object(value, ("agent", "model", "details"), "agent")
    details = entry["details"]
    if not isinstance(details, dict) or not all(isinstance(text, str) for text in details.values()):
        raise _Fault("agent: details is not an object of texts")
    return AgentIdentity(_text(entry, "agent", "agent"), _text(entry, "model", "agent"), details)


def _judge(value: object) -> Judge:
    entry = _object(value, ("version", "semantic", "rules"), "judge")
    rules = _object(entry["rules"], _RULES, "judge: rules")
    semantic = entry["semantic"]
    if not isinstance(semantic, bool) or not all(isinstance(on, bool) for on in rules.values()):
        raise _Fault("judge: semantic and the rules are true or false")
    return Judge(_text(entry, "version", "judge"), semantic, Rules(**{name: bool(rules[name]) for name in _RULES}))


def _object(value: object, keys: tuple[str, ...], what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _Fault(f"{what} is {_show(value)}, not an object")
    for key in value:
        if key not in keys:
            close = difflib.get_close_matches(key, keys, n=1)
            raise _Fault(f"{what} has an unknown key {_show(key)}" + (f"; did you mean {close[0]!r}?" if close else ""))
    for key in keys:
        if key not in value:
            raise _Fault(f"{what} lacks the key {key!r}")
    return value


def _text(entry: Mapping[str, object], key: str, what: str) -> str:
    value = entry[key]
    if not isinstance(value, str):
        raise _Fault(f"{what}: {key} is {_show(value)}, not a text")
    if not value.isprintable():
        raise _Fault(f"{what}: {key} is {_show(value)}, with characters that cannot be shown")
    return value


def _one_of(value: object, allowed: list[str], what: str) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    close = difflib.get_close_matches(str(value), allowed, n=1)
    raise _Fault(
        f"{what} is {_show(value)}" + (f"; did you mean {close[0]!r}?" if close else f", not one of {', '.join(allowed)}")
    )


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Fault(f"the key {repeated!r} occurs twice in one object")
    return result


def _no_constant(name: str) -> NoReturn:
    raise _Fault(f"{name} is not a value of a baseline")


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
