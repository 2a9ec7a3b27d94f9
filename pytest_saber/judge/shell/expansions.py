"""What `${NAME%...}` and its kin, and braces, make of texts that are known, in time in proportion to the texts."""

from __future__ import annotations

import itertools
import re

_LONG_VALUE, _LONG_PART = 4_096, 256
_MAX_PIECES = 64
_BRACES = re.compile(
    r"(?<![$\\])\{(?=[^{}'\"\s]*+\})[^{}'\"\s]*?(?:,|\.\.)|(?<![$\\])\{[^{}'\"\s]*+\{[^'\"\s,]*+,[^'\"\s}]*+\}"
)
_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})\Z|([a-zA-Z])\.\.([a-zA-Z])\Z")


def changed(value: str, operator: str, pattern: str, replacement: str = "") -> str | None:
    """`${value<operator>pattern[/replacement]}`; None where the pattern is more than a star at one end, or a text is long."""
    if len(value) > _LONG_VALUE or len(pattern) > _LONG_PART or len(replacement) > _LONG_PART:
        return None
    match operator:
        case "#" | "##":
            return _without_start(value, pattern, longest=operator == "##")
        case "%" | "%%":
            return _without_end(value, pattern, longest=operator == "%%")
        case "/" | "//" | "/#" | "/%":
            return _replaced(value, operator, pattern, replacement)
        case "^^":
            return value.upper()
        case ",,":
            return value.lower()
        case "^":
            return value[:1].upper() + value[1:]
        case ",":
            return value[:1].lower() + value[1:]
    return None


def part(value: str, offset: str, length: str) -> str | None:
    """`${value:offset:length}`, `length` "" for the rest; None where these are no plain numbers."""
    try:
        start = int(offset)
        size = int(length) if length else None
    except ValueError:
        return None
    start = max(0, len(value) + start) if start < 0 else start
    return value[start:] if size is None else value[start:size] if size < 0 else value[start : start + size]


def _is_plain(pattern: str) -> bool:
    return not set("*?[\\") & set(pattern)


def _without_start(value: str, pattern: str, *, longest: bool) -> str | None:
    if _is_plain(pattern):
        return value.removeprefix(pattern)
    if pattern.startswith("*") and _is_plain(pattern[1:]):
        place = value.rfind(pattern[1:]) if longest else value.find(pattern[1:])
        return value if place < 0 else value[place + len(pattern) - 1 :]
    if pattern.endswith("*") and _is_plain(pattern[:-1]):
        return value if not value.startswith(pattern[:-1]) else "" if longest else value[len(pattern) - 1 :]
    return None


def _without_end(value: str, pattern: str, *, longest: bool) -> str | None:
    if _is_plain(pattern):
        return value.removesuffix(pattern) if pattern else value
    if pattern.endswith("*") and _is_plain(pattern[:-1]):
        place = value.find(pattern[:-1]) if longest else value.rfind(pattern[:-1])
        return value if place < 0 else value[:place]
    if pattern.startswith("*") and _is_plain(pattern[1:]):
        return value if not value.endswith(pattern[1:]) else "" if longest else value[: len(value) - len(pattern) + 1]
    return None


def _replaced(value: str, operator: str, pattern: str, replacement: str) -> str | None:
    if not pattern or not _is_plain(pattern):
        return None
    if operator == "/#":
        return replacement + value[len(pattern) :] if value.startswith(pattern) else value
    if operator == "/%":
        return value[: -len(pattern)] + replacement if value.endswith(pattern) else value
    return value.replace(pattern, replacement, -1 if operator == "//" else 1)


def has_braces(source: str) -> bool:
    """Whether braces outside quotes stand for several words."""
    return "{" in source and _BRACES.search(source[:_LONG_VALUE]) is not None


def braces(text: str) -> list[str]:
    """The words that braces stand for, in order: `a{b,c}d` is `abd` and `acd`. At most some dozens; the rest is dropped."""
    done: list[str] = []
    pending = [text]
    tries = 0
    while pending and len(done) < _MAX_PIECES and tries < 4 * _MAX_PIECES:
        tries += 1
        current = pending.pop()
        found = _first(current)
        if found is None:
            done.append(current)
            continue
        start, end, parts = found
        pending += [current[:start] + piece + current[end:] for piece in reversed(parts[:_MAX_PIECES])]
    return done


def _first(text: str) -> tuple[int, int, list[str]] | None:
    """The first braces with parts in them: where they begin and end, and the parts."""
    opened: list[tuple[int, list[int]]] = []
    best: tuple[int, int, list[str]] | None = None
    for position, character in enumerate(text[:_LONG_VALUE]):
        if character == "{":
            opened.append((position, []))
        elif character == "," and opened:
            opened[-1][1].append(position)
        elif character == "}" and opened:
            start, commas = opened.pop()
            parts = _parts(text, start, position, commas)
            if parts and (best is None or start < best[0]):
                best = (start, position + 1, parts)
            if not opened and best is not None:
                return best
    return best


def _parts(text: str, start: int, end: int, commas: list[int]) -> list[str]:
    if text[start - 1 : start] in {"$", "\\"} and start:
        return []
    if commas:
        edges = [start, *commas, end]
        return [text[left + 1 : right] for left, right in itertools.pairwise(edges)]
    match = _RANGE.match(text[start + 1 : end])
    if match is None:
        return []
    if match[3]:
        first, last = ord(match[3]), ord(match[4])
        return [chr(code) for code in _steps(first, last)]
    return [str(number) for number in _steps(int(match[1]), int(match[2]))]


def _steps(first: int, last: int) -> range:
    last = max(first - _MAX_PIECES, min(first + _MAX_PIECES, last))
    return range(first, last + 1) if last >= first else range(first, last - 1, -1)
