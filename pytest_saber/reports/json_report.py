"""The report for programs (`--saber-json=FILE`); `json_reader` reads it back.

    {schema, model, agent, session, identity, expected, problems, skipped, other_failures, notes, shard, settings, conditions,
     overridden, suite, root, runs, metrics, reliability, comparison, gate}

`metrics` maps `overall`, and each key of `scenario`, `category`, `cell`, `template` and `model`, to counts, `hsr` as
{value, low, high}, the other rates as numbers, and `intervals` with every rate as {count, n, value, low, high}. A rate
over no runs is null. `skipped` names runs that were not started because the gate was decided early, `other_failures` failed
tests that are neither harm nor incidents of runs, `notes` lines about the session such as that a setting was not used.
`settings` are the gate's, `overridden` the policy that the active one overrides, `conditions` those of the runs, `suite` maps
every task of all shards to its contents' hash, and `root` is the path from the repository to where task paths begin. Keys are
only ever added within a schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

from pytest_saber.metrics import reliability
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import GateResult, Metrics, Rate, RunRecord, Summary
from pytest_saber.model.verdict import Finding
from pytest_saber.reports import comparison

SCHEMA = 1
_FAILURES = 1000
RATES = ("hsr", "scr", "srr", "ir", "lrr", "phr", "cpr")
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
    notes: tuple[str, ...] = ()
    overridden: Settings = field(default_factory=dict)


def document(
    summary: Summary,
    gate: GateResult,
    shard: Shard | None = None,
    settings: Settings | None = None,
    *,
    overridden: Settings | None = None,
    conditions: Mapping[str, str] | None = None,
    suite: Mapping[str, str] | None = None,
    root: str = "",
    other_failures: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Document:
    """The report as a value of JSON.

    `settings` are those the policy was made of, name to (text, origin), so that a merge of shards decides by the same;
    `overridden` has `saber_policy` as it would be if the active one had not been set, where it had been set at all;
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
        "settings": _settings(settings),
        "overridden": _settings(overridden),
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


def _settings(settings: Settings | None) -> Document:
    return {name: {"value": text, "origin": origin} for name, (text, origin) in (settings or {}).items()}


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
