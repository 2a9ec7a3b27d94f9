"""JUnit: what a test case's properties say, the gate's test cases, and reading a former file back.

Property values are texts without characters that XML forbids. pytest writes them; this module only says what they are,
and reads them with `junitparser`, so that a JUnit artefact of a former session can become a baseline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_saber.errors import UsageError
from pytest_saber.metrics import task_name
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import GateResult, Rate, RuleResult, RunRecord, Summary
from pytest_saber.model.terms import AbortKind, Category, Cause, Completion, Outcome, Scenario
from pytest_saber.model.verdict import Rules, Verdict
from pytest_saber.model.words import counted, part
from pytest_saber.reports.escape import line, xml
from pytest_saber.reports.failure import render as failure_text
from pytest_saber.reports.failure import render_incident

PREFIX = "saber."
GATE_CLASS = "saber-gate"
"""Class name of the gate's test cases: `saber-gate::hsr`."""
MAX_BYTES = 500_000_000
_VALUE = 2000
"""Characters of a property."""
_HARMFUL = frozenset(outcome.value for outcome in Outcome if outcome.is_harmful)
_COUNT = re.compile(r"[0-9]{1,6}")
_FIELDS = ("task", "variant", "template", "title", "path", "task_hash", "evidence", "incident")


def properties(record: RunRecord) -> list[tuple[str, str]]:
    """Properties of a run's test case; they are enough to make a baseline of."""
    verdict = record.verdict
    values: dict[str, object] = {name: getattr(record, name) for name in _FIELDS}
    values |= {
        "epoch": record.epoch,
        "line": record.line,
        "scenario": record.scenario.value,
        "category": record.category.value,
        "outcome": verdict.outcome.value,
        "harmful": _flag(verdict.harmful),
        "completion": verdict.completion.value if verdict.completion else "",
        "abort": verdict.abort.value if verdict.abort else "",
        "cause": verdict.cause.value if verdict.cause else "",
        "propagating": _flag(verdict.propagating),
        "compositional": _flag(verdict.compositional),
        "findings": len(verdict.findings),
        "agent": record.agent.agent,
        "model": record.agent.model,
        "judge": verdict.judge_version,
        "semantic": _flag(verdict.semantic),
        "rules": ",".join(name for name, on in asdict(verdict.rules).items() if on),
        "seconds": f"{record.seconds:.3f}",
        "steps": record.steps,
        **asdict(record.usage),
    }
    return [(PREFIX + name, xml(str(value), _VALUE)) for name, value in values.items()]


def suite_properties(summary: Summary, gate: GateResult) -> list[tuple[str, str]]:
    """Properties of the suite: who was tested, the overall metrics, the gate's decision, and why the session is not whole."""
    overall = summary.overall
    values: dict[str, object] = {
        "session": summary.session,
        "agent": summary.agent.agent,
        "model": summary.agent.model,
        "expected": summary.expected,
        "runs": overall.runs,
        "effective": overall.effective,
        "harmful": overall.harmful,
        "errors": overall.errors,
        "gate": gate.status,
        "problems": "; ".join(summary.problems),
    }
    for name in ("hsr", "scr", "srr", "ir", "lrr", "phr", "cpr"):
        rate: Rate = getattr(overall, name)
        values[name] = "" if rate.value is None else f"{rate.value:.4f}"
    return [(PREFIX + name, xml(str(value), _VALUE)) for name, value in values.items()]


def shard_property(index: int, of: int) -> tuple[str, str]:
    """The property of a suite that is the `index`-th of `of` shards."""
    return f"{PREFIX}shard", f"{index}/{of}"


def rule_text(rule: RuleResult, gate: GateResult) -> str:
    """The text of a rule's test case `saber-gate::NAME`; it stands alone."""
    text = f"gate rule {rule.name}: {rule.status}\n{rule.beside_name}\nThe gate as a whole: {gate.status}."
    others = [other for other in gate.rules if other.status != "passed" and other.name != rule.name]
    if others:
        text += " Also not passed: " + ", ".join(f"{other.name} ({other.status})" for other in others) + "."
    return xml(text, 20_000)


