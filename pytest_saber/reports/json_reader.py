"""Reading a JSON report back (`--saber-json`). Nothing in it is believed that does not fit its runs.

Rates, intervals and reliability are computed from the runs again. What contradicts the runs or itself otherwise is refused:
such a file was edited, or made of parts of several.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast, get_type_hints

from pytest_saber.errors import UsageError
from pytest_saber.metrics import summarize
from pytest_saber.model.evidence import AgentIdentity, Usage
from pytest_saber.model.summary import GateResult, RuleResult, RunRecord, SemanticLabel
from pytest_saber.model.terms import AbortKind, Category, Cause, Completion, FindingKind, Outcome, Scenario
from pytest_saber.model.verdict import Finding, Proof, Rules, Verdict
from pytest_saber.reports import comparison, consistency
from pytest_saber.reports.json_report import SCHEMA, Report, Shard

MAX_BYTES = 500_000_000
_MOST_SHARDS = 9_999
"""That a session can be one of."""
_STATUSES = ("passed", "failed", "inconclusive", "off")
T = TypeVar("T")


def load(path: Path) -> Report:
    """Read a report back.

    Raises:
        UsageError: no such file, not a report of this schema, or one that contradicts itself; names the file and what is wrong.
    """
    try:
        if path.is_dir():
            raise UsageError(
                f"{path}: a folder, and a JSON report (--saber-json) is a file; `pytest-saber show` tells of recorded runs"
            )
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path}: not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"{path}: larger than {MAX_BYTES} bytes, so it is no report")
        value = json.loads(data, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: not JSON ({error.msg}); is the file truncated?") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a report of pytest-saber: {error}") from error
    if not isinstance(value, dict) or "runs" not in value or "metrics" not in value:
        raise UsageError(f"{path}: not a report of pytest-saber (--saber-json)")
    schema = value.get("schema")
    if schema != SCHEMA:
        raise UsageError(f"{path}: schema {schema!r}, and this pytest-saber reads {SCHEMA}")
    try:
        report = _report(value, str(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{path}: not a report of pytest-saber: {what}") from error
    consistency.check(report)
    return report


def _report(value: Mapping[str, object], path: str) -> Report:
    runs = _list(value["runs"], "runs")
    expected = value["expected"]
    if type(expected) is not int or expected < 0:
        raise ValueError(f"expected is {expected!r}, not a number of runs")
    summary = summarize(
        tuple(_read_run(_mapping(run, "a run")) for run in runs),
        session=_str(value["session"], "session"),
        agent=_read_identity(value["identity"]),
        expected=expected,
        problems=_texts(value["problems"], "problems"),
        skipped=_texts(value.get("skipped", []), "skipped"),
        models=list(_mapping(_mapping(value["metrics"], "metrics")["model"], "metrics of models")),
    )
    for name in ("model", "agent"):
        if value[name] != getattr(summary.agent, name):
            raise ValueError(f"{name} is {value[name]!r} at its top, and {getattr(summary.agent, name)!r} in its identity")
    gate = _mapping(value["gate"], "gate")
    rules = tuple(_flat(RuleResult, rule, "a rule") for rule in _list(gate["rules"], "rules"))
    settings = _read_settings(value["settings"], "settings")
    for status in (gate["status"], *(rule.status for rule in rules)):
        if status not in _STATUSES:
            raise ValueError(f"{status!r} is not a status of the gate")
    decision = GateResult(_str(gate["status"], "status"), rules, comparison.read(value.get("comparison")))
    return Report(
        summary,
        decision,
        _read_shard(value["shard"]),
        settings,
        path,
        conditions=_text_map(value.get("conditions", {}), "conditions"),
        suite=_text_map(value.get("suite", {}), "suite"),
        root=_str(value.get("root", ""), "root"),
        other_failures=_texts(value.get("other_failures", []), "other_failures"),
        notes=_texts(value.get("notes", []), "notes"),
        overridden=_read_settings(value.get("overridden", {}), "overridden"),
    )


def _read_settings(value: object, what: str) -> Mapping[str, tuple[str, str]]:
    return {name: _read_setting(name, entry) for name, entry in _mapping(value, what).items()}


def _read_setting(name: str, value: object) -> tuple[str, str]:
    entry = _mapping(value, name)
    return _str(entry["value"], name), _str(entry["origin"], name)


def _read_shard(value: object) -> Shard | None:
    if value is None:
        return None
    entry = _mapping(value, "shard")
    index, of = entry["index"], entry["of"]
    if type(index) is not int or type(of) is not int or not 1 <= index <= of <= _MOST_SHARDS:
        raise ValueError(f"shard {index!r} of {of!r} is none")
    return Shard(index, of)


def _read_run(run: Mapping[str, object]) -> RunRecord:
    judge = _mapping(run["judge"], "judge")
    verdict = Verdict(
        outcome=Outcome(_str(run["outcome"], "outcome")),
        harmful=_flag(run["harmful"], "harmful"),
        completion=None if run["completion"] is None else Completion(_str(run["completion"], "completion")),
        abort=None if run["abort"] is None else AbortKind(_str(run["abort"], "abort")),
        findings=tuple(_read_finding(_mapping(finding, "a finding")) for finding in _list(run["findings"], "findings")),
        cause=None if run["cause"] is None else Cause(_str(run["cause"], "cause")),
        propagating=_flag(run["propagating"], "propagating"),
        compositional=_flag(run["compositional"], "compositional"),
        rules=_flat(Rules, judge["rules"], "rules"),
        semantic=_flag(judge["semantic"], "semantic"),
        reason=_str(run["reason"], "reason"),
        judge_version=_str(judge["version"], "judge version"),
    )
    return RunRecord(
        nodeid=_str(run["nodeid"], "nodeid"),
        task=_str(run["task"], "task"),
        variant=_str(run["variant"], "variant"),
        epoch=_int(run["epoch"], "epoch"),
        scenario=Scenario(_str(run["scenario"], "scenario")),
        category=Category(_str(run["category"], "category")),
        template=_str(run["template"], "template"),
        title=_str(run["title"], "title"),
        path=_str(run["path"], "path"),
        line=_int(run["line"], "line"),
        task_hash=_str(run["task_hash"], "task_hash"),
        agent=_read_identity(run["identity"]),
        verdict=verdict,
        seconds=_float(run["seconds"], "seconds"),
        steps=_int(run["steps"], "steps"),
        usage=_flat(Usage, run["usage"], "usage"),
        evidence=_str(run["evidence"], "evidence"),
        incident=_str(run["incident"], "incident"),
        semantic=_read_label(run["semantic"]),
    )


def _read_label(value: object) -> SemanticLabel | None:
    if value is None:
        return None
    entry = _mapping(value, "semantic")
    harmful = entry["harmful"]
    return SemanticLabel(
        _flag(entry["rules"], "rules"),
        None if harmful is None else _flag(harmful, "harmful"),
        _str(entry["problem"], "problem"),
    )


def _read_finding(finding: Mapping[str, object]) -> Finding:
    return Finding(
        property=_str(finding["property"], "property"),
        category=Category(_str(finding["category"], "category")),
        kind=FindingKind(_str(finding["kind"], "kind")),
        message=_str(finding["message"], "message"),
        proof=tuple(_flat(Proof, proof, "a proof") for proof in _list(finding["proof"], "proof")),
        propagates=_flag(finding["propagates"], "propagates"),
    )


def _read_identity(value: object) -> AgentIdentity:
    entry = _mapping(value, "identity")
    details = {_str(key, "a detail"): _str(text, "a detail") for key, text in _mapping(entry["details"], "details").items()}
    return AgentIdentity(_str(entry["agent"], "agent"), _str(entry["model"], "model"), details)


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _flat(kind: type[T], value: object, what: str) -> T:
    """A value of a class whose fields are texts, numbers and switches."""
    fields = _mapping(value, what)
    types = _hints(cast(Hashable, kind))
    for name, given in fields.items():
        wanted = types.get(name, object)
        number = _float(given, f"{what}: {name}") if type(given) in {int, float} and isinstance(0.0, wanted) else given
        if not isinstance(number, wanted) or (isinstance(given, bool) and wanted is not bool):
            raise TypeError(f"{what}: {name} is {given!r}")
    return kind(**fields)


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value of a report")


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"{what} is not an object")
    return value


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"{what} is not a list")
    return value


def _texts(value: object, what: str) -> tuple[str, ...]:
    return tuple(_str(text, what) for text in _list(value, what))


def _text_map(value: object, what: str) -> Mapping[str, str]:
    return {name: _str(text, f"{what} {name}") for name, text in _mapping(value, what).items()}


def _str(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, not a text")
    return value


def _int(value: object, what: str) -> int:
    if type(value) is not int:
        raise TypeError(f"{what} is {value!r}, not a whole number")
    return value


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}, not true or false")
    return value


def _float(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e18:
        raise TypeError(f"{what} is {value!r}, not a number")
    return float(value)
