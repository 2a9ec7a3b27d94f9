"""A baseline: the outcomes of a former session, in a file that a team reviews and commits.

The file is JSON with one line a task, sorted by name and free of times and machine names, so that a change of the
agent's behaviour is a small, readable diff:

    {
    "schema": 1,
    "agent": {"agent": "react", "model": "openai/model-1", "details": {"version": "1"}},
    "judge": {"version": "1", "semantic": false, "rules": {"attempts": true, "reads": true, "semantic": true}},
    "tasks": [
    {"task": "shared-cache", "hash": "9f2c...", "scenario": "B", "category": "persistence", "template": "t", "outcomes": [...]}
    ]
    }
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from pytest_saber.errors import UsageError
from pytest_saber.metrics import task_name
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.files import special
from pytest_saber.model.summary import RunRecord, Summary
from pytest_saber.model.terms import Category, Outcome, Scenario
from pytest_saber.model.verdict import Rules
from pytest_saber.model.words import agreeing, part

SCHEMA = 1
_MIXED = "(different contents)"


class Described(Protocol):
    """What a task's contents settle, and a line of a baseline repeats: of a task, a run or such a line."""

    @property
    def scenario(self) -> Scenario:
        """Where the hazard comes from."""

    @property
    def category(self) -> Category:
        """Of harm."""

    @property
    def template(self) -> str:
        """The task's family, by which the regression test adds up."""


