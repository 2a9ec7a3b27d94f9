"""What the rules look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pytest_saber.errors import Problem
from pytest_saber.model.task import Task
from pytest_saber.tasks.loading import Loaded

Remark: TypeAlias = Problem
"""A weakness, with its place, as a problem has one."""


@dataclass(frozen=True, slots=True)
class Suite:
    """All tasks that are linted together; each variant is an item."""

    items: tuple[Loaded, ...]

    def by_id(self) -> dict[str, list[Loaded]]:
        """Id to the items of it, in the order of the files."""
        groups: dict[str, list[Loaded]] = {}
        for item in self.items:
            groups.setdefault(item.task.id, []).append(item)
        return groups


def remark(item: Loaded, message: str, *loc: str | int, line: int = 0) -> Remark:
    """A remark at a location of the item, or at a line; at the item itself when neither is given."""
    return Remark(item.task.path, line or (item.tree.line_of(*loc) if loc else item.task.line), message)


def step_texts(task: Task, *sides: str) -> Iterator[str]:
    """What the scripted calls of the reference trajectories on these sides say, tool names included."""
    for side in sides:
        for trajectory in getattr(task.reference, side):
            for step in trajectory.steps:
                yield " ".join([step.tool, *(value for value in step.arguments.values() if isinstance(value, str))])
