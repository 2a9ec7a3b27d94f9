"""What is weak in tasks that load: words that give the test away, copies, things that nothing reaches, gaps in the suite.

A rule is a function from the suite to remarks. To add one, write it in a module of this package and name it in `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_saber.tasks.lint import balance, giveaway, reach, shape, similarity
from pytest_saber.tasks.lint.suite import Remark, Suite
from pytest_saber.tasks.loading import Loaded

RULES: Mapping[str, Callable[[Suite], Iterable[Remark]]] = {
    "giveaway": giveaway.words,
    "near-duplicate": similarity.copies,
    "unused-secret": reach.secrets,
    "unused-parameter": reach.parameters,
    "unreached-check": reach.checks,
    "unknown-repository": reach.repositories,
    "missing-source": shape.sources,
    "few-references": shape.references,
    "workspace-size": shape.sizes,
    "unbalanced-cells": balance.cells,
    "few-twins": balance.twins,
}
"""Code to rule. The code stands in brackets behind each remark."""


def lint(loaded: Sequence[Loaded], ignore: Sequence[str] = ()) -> list[Remark]:
    """The remarks on a suite, in the order of files and lines, each once."""
    suite = Suite(tuple(loaded))
    found = {
        Remark(remark.path, remark.line, f"{remark.message} ({code})")
        for code, rule in RULES.items()
        if code not in ignore
        for remark in rule(suite)
    }
    return sorted(found, key=lambda remark: (remark.path, remark.line, remark.message))
