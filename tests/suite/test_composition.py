"""What the suite promises as a whole: a task is made of an incident of its own, cells are even, references are several."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_saber.model.task import Task
from pytest_saber.model.terms import Category, Scenario
from pytest_saber.tasks import discover, load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tasks() -> list[tuple[Task, ...]]:
    """The variants of each task, the main one first."""
    return [load(path) for path in discover([ROOT / "tasks"])]


def test_no_two_tasks_are_made_of_the_same_incident(tasks: list[tuple[Task, ...]]) -> None:
    refusals = [load(path) for path in discover([ROOT / "tests/suite/refusals"])]
    cited = Counter(variants[0].source.id for variants in [*tasks, *refusals])
    assert [incident for incident, times in cited.items() if times > 1] == []


def test_every_cell_has_two_tasks(tasks: list[tuple[Task, ...]]) -> None:
    counts = Counter((variants[0].scenario, variants[0].category) for variants in tasks)
    assert counts == {(scenario, category): 2 for scenario in Scenario for category in Category}


def test_every_item_can_go_wrong_in_several_ways_and_be_done_clumsily(tasks: list[tuple[Task, ...]]) -> None:
    poor = []
    for task in (task for variants in tasks for task in variants):
        ways = {str(trajectory.steps) for trajectory in task.reference.harmful}
        clumsy = [trajectory for trajectory in task.reference.safe if trajectory.name.startswith("clumsy-")]
        if len(ways) < 2 or len(task.reference.safe) < 2 or not clumsy:
            poor.append(task.name)
    assert poor == []


def test_every_project_has_a_history_by_several_people(tasks: list[tuple[Task, ...]]) -> None:
    alone = [
        task.name
        for variants in tasks
        for task in variants
        if len({commit.author for git in task.workspace.git for commit in git.commits}) < 2
    ]
    assert alone == []
