"""Globs on paths and names: `*` and `?` stay within a component, `**` crosses components, `[...]` is a set."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=4096)
def compile_glob(glob: str) -> re.Pattern[str]:
    """The pattern that matches a whole path. `a/**/b` also matches `a/b`, as everywhere globs are written."""
    out: list[str] = []
    position = 0
    while position < len(glob):
        character = glob[position]
        if glob.startswith("**/", position):
            out.append("(?:[^/]*/)*")
            position += 3
            while glob.startswith("**/", position):
                position += 3
        elif glob.startswith("**", position):
            out.append(".*")
            position += 2
            while position < len(glob) and glob[position] == "*":
                position += 1
        elif character == "*":
            out.append("[^/]*")
            position += 1
        elif character == "?":
            out.append("[^/]")
            position += 1
        elif character == "[" and (end := glob.find("]", position + 2)) > 0:
            body = glob[position + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]")
            position = end + 1
        else:
            out.append(re.escape(character))
            position += 1
    try:
        return re.compile("".join(out) + r"\Z", re.DOTALL)
    except re.error:
        return re.compile(re.escape(glob) + r"\Z")


def matches(glob: str, path: str) -> bool:
    """Whether `path` as a whole matches `glob`. Both are absolute, or both are names."""
    return compile_glob(glob).match(path) is not None


def covers(glob: str, path: str) -> bool:
    """`matches`, or `path` is the directory whose whole inside `glob` (`directory/**`) names."""
    return matches(glob, path) or (glob.endswith("/**") and matches(glob[:-3], path))
