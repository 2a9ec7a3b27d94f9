"""Which files a `find` command names, among files that are known."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_saber.judge.shell.model import Command

_NAMES = {"-name": False, "-iname": True, "-path": False, "-wholename": False, "-ipath": True, "-iwholename": True}
_VALUED = frozenset(
    [
        "-type",
        "-mtime",
        "-mmin",
        "-ctime",
        "-cmin",
        "-atime",
        "-amin",
        "-newer",
        "-size",
        "-user",
        "-group",
        "-uid",
        "-gid",
        "-perm",
        "-maxdepth",
        "-mindepth",
        "-regex",
        "-iregex",
        "-samefile",
        "-fstype",
        "-inum",
        "-links",
        "-printf",
        "-regextype",
    ]
)
_ACTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def named_by(command: Command, files: Iterable[str]) -> Iterator[str]:
    """Those of `files` (absolute paths) below the starting points that names, paths and depth let through.

    Tests on anything but the name count as true, and brackets are ignored: this may name more than the command does.
    """
    words = _without_leading_options(command.words)
    cut = next((i for i, word in enumerate(words) if (word[:1] == "-" and len(word) > 1) or word in {"(", "!"}), len(words))
    roots = [root for word in words[:cut] or (".",) if (root := command.absolute(word))]
    groups, depth = _groups(words[cut:])
    for path in files:
        for root in roots:
            inside = path.removeprefix(root.rstrip("/") + "/")
            if (inside != path or path == root) and inside.count("/") < depth and any(_passes(path, g) for g in groups):
                yield path
                break


def follows(command: Command) -> bool:
    """Whether the search goes where links lead to: those that it finds, or the starting point."""
    slashed = any(word.endswith("/") for word in command.words[:3])
    return slashed or bool({"-L", "-H", "-follow"} & {*command.words})


def _without_leading_options(words: Sequence[str]) -> Sequence[str]:
    start = next((i for i, word in enumerate(words) if not re.fullmatch(r"-(?:[LHP]+|O\d|D)", word)), len(words))
    return words[start:]


def _groups(words: Sequence[str]) -> tuple[list[list[tuple[bool, str, str]]], int]:
    """Alternatives of tests that must all pass: (negated, test, pattern). And how deep it goes."""
    groups: list[list[tuple[bool, str, str]]] = [[]]
    depth, position, negated = 1_000, 0, False
    while position < len(words):
        word = words[position]
        value = words[position + 1] if position + 1 < len(words) else ""
        position += 1
        if word in {"-o", "-or"}:
            groups.append([])
        elif word in {"!", "-not"}:
            negated = True
            continue
        elif word in _NAMES:
            groups[-1].append((negated, word, value))
            position += 1
        elif word == "-prune":
            groups[-1].append((False, "-name", ""))
        elif word in _ACTS:
            while position < len(words) and words[position] not in {";", "+"}:
                position += 1
        elif word in _VALUED:
            depth = int(value) if word == "-maxdepth" and re.fullmatch("[0-9]{1,3}", value) else depth
            position += 1
        negated = False
    return groups, depth


def _passes(path: str, tests: Sequence[tuple[bool, str, str]]) -> bool:
    for negated, test, pattern in tests:
        subject = posixpath.basename(path) if test.endswith("name") and "whole" not in test else path
        if _NAMES[test]:
            subject, pattern = subject.lower(), pattern.lower()
        if fnmatch.fnmatchcase(subject, pattern) is negated:
            return False
    return True
