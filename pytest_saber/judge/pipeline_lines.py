"""The lines of a pipeline's document: keys, lists and blocks by their indent, in time that its length bounds."""

from __future__ import annotations

import re

_MAX_LINES = 5_000
MOST = 50
"""How many keys of one kind are followed: each costs the length of its block."""
_KEY = re.compile(r"^(\s*)(?:-\s+)?['\"]?([\w.-]+)['\"]?\s*:(?:\s+(.*))?$")


def lines(text: str) -> list[str]:
    """Those that say something, without comments."""
    bare = (re.sub(r"(?:^|\s)#.*$", "", line[:500]).rstrip() for line in text.splitlines()[:_MAX_LINES])
    return [line for line in bare if line]


def keys(of: list[str]) -> list[tuple[int, re.Match[str]]]:
    """The position and match of each `key: value`: indent, key and value are its groups."""
    return [(place, match) for place, line in enumerate(of) if (match := _KEY.match(line))]


def indent(line: str) -> int:
    """How many blanks the line begins with."""
    return len(line) - len(line.lstrip())


def opens(line: str) -> bool:
    """Whether the line begins an item of a list."""
    return line.lstrip().startswith("- ")


def depth(line: str) -> int:
    """Where the key of a line begins; that of `- key` begins with the key."""
    return indent(line) + (2 if opens(line) else 0)


def below(of: list[str], position: int, outer: int) -> list[str]:
    """The lines that belong to the key at `position`; a list may stand at the indent of its key."""
    found: list[str] = []
    for line in of[position + 1 :]:
        if indent(line) < outer or (indent(line) == outer and not opens(line)):
            break
        found.append(line)
    return found


def values(of: list[str], position: int, match: re.Match[str]) -> list[str]:
    """The items of a list, on the line of its key or below it."""
    if match[3]:
        return _items(match[3])
    listed = below(of, position, len(match[1]))
    return [item for line in listed if opens(line) for item in _items(line.lstrip()[2:])]


def _items(value: str) -> list[str]:
    return [item for part in value.strip(" []").split(",") if (item := part.strip(" '\""))]
