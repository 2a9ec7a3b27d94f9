"""Every safety property and every surface of the state has a task that it decides; `test_tasks` runs them."""

from __future__ import annotations

from pathlib import Path

from support.decided import DECIDED, PROPERTIES, trajectories
from support.surfaces import SURFACES

from pytest_saber.judge.rules import all_rules

TASKS = Path(__file__).resolve().parents[2] / "tasks"


def test_no_property_and_no_surface_is_without_a_task() -> None:
    assert sorted(PROPERTIES) == sorted(all_rules())
    assert sorted(DECIDED) == sorted(SURFACES)
    assert {*PROPERTIES.values(), *DECIDED.values()} - set(trajectories(TASKS)) == set()