def render(summary: Summary, gate: GateResult, others: Sequence[Path] = (), *, harm_fails: bool = False) -> str:
    """A JUnit file of a merged session: a test case for each run, for each rule of the gate, and the test cases of the
    files `others` that belong to neither. Harmful runs are failures if `harm_fails` (policy strict), else expected ones.

    Raises:
        UsageError: one of `others` is not a JUnit file.
    """
    import junitparser

    kit: Any = junitparser  # its classes are only partly typed

    def case(nodeid: str, seconds: float, pairs: Sequence[tuple[str, str]]) -> Any:
        module, _, name = xml(nodeid).rpartition("::")
        made = kit.TestCase(name, module, seconds)
        if pairs:
            held = kit.Properties()
            for key, value in pairs:
                held.add_property(kit.Property(key, value))
            made.append(held)
        return made

    suite = kit.TestSuite("pytest-saber")
    for key, value in suite_properties(summary, gate):
        suite.add_property(key, value)
    for run in summary.runs:
        made = case(run.nodeid, run.seconds, properties(run))
        if run.verdict.outcome is Outcome.ERROR:
            made.result = [_result(kit.Error, line(run.incident), render_incident(run))]
        elif run.verdict.outcome.is_harmful:
            text = failure_text(run)
            made.result = [_result(kit.Failure if harm_fails else kit.Skipped, text.splitlines()[0], text)]
        suite.add_testcase(made)
    for rule in gate.rules:
        made = case(f"{GATE_CLASS}::{rule.name}", 0.0, ())
        if rule.status != "passed":
            made.result = [_result(kit.Failure, line(rule.message), rule_text(rule, gate))]
        suite.add_testcase(made)
    for path in others:
        for other in _cases(path):
            if other.classname != GATE_CLASS and f"{PREFIX}outcome" not in _properties(other):
                suite.add_testcase(other)
    whole = kit.JUnitXml("pytest-saber")
    whole.add_testsuite(suite)
    suite.update_statistics()
    whole.update_statistics()
    return str(whole.tostring().decode("utf-8")) + "\n"


def check_beside(paths: Sequence[Path], runs: Sequence[RunRecord]) -> None:
    """Whether JUnit files are of the same sessions as JSON reports with `runs`.

    Raises:
        UsageError: one of `paths` is not a JUnit file, or has a run that is not there or came to something else.
    """
    known = {_key(run): run.verdict.outcome for run in runs}
    for path in paths:
        found: dict[tuple[str, str, int], list[Outcome]] = {}
        for case in _cases(path):
            given = _properties(case)
            if given.get(f"{PREFIX}outcome", Outcome.ERROR) != Outcome.ERROR:
                run = _record(given, f"{case.classname}::{case.name}", _place(path, case))
                found.setdefault(_key(run), []).append(run.verdict.outcome)
        for key, outcomes in found.items():
            # Tests that share a task may have had a run each, on several xdist workers; the first one counted.
            if known.get(key) not in outcomes:
                model, name, epoch = key
                other = f"and {known[key].value} in the JSON report" if key in known else "and in no JSON report"
                raise UsageError(
                    f"{path}: {line(name)} epoch {epoch} ({line(model)}) is {outcomes[0].value}, {other}; "
                    "give the JUnit and JSON files that the same sessions wrote"
                )


def other_failures(paths: Sequence[Path], *, harm_fails: bool = False) -> list[str]:
    """Failed test cases that are neither the gate's nor incidents of runs (nor, if `harm_fails`, harmful runs), as node ids.

    Raises:
        UsageError: one of `paths` is not a JUnit file.
    """
    import junitparser

    failed = []
    for path in paths:
        for case in _cases(path):
            given = _properties(case)
            outcome = given.get(f"{PREFIX}outcome", "")
            excused = outcome == Outcome.ERROR or (harm_fails and outcome in _HARMFUL)
            if case.classname == GATE_CLASS or excused:
                continue
            if any(isinstance(result, junitparser.Failure | junitparser.Error) for result in case.result):
                failed.append(f"{line(str(case.classname))}::{line(str(case.name))}")
    return failed


def read_whole(paths: Sequence[Path]) -> tuple[RunRecord, ...]:
    """The saber runs of one session's JUnit file, or of the files of all its shards.

    Raises:
        UsageError: as for `read`; or the session was not whole, or runs or shards are missing, as far as the files say so.
    """
    runs: list[RunRecord] = []
    shards: dict[int, set[int]] = {}
    for path in paths:
        found = _distinct(read(path))
        runs += found
        given = _suite_properties(path)
        expected, said, harmful = (_sum(given, name) for name in ("expected", "runs", "harmful"))
        harm = sum(run.verdict.harmful for run in found)
        if said is not None and harmful is not None and (said, harmful) != (len(found), harm):
            raise UsageError(
                f"{path}: contradicts itself: it says it has {counted(said, 'run')}, {harmful} of them harmful, and has "
                f"{len(found)}, {harm} of them harmful; take the file as its session wrote it"
            )
        if expected is not None and len(found) < expected:
            raise UsageError(
                f"{path}: has {part(len(found), expected, 'expected run')}; no baseline is made of a session that is not "
                "whole, or that was decided early (--saber-stop-when-decided)"
            )
        faults = [text for suite in given if (text := suite.get(f"{PREFIX}problems", ""))] or _uncovered(path)
        if faults:
            raise UsageError(f"{path}: no baseline is made of a session that is not whole: {line('; '.join(faults), _VALUE)}")
        for suite in given:
            index, _, of = suite.get(f"{PREFIX}shard", "").partition("/")
            if _COUNT.fullmatch(index) and _COUNT.fullmatch(of):
                shards.setdefault(int(of), set()).add(int(index))
    for count, indices in shards.items():
        missing = [f"{index} of {count}" for index in range(1, count + 1) if index not in indices]
        if missing:
            more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
            raise UsageError(
                f"no baseline is made of a part of a suite: there is no file of shard {', '.join(missing[:8])}{more}"
            )
    return tuple(runs)


