"""The report for programs (`--saber-json=FILE`), and reading it back.

    {schema, model, agent, session, identity, expected, problems, skipped, other_failures, notes, shard, settings, conditions,
     suite, root, runs, metrics, reliability, comparison, gate}

`metrics` maps `overall`, and each key of `scenario`, `category`, `cell`, `template` and `model`, to counts, `hsr` as
{value, low, high}, the other rates as numbers, and `intervals` with every rate as {count, n, value, low, high}. A rate
over no runs is null. `skipped` names runs that were not started because the gate was decided early, `other_failures` failed
tests that are neither harm nor incidents of runs, `notes` lines about the session such as that a setting was not used.
`settings` are the gate's, `conditions` those of the runs, `suite` maps every task of all shards to its contents' hash, and
`root` is the path from the repository to where task paths begin. Keys are only ever added within a schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn, TypeAlias, TypeVar, get_type_hints

from pytest_saber.errors import UsageError
from pytest_saber.metrics import reliability, summarize
from pytest_saber.model.evidence import AgentIdentity, Usage
from pytest_saber.model.summary import GateResult, Metrics, Rate, RuleResult, RunRecord, SemanticLabel, Summary
from pytest_saber.model.terms import AbortKind, Category, Cause, Completion, FindingKind, Outcome, Scenario
from pytest_saber.model.verdict import Finding, Proof, Rules, Verdict
from pytest_saber.reports import comparison

SCHEMA = 1
MAX_BYTES = 500_000_000
_FAILURES = 1000
_STATUSES = ("passed", "failed", "inconclusive", "off")
RATES = ("hsr", "scr", "srr", "ir", "lrr", "phr", "cpr")
T = TypeVar("T")
Document: TypeAlias = "dict[str, object]"
Settings: TypeAlias = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Shard:
    """Which part of a suite a session ran: the `index`-th of `of`, counted from 1."""

    index: int
    of: int


@dataclass(frozen=True, slots=True)
class Report:
    """A report read back. The summary is computed again from its runs."""

    summary: Summary
    gate: GateResult
    shard: Shard | None
    settings: Settings
    path: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    suite: Mapping[str, str] = field(default_factory=dict)
    root: str = ""
    other_failures: tuple[str, ...] = ()


def document(
    summary: Summary,
    gate: GateResult,
    shard: Shard | None = None,
    settings: Settings | None = None,
    *,
    conditions: Mapping[str, str] | None = None,
    suite: Mapping[str, str] | None = None,
    root: str = "",
    other_failures: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Document:
    """The report as a value of JSON.

    `settings` are those the policy was made of, name to (text, origin), so that a merge of shards decides by the same;
    `conditions`, `suite` and `root` are what shards of one suite have in common. The module says what each is.
    """
    return {
        "schema": SCHEMA,
        "model": summary.agent.model,
        "agent": summary.agent.agent,
        "session": summary.session,
        "identity": _identity(summary.agent),
        "expected": summary.expected,
        "problems": list(summary.problems),
        "skipped": list(summary.skipped),
        "other_failures": list(other_failures[:_FAILURES]),
        "notes": list(dict.fromkeys(notes)),
        "shard": None if shard is None else asdict(shard),
        "settings": {name: {"value": text, "origin": origin} for name, (text, origin) in (settings or {}).items()},
        "conditions": dict(conditions or {}),
        "suite": dict(sorted((suite or {}).items())),
        "root": root,
        "runs": [_run(record) for record in summary.runs],
        "metrics": {
            "overall": _metrics(summary.overall),
            **{
                name: {key: _metrics(metrics) for key, metrics in getattr(summary, name).items()}
                for name in ("scenario", "category", "cell", "template", "model")
            },
        },
        "reliability": {model: _reliability(summary, model) for model in summary.model},
        "comparison": comparison.document(gate.comparison),
        "gate": {"status": gate.status, "rules": [asdict(rule) for rule in gate.rules]},
    }


def dumps(value: Document) -> str:
    """The text of a report: ASCII, so that any text an agent produced survives any encoding."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def load(path: Path) -> Report:
    """Read a report back.

    Raises:
        UsageError: no such file, or not a report of this schema; names the file and what is wrong.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path}: not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"{path}: larger than {MAX_BYTES} bytes, so it is no report")
        value = json.loads(data, parse_constant=_no_constant)
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
        return _report(value, str(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{path}: not a report of pytest-saber: {what}") from error


def _run(record: RunRecord) -> Document:
    verdict = record.verdict
    return {
        "nodeid": record.nodeid,
        "task": record.task,
        "variant": record.variant,
        "epoch": record.epoch,
        "scenario": record.scenario.value,
        "category": record.category.value,
        "template": record.template,
        "outcome": verdict.outcome.value,
        "harmful": verdict.harmful,
        "findings": [_finding(finding) for finding in verdict.findings],
        "cause": None if verdict.cause is None else verdict.cause.value,
        "propagating": verdict.propagating,
        "compositional": verdict.compositional,
        "seconds": record.seconds,
        "steps": record.steps,
        "usage": asdict(record.usage),
        "title": record.title,
        "path": record.path,
        "line": record.line,
        "task_hash": record.task_hash,
        "identity": _identity(record.agent),
        "completion": None if verdict.completion is None else verdict.completion.value,
        "abort": None if verdict.abort is None else verdict.abort.value,
        "reason": verdict.reason,
        "judge": {"version": verdict.judge_version, "semantic": verdict.semantic, "rules": asdict(verdict.rules)},
        "evidence": record.evidence,
        "incident": record.incident,
        "semantic": None if record.semantic is None else asdict(record.semantic),
    }


def _finding(finding: Finding) -> Document:
    return {
        "property": finding.property,
        "message": finding.message,
        "proof": [{key: value for key, value in asdict(proof).items() if value is not None} for proof in finding.proof],
        "category": finding.category.value,
        "kind": finding.kind.value,
        "propagates": finding.propagates,
    }


def _identity(agent: AgentIdentity) -> Document:
    return {"agent": agent.agent, "model": agent.model, "details": dict(agent.details)}


def _metrics(metrics: Metrics) -> Document:
    rates: dict[str, Rate] = {name: getattr(metrics, name) for name in RATES}
    return {
        "runs": metrics.runs,
        "judged": metrics.judged,
        "effective": metrics.effective,
        "harmful": metrics.harmful,
        "errors": metrics.errors,
        **{name: rate.value for name, rate in rates.items()},
        "hsr": {"value": metrics.hsr.value, "low": metrics.hsr.low, "high": metrics.hsr.high},
        "intervals": {name: asdict(rate) for name, rate in rates.items()},
    }


def _reliability(summary: Summary, model: str) -> Document | None:
    found = reliability(run for run in summary.runs if run.agent.model == model)
    if found is None:
        return None
    tasks = [{"task": name, "harmful": harmful, "effective": n} for name, harmful, n in found.unstable]
    return {"tasks": found.tasks, "safe": list(found.safe), "flip_rate": found.flip_rate, "unstable": tasks}


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
    )
    gate = _mapping(value["gate"], "gate")
    rules = tuple(_flat(RuleResult, rule, "a rule") for rule in _list(gate["rules"], "rules"))
    settings = {name: _read_setting(name, entry) for name, entry in _mapping(value["settings"], "settings").items()}
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
    )


def _read_setting(name: str, value: object) -> tuple[str, str]:
    entry = _mapping(value, name)
    return _str(entry["value"], name), _str(entry["origin"], name)


def _read_shard(value: object) -> Shard | None:
    if value is None:
        return None
    entry = _mapping(value, "shard")
    index, of = entry["index"], entry["of"]
    if type(index) is not int or type(of) is not int or not 1 <= index <= of:
        raise ValueError(f"shard {index!r} of {of!r} is none")
    return Shard(index, of)


def _read_run(run: Mapping[str, object]) -> RunRecord:
    judge = _mapping(run["judge"], "judge")
    verdict = Verdict(
        outcome=Outcome(_str(run["outcome"], "outcome")),
        harmful=bool(run["harmful"]),
        completion=None if run["completion"] is None else Completion(_str(run["completion"], "completion")),
        abort=None if run["abort"] is None else AbortKind(_str(run["abort"], "abort")),
        findings=tuple(_read_finding(_mapping(finding, "a finding")) for finding in _list(run["findings"], "findings")),
        cause=None if run["cause"] is None else Cause(_str(run["cause"], "cause")),
        propagating=bool(run["propagating"]),
        compositional=bool(run["compositional"]),
        rules=_flat(Rules, judge["rules"], "rules"),
        semantic=bool(judge["semantic"]),
        reason=_str(run["reason"], "reason"),
        judge_version=_str(judge["version"], "judge version"),
    )
    if verdict.harmful != verdict.outcome.is_harmful:
        raise ValueError(f"{run['nodeid']}: outcome {verdict.outcome.value} contradicts harmful {verdict.harmful}")
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
    return SemanticLabel(bool(entry["rules"]), None if harmful is None else bool(harmful), _str(entry["problem"], "problem"))


def _read_finding(finding: Mapping[str, object]) -> Finding:
    return Finding(
        property=_str(finding["property"], "property"),
        category=Category(_str(finding["category"], "category")),
        kind=FindingKind(_str(finding["kind"], "kind")),
        message=_str(finding["message"], "message"),
        proof=tuple(_flat(Proof, proof, "a proof") for proof in _list(finding["proof"], "proof")),
        propagates=bool(finding["propagates"]),
    )


def _read_identity(value: object) -> AgentIdentity:
    entry = _mapping(value, "identity")
    details = {_str(key, "a detail"): _str(text, "a detail") for key, text in _mapping(entry["details"], "details").items()}
    return AgentIdentity(_str(entry["agent"], "agent"), _str(entry["model"], "model"), details)


def _flat(kind: type[T], value: object, what: str) -> T:
    """A value of a class whose fields are texts, numbers and switches."""
    fields = _mapping(value, what)
    types = get_type_hints(kind)
    for name, given in fields.items():
        wanted = types.get(name, object)
        number = _float(given, f"{what}: {name}") if type(given) in {int, float} and isinstance(0.0, wanted) else given
        if not isinstance(number, wanted) or (isinstance(given, bool) and wanted is not bool):
            raise TypeError(f"{what}: {name} is {given!r}")
    return kind(**fields)


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


def _float(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e18:
        raise TypeError(f"{what} is {value!r}, not a number")
    return float(value)
