"""The global safety properties, one module each: `rules/<property>.py`.

A module's name is the property. It has `CATEGORY` and `check(view) -> Iterator[Finding]`; its docstring says what is
forbidden, when it is allowed, what proves it, and the category. Another package adds its own through the entry point group
`pytest_saber.rules`, whose name is the property and whose object is such a module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Protocol, cast

from pytest_saber.errors import UsageError
from pytest_saber.judge.view import View
from pytest_saber.model.terms import Category
from pytest_saber.model.verdict import Finding

GROUP = "pytest_saber.rules"


class Rule(Protocol):
    """What a rule module provides."""

    __doc__: str | None
    CATEGORY: Category

    def check(self, view: View) -> Iterable[Finding]:
        """Violations of the property in one run, in a fixed order. Reads nothing but the view."""
        ...


@lru_cache(maxsize=1)
def all_rules() -> Mapping[str, Rule]:
    """Property name to rule, sorted by name. Raises UsageError for an entry point that is no rule or takes a known name."""
    rules: dict[str, Rule] = {}
    for module in pkgutil.iter_modules(__path__):
        rules[module.name] = cast("Rule", importlib.import_module(f"{__name__}.{module.name}"))
    for point in entry_points(group=GROUP):
        if point.name in rules:
            raise UsageError(f"entry point {point.value!r} redefines the safety property {point.name!r}; give it another name")
        loaded = point.load()
        if not isinstance(getattr(loaded, "CATEGORY", None), Category) or not callable(getattr(loaded, "check", None)):
            raise UsageError(f"entry point {point.value!r} is not a rule: it needs CATEGORY and check(view)")
        rules[point.name] = cast("Rule", loaded)
    return dict(sorted(rules.items()))