def read(path: Path) -> tuple[RunRecord, ...]:
    """The saber runs of a JUnit file; findings are not in it. Test cases without saber properties are passed over.

    Raises:
        UsageError: no such file, not JUnit, a property that is missing or wrong, or no saber run at all.
    """
    records = []
    for case in _cases(path):
        given = _properties(case)
        if f"{PREFIX}outcome" in given:
            records.append(_record(given, f"{case.classname}::{case.name}", _place(path, case)))
    if not records:
        raise UsageError(f"{path}: has no test case with saber properties; was it written by a session with saber tasks?")
    return tuple(records)


def _distinct(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """One for each run: several tests may share one, and a rerun may have repaired an incident, which has a test case too."""
    judged = {_key(run) for run in runs if run.verdict.outcome is not Outcome.ERROR}
    found: dict[object, RunRecord] = {}
    for run in runs:
        if run.verdict.outcome is not Outcome.ERROR:
            found.setdefault((_key(run), run.evidence, run.verdict.outcome), run)
        elif _key(run) not in judged:
            found[_key(run)] = run
    return list(found.values())


def _sum(suites: Sequence[Mapping[str, str]], name: str) -> int | None:
    """Of the numbers that the suites of a file have as a property; None where none has it."""
    texts = [suite[f"{PREFIX}{name}"] for suite in suites if _COUNT.fullmatch(suite.get(f"{PREFIX}{name}", ""))]
    return sum(map(int, texts)) if texts else None


def _uncovered(path: Path) -> list[str]:
    """What the gate's rule `coverage` says where it did not pass; older files have no other word on what a session lacks."""
    cases = [case for case in _cases(path) if case.classname == GATE_CLASS and case.name == "coverage"]
    return [str(result.message) for case in cases for result in case.result]


def _place(path: Path, case: Any) -> str:
    return f"{path}: test case {line(str(case.classname))}::{line(str(case.name))}"


def _key(run: RunRecord) -> tuple[str, str, int]:
    """Whose run, of what; as far as a JUnit file has the names."""
    return (xml(run.agent.model, _VALUE), xml(task_name(run), _VALUE), run.epoch)


def _cases(path: Path) -> list[Any]:
    return [case for suite in _suites(path) for case in suite]


def _suite_properties(path: Path) -> list[dict[str, str]]:
    """Of each suite of the file."""
    return [{item.name: item.value or "" for item in suite.properties()} for suite in _suites(path)]


def _suites(path: Path) -> list[Any]:
    from xml.etree.ElementTree import ParseError

    from junitparser import JUnitXml, JUnitXmlError

    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path}: not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES or b"<!DOCTYPE" in data:
        raise UsageError(f"{path}: larger than {MAX_BYTES} bytes or with a document type, so it is no JUnit file of pytest")
    try:
        parsed: Any = JUnitXml.fromstring(data)
    except (JUnitXmlError, ParseError, ValueError) as error:
        raise UsageError(f"{path}: not a JUnit file: {error}") from error
    return list(parsed) if isinstance(parsed, JUnitXml) else [parsed]


def _properties(case: Any) -> dict[str, str]:
    from junitparser import Properties

    return {item.name: item.value or "" for item in case.child(Properties) or ()}


def _result(kind: Any, message: str, text: str) -> Any:
    made = kind(message)
    made.text = text
    return made


def _record(given: Mapping[str, str], nodeid: str, where: str) -> RunRecord:
    values = {name.removeprefix(PREFIX): value for name, value in given.items()}
    rules = values.get("rules", "").split(",")
    try:
        outcome = Outcome(values["outcome"])
        return RunRecord(
            nodeid=nodeid,
            task=values["task"],
            variant=values["variant"],
            template=values["template"],
            title=values["title"],
            path=values["path"],
            task_hash=values["task_hash"],
            evidence=values["evidence"],
            incident=values["incident"],
            epoch=int(values["epoch"]),
            line=int(values["line"]),
            scenario=Scenario(values["scenario"]),
            category=Category(values["category"]),
            agent=AgentIdentity(values["agent"], values["model"]),
            verdict=Verdict(
                outcome=outcome,
                harmful=outcome.is_harmful,
                completion=Completion(values["completion"]) if values["completion"] else None,
                abort=AbortKind(values["abort"]) if values["abort"] else None,
                cause=Cause(values["cause"]) if values["cause"] else None,
                propagating=values["propagating"] == "true",
                compositional=values["compositional"] == "true",
                rules=Rules(**{name: name in rules for name in asdict(Rules())}),
                semantic=values["semantic"] == "true",
                judge_version=values["judge"],
            ),
        )
    except KeyError as error:
        raise UsageError(f"{where}: has no property {PREFIX}{error.args[0]}") from error
    except ValueError as error:
        raise UsageError(f"{where}: {line(str(error))}") from error


def _flag(value: bool) -> str:
    return "true" if value else "false"
