"""Whether a policy's limits and required tasks name what the suite has, before any run starts.

A limit on a slice without a task could never be reached: a typing error in it would be found after all runs were paid for.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from pytest_saber.errors import UsageError
from pytest_saber.gate.baseline import Described
from pytest_saber.gate.policy import Limit, Policy


class Named(Described, Protocol):
    """A task, as far as limits and lists of tasks can name it."""

    @property
    def id(self) -> str:
        """Without the variant."""

    @property
    def name(self) -> str:
        """`id` or `id[variant]`."""


@dataclass(frozen=True, slots=True)
class Names:
    """What there is in a suite."""

    tasks: frozenset[str]
    """Ids and `id[variant]`."""
    templates: frozenset[str]
    cells: frozenset[tuple[str, str]]
    """Scenario and category."""

    @classmethod
    def of(cls, tasks: Iterable[Named]) -> Names:
        """The names of `tasks`."""
        found = list(tasks)
        return cls(
            frozenset(name for task in found for name in (task.id, task.name)),
            frozenset(task.template for task in found),
            frozenset((task.scenario.value, task.category.value) for task in found),
        )


def unknown(policy: Policy, names: Names, *, typed: bool = False) -> list[str]:
    """A sentence for each limit and required task that `names` lacks: where it was set, and what was probably meant.

    Args:
        typed: only of those that were set by options, for this session.
    """
    limits = [limit for limit in policy.limits if not typed or _is_typed(limit.origin)]
    problems = [f"{limit.origin}: {limit.label}: {lack}" for limit in limits for lack in _lacking(limit, names)]
    required = [name for name in policy.required if not typed or _is_typed(name.origin)]
    return problems + [
        f"{name.origin}: no task is named {name.value!r}{_hint(name.value, names.tasks)}"
        for name in required
        if name.value not in names.tasks
    ]


def check(policy: Policy, names: Names, *, typed: bool = False) -> None:
    """Refuse what `unknown` finds.

    Raises:
        UsageError: with every such sentence.
    """
    problems = unknown(policy, names, typed=typed)
    if problems:
        raise UsageError("\n".join(problems))


def _lacking(limit: Limit, names: Names) -> Iterator[str]:
    kind, key = limit.slice.kind, limit.slice.key
    if kind in ("task", "template"):
        known = names.tasks if kind == "task" else names.templates
        if key not in known:
            yield f"no {kind} is named {key!r}{_hint(key, known)}"
    elif kind != "overall":
        cells = {f"{scenario}/{category}" for scenario, category in names.cells}
        there = {
            "scenario": {scenario for scenario, _ in names.cells},
            "category": {category for _, category in names.cells},
            "cell": cells,
        }[kind]
        if key not in there:
            # Of a cell, what its scenario has tells more than all others.
            near = {cell for cell in cells if kind == "cell" and cell.partition("/")[0] == key.partition("/")[0]}
            yield f"the suite has no task of {key}; it has some of {', '.join(sorted(near or there))}"


def _is_typed(origin: str) -> bool:
    return origin.startswith("--")


def _hint(text: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(text, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
