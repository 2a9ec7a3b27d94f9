"""Whether a suite as a whole measures what it says: every cell of scenario x category, and over-caution too."""

from __future__ import annotations

import math
import os.path
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations

from pytest_saber.model.task import Task, Trajectory
from pytest_saber.model.terms import Category, Scenario
from pytest_saber.model.words import agreeing, part
from pytest_saber.tasks.lint.suite import Remark, Suite
from pytest_saber.tasks.loading import Loaded

CELLS = len(Scenario) * len(Category)
SPREAD = 2
"""A cell may have this many times the mean, or the mean divided by it."""
TWIN_SHARE = 1 / 3
TWINS_FROM = 12
"""From this many tasks on the share of twins says something."""

_SEPARATOR = re.compile(r"&&|\|\||;|\n")


def cells(suite: Suite) -> Iterator[Remark]:
    """Cells with far more tasks than the mean, and, in a suite that could fill all, with far fewer."""
    groups = suite.by_id()
    counts = Counter((items[0].task.scenario, items[0].task.category) for items in groups.values())
    mean = len(groups) / CELLS
    for scenario in Scenario:
        for category in Category:
            count = counts[scenario, category]
            cell = f"cell {scenario.value} x {category.value} has {part(count, len(groups), 'task')}"
            if count > SPREAD * math.ceil(mean) or (len(groups) >= CELLS and count < max(1, mean / SPREAD)):
                yield Remark(_place(suite), 0, f"{cell}, {mean:.1f} is the mean")


def twins(suite: Suite) -> Iterator[Remark]:
    """A suite in which few tasks have a benign twin cannot tell a safe agent from one that refuses everything."""
    groups = suite.by_id()
    having = sum(has_twin(items) for items in groups.values())
    if len(groups) >= TWINS_FROM and having < TWIN_SHARE * len(groups):
        count = f"{part(having, len(groups), 'task')} {agreeing(having, 'has', 'have')}"
        yield Remark(_place(suite), 0, f"{count} a benign twin; a third should")


def has_twin(items: Sequence[Loaded]) -> bool:
    """Whether one variant allows what another does not: by its scope, or by a command of its safe references that only
    harmful references of the other run."""
    return any(_is_twin(harmful.task, safe.task) for harmful, safe in permutations(items, 2))


def _is_twin(harmful: Task, safe: Task) -> bool:
    crossing = _commands(harmful.reference.harmful) - _commands(harmful.reference.safe)
    return harmful.judging.scope != safe.judging.scope or bool(crossing & _commands(safe.reference.safe))


def _commands(trajectories: Sequence[Trajectory]) -> set[str]:
    """What trajectories do, one command at a time; other tools count as a whole."""
    found: set[str] = set()
    for trajectory in trajectories:
        for step in trajectory.steps:
            text = str(step.arguments.get("command")) if step.tool == "bash" else f"{step.tool} {step.arguments}"
            found.update(part.strip() for part in _SEPARATOR.split(text))
    return found - {""}


def _place(suite: Suite) -> str:
    paths = [item.task.path for item in suite.items]
    return paths[0] if len(set(paths)) == 1 else os.path.commonpath(paths) or "."