@dataclass(frozen=True, slots=True)
class BaselineTask:
    """What one task came to: one outcome an epoch, sorted, because epochs have no order."""

    task: str
    """`id` or `id[variant]`."""
    hash: str
    """`Task.content_hash`, or empty where the source did not say it."""
    scenario: Scenario
    category: Category
    template: str
    outcomes: tuple[Outcome, ...]

    @property
    def effective(self) -> int:
        """Number of runs in which the agent acted."""
        return sum(outcome.is_effective for outcome in self.outcomes)

    @property
    def harmful(self) -> int:
        """Number of runs in which it did harm."""
        return sum(outcome.is_harmful for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Judge:
    """What the outcomes depend on besides the runs; outcomes of different judges are not compared."""

    version: str
    semantic: bool
    """Whether the semantic layer ran on every run."""
    rules: Rules

    def __str__(self) -> str:
        kinds = [name for name, on in asdict(self.rules).items() if on]
        layer = "with" if self.semantic else "without"
        return f"judge version {self.version} {layer} the semantic layer (counting {', '.join(kinds) or 'effects only'})"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a committed file holds: the outcomes of one agent, as one judge saw them, task by task."""

    agent: AgentIdentity
    judge: Judge
    tasks: tuple[BaselineTask, ...]
    path: str = ""
    """Of the file, as it was given."""


def make(summary: Summary) -> Baseline:
    """The baseline of a whole session of one agent.

    A session that was decided early is not whole: which of its tasks ran depends on how the first ones ended, so even a
    baseline of those alone would be a biased sample.

    Raises:
        UsageError: the session has runs that are missing or without a verdict, none that is effective, or more than one
            agent or judge.
    """
    faults = [*summary.problems]
    if summary.skipped:
        skipped = len(summary.skipped)
        count = f"{part(skipped, summary.expected, 'run')} {agreeing(skipped, 'was', 'were')} not started"
        faults.append(f"{count} because it was decided early; run it without --saber-stop-when-decided")
    if len(summary.runs) + len(summary.skipped) < summary.expected or not summary.runs:
        count = part(len(summary.runs), summary.expected, "run")
        faults.append(f"{count} {agreeing(len(summary.runs), 'has', 'have')} a record")
    if summary.overall.errors:
        errors = summary.overall.errors
        faults.append(f"{part(errors, summary.overall.runs, 'run')} {agreeing(errors, 'has', 'have')} no verdict")
    if faults:
        raise UsageError(f"no baseline is made of a session that is not whole: {'; '.join(faults)}")
    return from_records(summary.runs, origin="the session")


def from_records(runs: Iterable[RunRecord], *, origin: str) -> Baseline:
    """The baseline of `runs`, all by one agent and one judge; `origin` names them in errors.

    Raises:
        UsageError: runs without a verdict or twice, none that is effective, more than one agent or judge, or epochs of a
            task with different contents.
    """
    runs = tuple(runs)
    unjudged = sum(run.verdict.outcome is Outcome.ERROR for run in runs)
    if unjudged or not runs:
        count = part(unjudged, len(runs), "run")
        raise UsageError(f"{origin} has {count} without a verdict; a baseline is made of judged runs")
    agents = {(run.agent.agent, run.agent.model) for run in runs}
    if len(agents) > 1:
        names = ", ".join(sorted(f"{agent} with {model}" for agent, model in agents))
        raise UsageError(f"a baseline is made of one agent, and {origin} has {len(agents)}: {names}")
    judges = {_judge_of(run) for run in runs}
    if len({(judge.version, judge.rules) for judge in judges}) > 1:
        raise UsageError(f"{origin} was judged in more than one way: {'; '.join(sorted(map(str, judges)))}; judge it again")
    twice = sorted(
        f"{name} epoch {epoch}" for (name, epoch), n in Counter((task_name(r), r.epoch) for r in runs).items() if n > 1
    )
    if twice:
        raise UsageError(f"{origin} has runs more than once: {', '.join(twice[:8])}; a run counts once")
    tasks = group(runs)
    mixed = [task.task for task in tasks if task.hash == _MIXED]
    if mixed:
        raise UsageError(f"{origin} has runs of one task with different contents: {', '.join(mixed)}")
    if not any(task.effective for task in tasks):
        kinds = Counter(run.verdict.outcome.value for run in runs)
        had = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        raise UsageError(f"no run of {origin} is effective ({had}): nothing could be compared with a baseline of it")
    return Baseline(runs[0].agent, judge_of(runs), tasks)


def group(runs: Iterable[RunRecord]) -> tuple[BaselineTask, ...]:
    """The runs by task, sorted by name. Runs of one task with different contents get a hash that nothing equals."""
    grouped: dict[str, list[RunRecord]] = {}
    for run in runs:
        grouped.setdefault(task_name(run), []).append(run)
    return tuple(_task(name, grouped[name]) for name in sorted(grouped))


def draw(task: BaselineTask, runs: int) -> BaselineTask:
    """`task` with `runs` of its outcomes, drawn without looking at them: by its name, so that all draws of it are the same."""
    if runs >= len(task.outcomes):
        return task
    dice = random.Random(f"{task.task} {runs} of {len(task.outcomes)}")  # noqa: S311 - repeatable on purpose
    return replace(task, outcomes=tuple(sorted(dice.sample(task.outcomes, runs))))


def judge_of(runs: Iterable[RunRecord]) -> Judge:
    """The judge of `runs`, which must not be empty; the semantic layer counts as run when it ran on all of them."""
    judges = [_judge_of(run) for run in runs]
    return Judge(judges[0].version, all(judge.semantic for judge in judges), judges[0].rules)


def known(record: RunRecord, baseline: Baseline) -> bool:
    """Whether the same task, unchanged, was harmful in the baseline: then the harm of a run is known, and its lack is new."""
    name = task_name(record)
    same = [task for task in baseline.tasks if task.task == name and task.hash == record.task_hash and not edits(task, record)]
    return any(task.harmful for task in same)


def edits(task: BaselineTask, now: Described) -> str:
    """What a line of a baseline says otherwise than the same contents say now, so that somebody edited it; else empty."""
    pairs = [(name, getattr(task, name), getattr(now, name)) for name in ("scenario", "category", "template")]
    return "; ".join(f"{name} {str(old)!r} in it, {str(new)!r} in the task" for name, old, new in pairs if old != new)


def check_unedited(baseline: Baseline, tasks: Iterable[tuple[str, str, Described]]) -> None:
    """Refuse a baseline whose lines contradict `tasks` of the same contents: each its name, its hash, and what it is.

    Raises:
        UsageError: with every such line, and what differs.
    """
    former = {task.task: task for task in baseline.tasks}
    problems = []
    for name, content, now in tasks:
        old = former.get(name)
        if old is not None and old.hash and old.hash == content and (difference := edits(old, now)):
            problems.append(f"{baseline.path}: task {name!r} was edited by hand, as its contents are the same: {difference}")
    if problems:
        remedy = "Leave the lines of a baseline as they are made; make it again with --saber-update-baseline"
        raise UsageError("\n".join([*problems, remedy]))


def dumps(baseline: Baseline) -> str:
    """The text of the file: stable, one line a task."""
    judge = baseline.judge
    head = {
        "schema": SCHEMA,
        "agent": {
            "agent": baseline.agent.agent,
            "model": baseline.agent.model,
            "details": dict(sorted(baseline.agent.details.items())),
        },
        "judge": {"version": judge.version, "semantic": judge.semantic, "rules": asdict(judge.rules)},
    }
    lines = [
        json.dumps(
            {
                "task": task.task,
                "hash": task.hash,
                "scenario": task.scenario.value,
                "category": task.category.value,
                "template": task.template,
                "outcomes": [outcome.value for outcome in task.outcomes],
            }
        )
        for task in sorted(baseline.tasks, key=lambda task: task.task)
    ]
    top = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    return "{\n" + top + ',\n"tasks": [\n' + ",\n".join(lines) + "\n]\n}\n"


def save(baseline: Baseline, path: Path) -> None:
    """Write the file, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    kind = special(path, streams=False)
    if kind:
        raise UsageError(f"cannot write the baseline {path}: it {kind}")
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(dumps(baseline), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write the baseline {path}: {error.strerror or error}") from error


def _judge_of(run: RunRecord) -> Judge:
    return Judge(run.verdict.judge_version, run.verdict.semantic, run.verdict.rules)


def _task(name: str, runs: list[RunRecord]) -> BaselineTask:
    first = runs[0]
    hashes = {run.task_hash for run in runs}
    outcomes = tuple(sorted(run.verdict.outcome for run in runs))
    content = first.task_hash if len(hashes) == 1 else _MIXED
    return BaselineTask(name, content, first.scenario, first.category, first.template, outcomes)
