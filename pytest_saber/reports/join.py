"""One session out of the JSON reports of its shards.

Nothing is joined that does not belong together: reports of other suites, agents, judges or settings are refused, with the
names of both files. A shard without a report leaves the session not whole, which no gate lets pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TypeVar

from pytest_saber.errors import UsageError
from pytest_saber.metrics import summarize, task_name
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import Summary
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Rules
from pytest_saber.reports.consistency import check_whole
from pytest_saber.reports.json_report import Report

T = TypeVar("T")
_SHOWN = 5
_ALIKE = "run all shards alike"


def join(reports: Sequence[Report]) -> Summary:
    """One summary of the runs of `reports`, of which there is at least one.

    Raises:
        UsageError: a shard or a run is there twice, reports do not belong together, or are together not what they say.
    """
    _raise_for_twice(reports)
    several = len(reports) > 1
    problems = [
        f"{report.path}: {problem}" if several else problem for report in reports for problem in report.summary.problems
    ]
    lost = _missing(reports)
    problems += lost
    for other in reports[1:]:
        _raise_for_difference(reports[0], other)
    _raise_for_agents(reports)
    _raise_for_judges(reports)
    if not lost:
        check_whole(reports)
    # A shard that was killed has no run, and knows only which agent it was asked for.
    first = next((report.summary for report in reports if report.summary.runs), reports[0].summary)
    return summarize(
        sorted((run for report in reports for run in report.summary.runs), key=lambda run: (run.nodeid, run.epoch)),
        session=first.session if len(reports) == 1 else f"{first.session} and {len(reports) - 1} more",
        agent=first.agent,
        expected=sum(report.summary.expected for report in reports),
        problems=problems,
        skipped=[name for report in reports for name in report.summary.skipped],
        models=[name for report in reports for name in report.summary.model],
    )


def _raise_for_twice(reports: Sequence[Report]) -> None:
    seen: dict[tuple[str, str, int], str] = {}
    for report in reports:
        for run in report.summary.runs:
            key = (run.agent.model, task_name(run), run.epoch)
            if key in seen:
                raise UsageError(
                    f"{key[1]} epoch {key[2]} ({key[0]}) is in {seen[key]} and in {report.path}; a run counts once"
                )
            seen[key] = report.path


def _missing(reports: Sequence[Report]) -> list[str]:
    """A problem for each shard without a report."""
    shards = [report for report in reports if report.shard is not None]
    if len(reports) > 1 and len(shards) < len(reports):
        whole = next(report.path for report in reports if report.shard is None)
        raise UsageError(f"{whole} is not a shard's report (no --saber-shard), so it cannot be merged with others")
    sizes = {report.shard.of: report.path for report in shards if report.shard is not None}
    if len(sizes) > 1:
        what = ", ".join(f"{path} of {of} shards" for of, path in sorted(sizes.items()))
        raise UsageError(f"the reports are of suites split in different ways: {what}")
    found: dict[int, str] = {}
    for report in shards:
        index = report.shard.index if report.shard is not None else 0
        if index in found:
            raise UsageError(f"shard {index} is there twice: {found[index]} and {report.path}")
        found[index] = report.path
    of = next(iter(sizes), 0)
    return [f"shard {index} of {of} has no report" for index in range(1, of + 1) if index not in found]


def _raise_for_difference(first: Report, other: Report) -> None:
    policy = ({name: text for name, (text, _) in report.settings.items()} for report in (first, other))
    overridden = ({f"overridden {name}": text for name, (text, _) in report.overridden.items()} for report in (first, other))
    ran = bool(first.summary.runs and other.summary.runs)
    for mine, theirs in (
        tuple(policy),
        tuple(overridden),
        (first.conditions, other.conditions),
        ({"root": first.root}, {"root": other.root}),
    ):
        for name in sorted(mine.keys() | theirs.keys()):
            if not ran and name in ("agent", "model"):
                continue
            one, two = mine.get(name, ""), theirs.get(name, "")
            if one != two:
                raise UsageError(f"{name} is {one!r} in {first.path} and {two!r} in {other.path}; {_ALIKE}")
    # A session that was interrupted on xdist workers knows of no suite; it is not whole anyway.
    if first.suite and other.suite and first.suite != other.suite:
        what = _suites(first.suite, other.suite, first.path, other.path)
        raise UsageError(f"{first.path} and {other.path} are of different suites: {what}; run all shards on the same files")


def _suites(mine: Mapping[str, str], theirs: Mapping[str, str], my_path: str, their_path: str) -> str:
    changed = [name for name in sorted(mine.keys() & theirs.keys()) if mine[name] != theirs[name]]
    texts = [f"other contents of {_some(changed)}"] if changed else []
    for names, path in ((mine.keys() - theirs.keys(), my_path), (theirs.keys() - mine.keys(), their_path)):
        if names:
            texts.append(f"only {path} has {_some(sorted(names))}")
    return ", ".join(texts)


def _raise_for_agents(reports: Sequence[Report]) -> None:
    reports = [report for report in reports if report.summary.runs]
    agents = {report.summary.agent.agent for report in reports}
    models = {report.summary.agent.model for report in reports}
    if len(agents) > 1 or len(models) > 1:
        files = " and ".join(dict.fromkeys((reports[0].path, _other(reports, lambda report: report.summary.agent).path)))
        names = f"{', '.join(sorted(agents))} with {', '.join(sorted(models))}"
        raise UsageError(f"the reports are of different agents: {names} ({files})")
    seen: dict[str, tuple[AgentIdentity, str]] = {}
    for report in reports:
        for run in report.summary.runs:
            known, path = seen.setdefault(run.agent.model, (run.agent, report.path))
            if known != run.agent:
                what = _identities(known, run.agent)
                raise UsageError(f"{run.agent.model} was not tested alike in {path} and {report.path}: {what}; {_ALIKE}")


def _identities(one: AgentIdentity, two: AgentIdentity) -> str:
    mine, theirs = ({"agent": agent.agent, **agent.details} for agent in (one, two))
    names = [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]
    return ", ".join(f"{name} is {mine.get(name, '')!r} and {theirs.get(name, '')!r}" for name in names[:_SHOWN])


def _raise_for_judges(reports: Sequence[Report]) -> None:
    seen: dict[tuple[str, Rules], str] = {}
    for report in reports:
        for run in report.summary.runs:
            if run.verdict.outcome is not Outcome.ERROR:
                seen.setdefault((run.verdict.judge_version, run.verdict.rules), report.path)
    if len(seen) > 1:
        (one, first), (two, second) = list(seen.items())[:2]
        raise UsageError(
            f"{first} was judged by {_judge(*one)}, {second} by {_judge(*two)}; judge the runs again alike (pytest-saber judge)"
        )


def _judge(version: str, rules: Rules) -> str:
    kinds = ", ".join(name for name, on in asdict(rules).items() if on) or "effects only"
    return f"judge version {version} (counting {kinds})"


def _other(reports: Sequence[Report], of: Callable[[Report], T]) -> Report:
    """The first report that is not like the very first."""
    return next((report for report in reports if of(report) != of(reports[0])), reports[0])


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
