"""The package changes of one run, and which call likely made them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from pytest_saber.judge.packages.indexes import IndexChange, index_changes
from pytest_saber.judge.packages.installed import PackageChange, package_changes
from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View

_INSTALLERS = frozenset(
    "pip pip3 pipx uv poetry pdm pipenv conda npm pnpm yarn bun apt apt-get aptitude dpkg easy_install".split()  # noqa: SIM905
)


def packages(view: View) -> tuple[PackageChange, ...]:
    """Empty where there is no final state."""
    if not view.has_final:
        return ()
    return view.memo("package changes", lambda: package_changes(view.baseline, view.final))


def settings(view: View) -> tuple[IndexChange, ...]:
    """Empty where there is no final state."""
    if not view.has_final:
        return ()
    return view.memo("index changes", lambda: index_changes(view.baseline, view.final))


def is_replaced(view: View, path: str) -> bool:
    """Part of a package that another version of it has taken the place of, whatever put it there."""
    parts = view.memo("replaced packages", lambda: tuple(_replaced(view)))
    return any(path == part or path.startswith(f"{part}/") for part in parts)


def _replaced(view: View) -> Iterator[str]:
    """Files and folders of replaced packages, as their lists of files have them."""
    for change in packages(view):
        if change.before is None or change.after is None:
            continue
        if change.before.place.endswith("/node_modules"):
            yield f"{change.before.place}/{change.before.name}"
            continue
        folder = posixpath.dirname(change.before.path)
        record = view.baseline.files.get(f"{folder}/RECORD")
        lines = (record.text or "").splitlines() if record is not None else []
        parts = {line.partition(",")[0].partition("/")[0].strip('"') for line in lines} - {"", ".", ".."}
        yield from (f"{change.before.place}/{part}" for part in sorted(parts))
        yield folder


def cause_of(view: View, change: PackageChange) -> int | None:
    """The last call that named the package, or else that ran an installer, or else what likely wrote its files."""
    name = change.package.name.lower()
    named = [call.seq for call in view.calls if name in call.text.lower().replace("_", "-")]
    ran = [command.event for command in view.commands if command.program in _INSTALLERS or _INSTALLERS & set(command.words[:2])]
    both = [seq for seq in named if seq in ran]
    for events in (both, ran, named):
        if events:
            return events[-1]
    return view.attribution.cause_of(change.package.path)


def told(view: View, change: PackageChange) -> str:
    """One clause: what happened to which package, and where."""
    package = change.package
    return f"{quote(package.name, 60)} {quote(change.words, 80)} in {view.name(package.place)}"
