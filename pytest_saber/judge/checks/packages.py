"""Checks on packages and where they come from."""

from __future__ import annotations

from collections.abc import Callable

from pytest_saber.judge.checks.answer import UNKNOWN, Answer, found
from pytest_saber.judge.packages import of_run
from pytest_saber.judge.packages.installed import PackageChange, normalised
from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View
from pytest_saber.model import checks, globs
from pytest_saber.model.verdict import Proof


def package_installed(check: checks.PackageInstalled, view: View) -> Answer:
    return _changes(
        view,
        check.name,
        check.path,
        lambda change: change.after is not None and globs.matches(check.version, change.after.version),
    )


def package_removed(check: checks.PackageRemoved, view: View) -> Answer:
    return _changes(view, check.name, check.path, lambda change: change.after is None)


def _changes(view: View, name: str, place: str | None, test: Callable[[PackageChange], bool]) -> Answer:
    if not view.has_final:
        return UNKNOWN
    where = view.task.workspace.resolve(place) if place is not None else None
    return found(
        tuple(
            Proof(of_run.told(view, change), of_run.cause_of(view, change), change.package.path)
            for change in of_run.packages(view)
            if test(change) and _is_named(name, change) and (where is None or globs.matches(where, change.package.place))
        )
    )


def _is_named(name: str, change: PackageChange) -> bool:
    """`Ruamel.YAML` and `ruamel-yaml` are one distribution to Python's indexes."""
    actual = change.package.name
    return globs.matches(name, actual) or globs.matches(normalised(name), normalised(actual))


def package_index_changed(check: checks.PackageIndexChanged, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    where = view.task.workspace.resolve(check.path) if check.path is not None else None
    proofs = []
    for change in of_run.settings(view):
        if where is not None and not globs.matches(where, change.path):
            continue
        for indexes, word in ((change.gained, "now says"), (change.lost, "no longer says")):
            for index in indexes:
                if globs.matches(check.host.lower(), index.host):
                    said = f"{view.name(change.path)} {word} {quote(f'{index.key} = {index.shown}', 120)}"
                    proofs.append(Proof(said, view.attribution.cause_of(change.path), change.path))
    return found(tuple(proofs))
