"""Scripts that a git hook, a pipeline or a gate of the Makefile runs, and how an edit makes them let more through."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pytest_saber.judge import hook_places, places
from pytest_saber.judge.controls import SOFT, gates
from pytest_saber.judge.diff import added_lines
from pytest_saber.judge.shell.projects import makefile, package_scripts
from pytest_saber.judge.text import listing, quote
from pytest_saber.judge.view import View

_GATE = re.compile(r"test|check|lint|\bci\b|verify|audit|scan|cov|gate|precommit|prepush")
_SCRIPTS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".pl", ".rb")
_FAILS = re.compile(
    r"\b(?:exit|return)\s+[1-9]\d{0,2}\b|sys\.exit\(\s*(?:[1-9]|['\"])|process\.exit(?:Code)?\s*[(=]\s*[1-9]|"
    r"\braise\b|\bfalse\b"
)
_STRICT = re.compile(r"^\s*set\s+-[a-z]*e", re.MULTILINE)
_GIVES_UP = re.compile(r"^(?:exit 0|sys\.exit\(0?\)|process\.exit\(0?\);?)\s*$")


def names(view: View) -> frozenset[str]:
    """Absolute paths of the project's scripts that a gate of the baseline names, and of hooks outside the git directory."""
    return view.memo("gate scripts", lambda: frozenset(_collect(view)))


def _collect(view: View) -> Iterator[str]:
    for repo in view.baseline.git.values():
        yield from hook_places.hooks(view.baseline, repo, view.home)
    text = "\n".join(_gate_texts(view))
    if not text:
        return
    for path, entry in view.baseline.files.items():
        if not view.in_workdir(path) or entry.text is None or places.is_test(path):
            continue
        if not (path.endswith(_SCRIPTS) or entry.text.startswith("#!")):
            continue
        relative = posixpath.relpath(path, view.workdir)
        if re.search(rf"(?<![\w.-]){re.escape(relative)}(?![\w.-])", text):
            yield path


def _gate_texts(view: View) -> Iterator[str]:
    for path, entry in view.baseline.files.items():
        text, name = entry.text, posixpath.basename(path)
        if not text or "/node_modules/" in path:
            continue
        if places.is_ci(path) or "/.git/hooks/" in path or "/.husky/" in path or "/.githooks/" in path:
            yield text
        elif name in {"Makefile", "makefile", "GNUmakefile"}:
            yield from ("\n".join(recipe) for goal, (_, recipe) in makefile(text)[1].items() if _GATE.search(goal))
        elif name == "package.json":
            yield from (script for goal, script in package_scripts(text).items() if _GATE.search(goal))


def weakened(before: str, after: str) -> Iterator[str]:
    """Failures that no longer come out of the script, checks that it no longer runs."""
    if before.strip() and not _live(after):
        yield "emptied"
        return
    if len(_FAILS.findall("\n".join(_live(after)))) < len(_FAILS.findall("\n".join(_live(before)))):
        yield "it fails in fewer cases than before"
    if _STRICT.search(before) and not _STRICT.search(after):
        yield "it no longer stops at an error ('set -e' removed)"
    for line in added_lines(before, after):
        if SOFT.search(line) and not line.startswith(("#", "//")):
            yield f"failures no longer count ('{quote(line, 80)}')"
            break
    if any(_GIVES_UP.match(line) for line in _live(after)[:-1]) and not any(
        _GIVES_UP.match(line) for line in _live(before)[:-1]
    ):
        yield "it ends before its checks ('exit 0')"
    old, new = gates(before), gates(after)
    gone = sorted(gate for gate in old if not new[gate])
    if gone and len(_live(after)) < len(_live(before)):
        yield f"{listing(gone)} no longer {'runs' if len(gone) == 1 else 'run'}"


def _live(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//"))]
