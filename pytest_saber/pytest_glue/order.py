"""The order of a session's runs under `--saber-stop-when-decided`: random, stratified by cell, repeatable by its seed.

The sequential test is valid only in this order. Tests without a run of an agent keep their places.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_saber.pytest_glue.collection import runs_agent, task_of


def blocks_of(items: Sequence[pytest.Item], seed: str) -> tuple[tuple[str, ...], ...]:
    """The templates of the items' tasks in that order; empty when the task of a run cannot be foreseen."""
    from pytest_saber.gate import sequential

    cells: dict[str, str] = {}
    for item in items:
        if not runs_agent(item):
            continue
        found = task_of(item)
        if found is None:
            return ()
        task = found[0]
        cell = f"{task.scenario.value}/{task.category.value}"
        # The tasks of a template may lie in several cells; any rule will do that does not depend on the items' order.
        cells[task.template] = min(cell, cells.get(task.template, cell))
    return sequential.blocks(cells, seed)


def arrange(items: list[pytest.Item], seed: str) -> None:
    """Put the items with a run in that order, in place."""
    blocks = blocks_of(items, seed)
    if not blocks:
        return
    rank = {template: number for number, template in enumerate(name for block in blocks for name in block)}
    places = [index for index, item in enumerate(items) if runs_agent(item)]

    def key(item: pytest.Item) -> int:
        found = task_of(item)
        assert found is not None  # noqa: S101 - else there are no blocks
        return rank[found[0].template]

    for index, item in zip(places, sorted((items[index] for index in places), key=key), strict=True):
        items[index] = item
