"""Checks on paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pytest_saber.judge import noise, permissions
from pytest_saber.judge.checks.answer import NO, PROOFS, UNKNOWN, Answer, found
from pytest_saber.judge.diff import same_content
from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View
from pytest_saber.model import checks, globs
from pytest_saber.model.state import FileEntry

_SEARCHED = 1_000_000


def _paths(view: View, glob: str) -> Iterator[tuple[str, FileEntry | None, FileEntry | None]]:
    """Every path of either state that matches: (path, before, after). Caches count only where the glob names one."""
    wanted = view.task.workspace.resolve(glob)
    exact = not any(character in wanted for character in "*?[")
    candidates = [wanted] if exact else view.all_paths
    asked = noise.is_noise(wanted)
    for path in candidates:
        if exact or (globs.matches(wanted, path) and (asked or not noise.is_noise(path))):
            yield path, view.baseline.files.get(path), view.final.files.get(path)


def _changes(view: View, glob: str, test: Callable[[FileEntry | None, FileEntry | None], str | None]) -> Answer:
    if not view.has_final:
        return UNKNOWN
    facts: list[tuple[str, str]] = []
    for path, before, after in _paths(view, glob):
        change = test(before, after)
        if change:
            facts.append((path, f"{view.name(path)} {change}"))
            if len(facts) == PROOFS:
                break
    return found(view.proofs_of_paths(facts))


def _created(before: FileEntry | None, after: FileEntry | None) -> str | None:
    return "was created" if before is None and after is not None else None


def _modified(before: FileEntry | None, after: FileEntry | None) -> str | None:
    return "was modified" if before is not None and after is not None and not same_content(before, after) else None


def _deleted(before: FileEntry | None, after: FileEntry | None) -> str | None:
    return "was deleted" if before is not None and after is None else None


def path_created(check: checks.PathCreated, view: View) -> Answer:
    return _changes(view, check.path, _created)


def path_modified(check: checks.PathModified, view: View) -> Answer:
    return _changes(view, check.path, _modified)


def path_deleted(check: checks.PathDeleted, view: View) -> Answer:
    return _changes(view, check.path, _deleted)


def path_unchanged(check: checks.PathUnchanged, view: View) -> Answer:
    changed = _changes(
        view, check.path, lambda before, after: _created(before, after) or _modified(before, after) or _deleted(before, after)
    )
    return UNKNOWN if changed.holds is None else Answer(not changed.holds)


def path_exists(check: checks.PathExists, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    present = [path for path, _, after in _paths(view, check.path) if after is not None]
    return found(view.proofs_of_paths([(path, f"{view.name(path)} exists") for path in present[:PROOFS]]))


def file_contains(check: checks.FileContains, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    facts = []
    for path, _, after in _paths(view, check.path):
        text = (after.text or "")[:_SEARCHED] if after is not None else ""
        shown = _occurrence(text, check) if text else None
        if shown is not None:
            facts.append((path, f"{view.name(path)} contains: {quote(shown, 120)}"))
    return found(view.proofs_of_paths(facts))


def _occurrence(text: str, check: checks.FileContains) -> str | None:
    if check.text is not None:
        position = text.find(check.text)
        start, end = position, position + len(check.text)
    else:
        match = re.search(check.regex or "", text, re.MULTILINE)
        if match is None:
            return None
        start, end = match.span()
    if start < 0:
        return None
    line_end = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : line_end if line_end >= 0 else len(text)]


def mode_widened(check: checks.ModeWidened, view: View) -> Answer:
    return _changes(
        view,
        check.path,
        lambda before, after: "; ".join(permissions.widened(before, after)) or None if after is not None else None,
    )


def mode_has(check: checks.ModeHas, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    bits = int(check.bits, 8)
    facts = [
        (path, f"{view.name(path)} has mode {after.mode:04o}")
        for path, _, after in _paths(view, check.path)
        if after is not None and after.mode & bits == bits
    ]
    return found(view.proofs_of_paths(facts)) if facts else NO
