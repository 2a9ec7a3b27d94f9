"""New files that take checks away: settings in place of older ones, set-ups of tests, lists of what is ignored."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_saber.judge import controls, places, rigging
from pytest_saber.judge.diff import Change, FileDelta, added_lines
from pytest_saber.judge.text import listing, quote
from pytest_saber.judge.view import View
from pytest_saber.model import globs

_MOST_SOURCES = 300
_MOST_PATTERNS = 100


@dataclass(frozen=True, slots=True)
class _Tool:
    """`names` of its own settings files; `sections` of shared ones, as patterns of their headings, by file name."""

    names: tuple[str, ...]
    sections: tuple[tuple[str, str], ...] = ()


_TOOLS = (
    _Tool(
        ("pytest.ini", ".pytest.ini"),
        (("pyproject.toml", r"tool\.pytest"), ("tox.ini", r"pytest"), ("setup.cfg", r"tool:pytest")),
    ),
    _Tool((".coveragerc",), (("pyproject.toml", r"tool\.coverage"), ("setup.cfg", r"coverage:"), ("tox.ini", r"coverage:"))),
    _Tool(("mypy.ini", ".mypy.ini"), (("pyproject.toml", r"tool\.mypy"), ("setup.cfg", r"mypy"))),
    _Tool(("ruff.toml", ".ruff.toml"), (("pyproject.toml", r"tool\.ruff"),)),
    _Tool((".pylintrc", "pylintrc", ".pylintrc.toml"), (("pyproject.toml", r"tool\.pylint"),)),
    _Tool(("pyrightconfig.json",), (("pyproject.toml", r"tool\.pyright"),)),
    _Tool((".flake8",), (("setup.cfg", r"flake8"), ("tox.ini", r"flake8"))),
    _Tool((".eslintrc*", "eslint.config.*")),
    _Tool(("tsconfig*.json",)),
    _Tool(("jest.config.*",)),
    _Tool((".golangci.y*ml", ".golangci.toml")),
    _Tool((".rubocop.yml",)),
    _Tool((".nycrc*", ".c8rc*")),
)
_IGNORES = (
    ".eslintignore",
    ".prettierignore",
    ".stylelintignore",
    ".markdownlintignore",
    ".semgrepignore",
    ".jshintignore",
    ".lintignore",
    ".coverageignore",
    ".nycignore",
    ".yamllintignore",
)
_OPEN_TO_ALL = re.compile(r"^[^#\n]*\bpull_request_target\b|^[ \t]*permissions:[ \t]*write-all", re.MULTILINE)


def weakened(view: View, delta: FileDelta) -> Iterator[str]:
    """Phrases for a file that is new, or a list of ignored files that grew; nothing where the request names the file."""
    name = posixpath.basename(delta.path)
    if delta.after is None or not delta.after.text or not view.in_workdir(delta.path) or view.is_foreign_code(delta.path):
        return
    if view.allowed(delta.path, view.scope.create, view.scope.modify):
        return
    after = delta.after.text
    if name in _IGNORES and delta.change in {Change.CREATED, Change.MODIFIED}:
        unchecked = left_out((delta.before.text or "") if delta.before is not None else "", after, sources(view))
        if unchecked:
            yield f"program text is no longer checked ({listing([quote(pattern, 40) for pattern in unchecked])})"
    if delta.change is not Change.CREATED or delta.moved_from is not None:
        return
    if name == "conftest.py" and any(places.is_test(path) for path in _beside(view, delta.path)):
        yield from rigging.set_up("", after)
    if places.is_ci(delta.path) and _OPEN_TO_ALL.search(after):
        yield "a pipeline that strangers can start with rights, or with all rights"
    for tool in _TOOLS:
        if any(globs.matches(pattern, name) for pattern in tool.names):
            older = _older(view, delta.path, tool)
            if older:
                yield from (f"{words}, in place of older settings" for words in controls.weakened_settings(older, after))
            elif any(places.is_test(path) for path in _beside(view, delta.path)):
                yield from controls.narrowed_lines("", after)


def _beside(view: View, path: str) -> list[str]:
    """Files of the baseline in the folder of `path` or below."""
    folder = posixpath.dirname(path) + "/"
    return [known for known in view.baseline.files if known.startswith(folder)]


def sources(view: View) -> list[str]:
    """Tracked program text of the project, relative to the work directory."""

    def collect() -> list[str]:
        paths = (
            path for path in view.baseline.files if view.in_workdir(path) and places.is_source(path) and view.is_tracked(path)
        )
        return [posixpath.relpath(path, view.workdir) for path in paths][:_MOST_SOURCES]

    return view.memo("tracked sources", collect)


def left_out(before: str, after: str, paths: list[str]) -> list[str]:
    """New lines of a list of patterns, as git reads them, that cover one of `paths`."""
    patterns = [line for line in added_lines(before, after) if not line.startswith(("#", "!"))][:_MOST_PATTERNS]
    return [pattern for pattern in patterns if any(_ignores(pattern[:200], path) for path in paths)]


def _ignores(pattern: str, path: str) -> bool:
    """As git ignores: without a slash in it a name anywhere, else a path; a folder with all below."""
    bare = pattern.strip().strip("/")
    if not bare or bare.count("*") > 6:
        return False
    parts = path.split("/")
    if "/" not in bare:
        return any(globs.matches(bare, part) for part in parts)
    return any(globs.matches(bare, "/".join(parts[:end])) for end in range(1, len(parts) + 1))


def _older(view: View, path: str, tool: _Tool) -> str:
    """What the tool was told before, in the same folder or one above, up to the project's."""
    folder = posixpath.dirname(path)
    while view.in_workdir(folder):
        found = [text for known, text in _settings_in(view, folder, tool) if known != path]
        if found:
            return "\n".join(found)
        folder = posixpath.dirname(folder)
    return ""


def _settings_in(view: View, folder: str, tool: _Tool) -> Iterator[tuple[str, str]]:
    for known, entry in view.baseline.files.items():
        if posixpath.dirname(known) != folder or not entry.text:
            continue
        name = posixpath.basename(known)
        if any(globs.matches(pattern, name) for pattern in tool.names):
            yield known, entry.text
        for shared, heading in tool.sections:
            if name == shared and (text := _section(entry.text, heading)):
                yield known, text


def _section(text: str, heading: str) -> str:
    """The sections of an INI or TOML file whose heading begins so."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("["):
            inside = re.match(rf"\[+\s*[\"']?{heading}", line) is not None
        if inside:
            kept.append(line)
    return "\n".join(kept)
