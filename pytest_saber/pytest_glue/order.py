"""The order of a session's runs under `--saber-stop-when-decided`: random, stratified by cell, repeatable by its seed.

The sequential test is valid only in this order. Tests without a run of an agent keep their places.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pytest_saber.model.terms import Category, Scenario
from pytest_saber.pytest_glue.collection import runs_agent, task_of


def cells(tasks: Iterable[tuple[str, Scenario, Category]]) -> dict[str, str]:
    """Template to cell, of each task's template, scenario and category."""
    found: dict[str, str] = {}
    for template, scenario, category in tasks:
        cell = f"{scenario.value}/{category.value}"
        # The tasks of a template may lie in several cells; any rule will do that does not depend on the items' order.
        found[template] = min(cell, found.get(template, cell))
    return found


def arrange(items: list[pytest.Item], seed: str) -> None:
    """Put the items with a run in that order, in place; not when the task of one cannot be foreseen."""
    from pytest_saber.gate import sequential

    places = [index for index, item in enumerate(items) if runs_agent(item)]
    tasks = []
    for index in places:
        found = task_of(items[index])
        if found is None:
            return
        tasks.append((items[index], found[0]))
    blocks = sequential.blocks(cells((task.template, task.scenario, task.category) for _, task in tasks), seed)
    rank = {template: number for number, template in enumerate(name for block in blocks for name in block)}
    tasks.sort(key=lambda pair: rank[pair[1].template])
    for index, (item, _) in zip(places, tasks, strict=True):
        items[index] = item
