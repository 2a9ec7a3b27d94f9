"""Whether JSON reports fit themselves, and together the suite that they say they ran.

What can be computed from the runs is, and is not looked at here. The rest of a report has to agree with its runs: a file that
does not was edited or put together by hand, and no decision is made of it. A session that is not whole says so itself, by runs
that it expected or by its problems: it may lack anything, since no gate lets it pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytest_saber.errors import UsageError
from pytest_saber.metrics import task_name
from pytest_saber.model.summary import GateResult, RunRecord
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Verdict, outcome_of
from pytest_saber.model.words import counted
from pytest_saber.reports.json_report import Report

_SHOWN = 5
_SKIPPED = re.compile(r"(?P<task>.+) epoch (?P<epoch>[1-9][0-9]{0,8})")
_EPOCHS = re.compile(r"[1-9][0-9]{0,8}")
_MEND = "take the file as its session wrote it, or run the session again"


def check(report: Report) -> None:
    """Raises UsageError for what contradicts itself in one report, and for runs that a whole session must have."""
    fault = next(_faults(report), None)
    if fault is not None:
        raise UsageError(f"{report.path}: contradicts itself: {fault}; {_MEND}")
    if report.shard is None:
        check_whole([report])


def check_whole(reports: Sequence[Report]) -> None:
    """Raises UsageError when reports that say they are a whole session lack runs of a task of the suite.

    `reports` are those of all shards, each checked by itself.
    """
    summaries = [report.summary for report in reports]
    named = next((report for report in reports if report.suite), None)
    if named is None or any(summary.problems for summary in summaries):
        return
    if any(len(summary.runs) + len(summary.skipped) < summary.expected for summary in summaries):
        return
    runs: dict[str, list[RunRecord]] = {}
    for run in (run for summary in summaries for run in summary.runs):
        runs.setdefault(task_name(run), []).append(run)
    not_started: dict[str, set[int]] = {}
    for task, epoch in (pair for summary in summaries for pair in map(_skipped, summary.skipped)):
        not_started.setdefault(task, set()).add(epoch)
    epochs = _epochs(named) or max((run.epoch for done in runs.values() for run in done), default=1)
    models = named.conditions.get("model", "").split(", ")
    faults: list[str] = []
    for name in named.suite:
        found = _gaps(runs.get(name, []), not_started.get(name, set()), epochs, models)
        faults += [f"{name}{what}" for what in found]
    if faults:
        where = " and ".join(report.path for report in reports[:_SHOWN])
        where += f" and {len(reports) - _SHOWN} more" if len(reports) > _SHOWN else ""
        raise UsageError(
            f"{where}: no run of {_some(faults)}, which the suite in {named.path} has, although the session says it is whole. "
            f"The report of a shard is merged with those of all other shards; otherwise {_MEND}"
        )


def _gaps(runs: Sequence[RunRecord], not_started: set[int], epochs: int, models: Sequence[str]) -> Iterator[str]:
    """What is missing of one task: ` epoch 2 (openai/model-1)`, or nothing but the task itself."""
    if not runs and not not_started:
        yield ""
        return
    ran = {run.agent.model for run in runs}
    if any(_of_its_file(run) and run.agent.model in models for run in runs):
        # Tasks of a file run with every model that settings name, others with those that their tests choose.
        ran |= set(models)
    for model in sorted(ran):
        done = {run.epoch for run in runs if run.agent.model == model} | not_started
        missing = [epoch for epoch in range(1, epochs + 1) if epoch not in done]
        yield from (f" epoch {epoch} ({model})" for epoch in missing[:_SHOWN])


def _faults(report: Report) -> Iterator[str]:
    summary = report.summary
    for run in summary.runs:
        yield from (f"{_name(run)} {what}" for what in _of_verdict(run.verdict))
    names = Counter((run.agent.agent, run.agent.model, task_name(run), run.epoch) for run in summary.runs)
    for (_, model, task, epoch), count in names.items():
        if count > 1:
            yield f"{task} epoch {epoch} ({model}) is there {count} times; a run counts once"
    if len(summary.runs) + len(summary.skipped) > summary.expected:
        also = f" and {len(summary.skipped)} that were not started" if summary.skipped else ""
        yield f"it expected {counted(summary.expected, 'run')} and has {len(summary.runs)}{also}"
    if summary.runs and summary.agent not in (run.agent for run in summary.runs):
        yield f"none of its runs is of its agent, {summary.agent.agent} with {summary.agent.model}"
    yield from _of_tasks(report)
    yield from _of_skipped(report)
    yield from _of_gate(report.gate)


def _of_verdict(verdict: Verdict) -> Iterator[str]:
    """The verdict of a run follows from its findings and its terms, by the table of outcomes."""
    outcome = verdict.outcome.value
    if verdict.harmful != verdict.outcome.is_harmful:
        yield f"is {outcome}, which contradicts harmful {str(verdict.harmful).lower()}"
    if verdict.harmful != bool(verdict.findings):
        yield f"is {outcome}, with {counted(len(verdict.findings), 'finding')}"
    if verdict.propagating != any(finding.propagates for finding in verdict.findings):
        yield f"has propagating {str(verdict.propagating).lower()}, which contradicts its findings"
    for finding in verdict.findings:
        if not verdict.rules.counts(finding.kind):
            yield f"has a finding of the kind {finding.kind.value}, which its rules do not count"
    terms = (verdict.completion, verdict.abort)
    if verdict.outcome is Outcome.ERROR:
        fits = terms == (None, None)
    else:
        try:
            fits = verdict.completion is not None and verdict.outcome is outcome_of(
                verdict.harmful, verdict.completion, verdict.abort
            )
        except ValueError:  # the table has no such line
            fits = False
    if not fits:
        completion, abort = ("none" if term is None else term.value for term in terms)
        yield f"is {outcome}, which contradicts its completion {completion} and its abort {abort}"


def _of_tasks(report: Report) -> Iterator[str]:
    text = report.conditions.get("epochs", "")
    epochs = _epochs(report)
    if text and epochs is None:
        yield f"epochs is {text!r} among its conditions, not a number of epochs"
    first: dict[str, RunRecord] = {}
    for run in report.summary.runs:
        name = task_name(run)
        if run.epoch < 1 or (epochs is not None and run.epoch > epochs):
            yield f"{_name(run)} is not one of {counted(epochs or 1, 'epoch')} that its conditions name"
        same = first.setdefault(name, run)
        for what in ("scenario", "category", "template"):
            if getattr(same, what) != getattr(run, what):
                yield f"{what} of {name} is {getattr(same, what)} and {getattr(run, what)}"
        if report.suite and name not in report.suite and _of_its_file(run):
            yield f"{_name(run)} is of a task that its suite does not have"
        if report.suite.get(name, run.task_hash) != run.task_hash:
            yield f"{_name(run)} is of contents {run.task_hash:.12}, and its suite has {name} with {report.suite[name]:.12}"


def _of_skipped(report: Report) -> Iterator[str]:
    done = {(task_name(run), run.epoch) for run in report.summary.runs}
    seen = set()
    for text in report.summary.skipped:
        task, epoch = _skipped(text)
        if (task, epoch) in done or text in seen:
            yield f"{text} was not started, and is there all the same"
        elif not epoch or (report.suite and task not in report.suite):
            yield f"{text!r} was not started, and is no run of its suite"
        seen.add(text)


def _of_gate(gate: GateResult) -> Iterator[str]:
    statuses = {rule.status for rule in gate.rules}
    if "off" in statuses:
        yield "a rule of its gate is off"
    follows = next((status for status in ("failed", "inconclusive", "passed") if status in statuses), "off")
    if gate.status not in ("off", follows):
        yield (
            f"its gate is {gate.status}, and {follows} by its rules" if gate.rules else f"its gate is {gate.status} by no rule"
        )


def _name(run: RunRecord) -> str:
    return f"{task_name(run)} epoch {run.epoch}"


def _of_its_file(run: RunRecord) -> bool:
    """Whether an item of the task's own file ran it, and not a test that somebody wrote, which may make tasks of its own."""
    return run.nodeid.startswith(f"{run.path}::")


def _skipped(text: str) -> tuple[str, int]:
    """Task and epoch of the name of a run that was not started; epoch 0 for what is no such name."""
    match = _SKIPPED.fullmatch(text)
    return (match["task"], int(match["epoch"])) if match else (text, 0)


def _epochs(report: Report) -> int | None:
    text = report.conditions.get("epochs", "")
    return int(text) if _EPOCHS.fullmatch(text) else None


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
