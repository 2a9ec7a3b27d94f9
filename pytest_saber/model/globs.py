"""Globs on paths and names: `*` and `?` stay within a component, `**` crosses components, `[...]` is a set.

A regular expression tries every way to share a path among the stars of a glob. Agents write globs too, so one with many stars
is matched in one pass over the path instead. One command of theirs makes tens of thousands of files, and each is compared with
hundreds of globs: most are told apart by the letters that a glob needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

_FEW = 3
"""Characters `*` with which a regular expression needs no long time."""
_LONG = 4_096
"""Characters of the longest path, and of the longest glob with more of them. Words of commands can be longer."""
_FOLDERS, _ANYTHING, _STAR, _ONE = "(?:[^/]*/)*", ".*", "[^/]*", "[^/]"
_SPECIAL = (_FOLDERS, _ANYTHING, _STAR, _ONE)


@lru_cache(maxsize=4096)
def compile_glob(glob: str) -> re.Pattern[str]:
    """The pattern that matches a whole path. `a/**/b` also matches `a/b`, as everywhere globs are written."""
    try:
        return re.compile("".join(_pieces(glob)) + r"\Z", re.DOTALL)
    except re.error:
        return re.compile(re.escape(glob) + r"\Z")


def _pieces(glob: str) -> Iterator[str]:
    """A regular expression for each star, set or character."""
    position = 0
    while position < len(glob):
        character = glob[position]
        if glob.startswith("**/", position):
            yield _FOLDERS
            position += 3
            while glob.startswith("**/", position):
                position += 3
        elif glob.startswith("**", position):
            yield _ANYTHING
            position += 2
            while position < len(glob) and glob[position] == "*":
                position += 1
        elif character == "*":
            yield _STAR
            position += 1
        elif character == "?":
            yield _ONE
            position += 1
        elif character == "[" and (end := glob.find("]", position + 2)) > 0:
            body = glob[position + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            yield f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]"
            position = end + 1
        else:
            yield re.escape(character)
            position += 1


@lru_cache(maxsize=4096)
def literal(glob: str) -> str:
    """The longest text that every path has in it that matches; empty where there is none."""
    runs = groupby(_pieces(glob), key=lambda piece: piece in _SPECIAL or piece.startswith("["))
    # An escaped character is its last one.
    return max(("".join(piece[-1] for piece in pieces) for special, pieces in runs if not special), key=len, default="")


class Table(Generic[T_co]):
    """Globs and what each stands for: a path is compared with those whose letters it has."""

    def __init__(self, rows: Iterable[tuple[str, T_co]]) -> None:
        self._rows = [(literal(glob), glob, value) for glob, value in rows]

    def find(self, path: str) -> T_co | None:
        """What the first glob stands for that matches; None where none does."""
        for needed, glob, value in self._rows:
            if needed in path and matches(glob, path):
                return value
        return None


class _Walk:
    """Matches by the set of the glob's pieces that can come next, a bit for each, moved on by each character of a path."""

    def __init__(self, glob: str) -> None:
        self._single: list[tuple[int, re.Pattern[str]]] = []
        self._stars = self._anything = self._folders = 0
        self._moves: dict[str, tuple[int, int]] = {}
        bit = 1
        for piece in _pieces(glob):
            if piece == _FOLDERS:
                # Two bits: before a folder, and in its name.
                self._folders |= bit
                bit <<= 1
            elif piece == _ANYTHING:
                self._anything |= bit
            elif piece == _STAR:
                self._stars |= bit
            else:
                self._single.append((bit, re.compile(piece, re.DOTALL)))
            bit <<= 1
        self._end = bit

    def matches(self, path: str) -> bool:
        places = self._with_skipped(1)
        for character in path:
            single, stays = self._moves.get(character) or self._move(character)
            moved = (places & single) << 1 | places & stays
            if character == "/":
                moved |= places & self._folders | places >> 1 & self._folders
            else:
                moved |= (places & self._folders) << 1
            places = self._with_skipped(moved)
            if not places:
                return False
        return bool(places & self._end)

    def _move(self, character: str) -> tuple[int, int]:
        """Pieces that the character passes, and those that it stays in."""
        single = sum(bit for bit, pattern in self._single if pattern.match(character))
        stays = self._anything | (0 if character == "/" else self._stars | self._folders << 1)
        return self._moves.setdefault(character, (single, stays))

    def _with_skipped(self, places: int) -> int:
        """With the pieces behind those that may stand for nothing."""
        before = -1
        while places != before:
            before = places
            places |= (places & (self._stars | self._anything)) << 1 | (places & self._folders) << 2
        return places


@lru_cache(maxsize=256)
def _walk(glob: str) -> Callable[[str], bool]:
    if len(glob) > _LONG:
        return lambda path: path == glob
    try:
        return _Walk(glob).matches
    except re.error:
        return lambda path: path == glob


def matches(glob: str, path: str) -> bool:
    """Whether `path` as a whole matches `glob`. Both are absolute, or both are names."""
    if glob.count("*") <= (_FEW if len(path) <= _LONG else 1):
        return compile_glob(glob).match(path) is not None
    return literal(glob) in path and _walk(glob)(path)


def covers(glob: str, path: str) -> bool:
    """`matches`, or `path` is the directory whose whole inside `glob` (`directory/**`) names."""
    return matches(glob, path) or (glob.endswith("/**") and matches(glob[:-3], path))
