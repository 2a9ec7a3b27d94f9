"""The cases of tests that run several times: rows of `parametrize`, `it.each`, a table in Go, `@CsvSource` and the like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_MAX_LENGTH = 20_000
_MAX_ROWS = 2_000
_TABLES = re.compile(
    r"\bparametrize\s*\(|\b(?:it|test|describe|suite)\.each\s*\(|\b(?:CsvSource|ValueSource|MethodSource|DataProvider|TestCases?)\s*\("
    r"|\[\]struct\s*\{|map\[string\]struct\s*\{|@parameterized\.expand\s*\(|\bsubTests?\s*\("
    r"|(?m:^[ \t]*+(?:(?:const|let|var)[ \t]++)?\w*(?:cases|CASES|Cases|_TABLE|table)\b[ \t]*+(?::[^=\n]{0,80})?:?=)"
)
_TOKEN = re.compile(r"\"(?:[^\"\\\n]|\\.){0,300}+\"|'(?:[^'\\\n]|\\.){0,300}+'|`[^`]{0,300}+`|[\w.]+|[^\w\s]")
_OPEN, _CLOSE = "([{", ")]}"
_NOT_CASES = re.compile(r"[\s,]*+(?:(?:ids|indirect|scope|argnames)\s*=)")
_NAMES = re.compile(
    r"\s*(?:argnames\s*=\s*)?(?:\"[^\"\n]*\"|'[^'\n]*'|\[[^\[\]]{0,300}\]|\([^()]{0,300}\))\s*,\s*(?:argvalues\s*=\s*)?(?=[\[(])"
)
"""Of `parametrize("a, b", [rows])`: the rows are in the list, not beside the names."""
_LABELS = re.compile(r"(?:,\s*+)?+\b(?:id|name)\s*+=\s*+(?:\"[^\"\n]*\"|'[^'\n]*')")
_WRAPPED = re.compile(r"\A(?:pytest\.)?param\((.*)\)\Z", re.DOTALL)


def rows(text: str) -> Counter[str]:
    """Every case of every table, by its words: layout, kind of quotes and given names do not count."""
    found: Counter[str] = Counter()
    end = count = 0
    for match in _TABLES.finditer(text):
        if match.start() < end:
            continue
        table, end = _table(text, match)
        for row in _split(table):
            words = _words(row)
            if words:
                found[words] += 1
                count += 1
            if count == _MAX_ROWS:
                return found
    return found


def lost(before: str, after: str, elsewhere: Counter[str]) -> tuple[list[str], bool]:
    """Cases of `before` that neither `after` nor another test file holds, and whether there are fewer cases than before."""
    old, new = rows(before), rows(after)
    gone = sorted(row for row in (old - new).elements() if not elsewhere[row])
    return gone, new.total() < old.total() and bool(gone)


def _table(text: str, match: re.Match[str]) -> tuple[str, int]:
    """The text of the brackets that hold the rows, and where they end."""
    start = match.end()
    if text[start - 1] in _OPEN and not text.endswith(("struct {", "struct{"), 0, start):
        begin = start
        end = _closing(text, begin)
        inner = text[begin:end]
        names = _NAMES.match(inner) if "parametrize" in match[0] else None
        position = names.end() if names is not None else len(inner) - len(inner.lstrip())
        if inner[position : position + 1] in {*_OPEN}:
            return inner[position + 1 : _closing(inner, position + 1)], end
        return "" if "parametrize" in match[0] else inner, end
    if text[start - 1] == "{":  # the fields of a Go struct; the rows follow
        start = _closing(text, start) + 1
    opening = re.compile(r"\s*+(?:\w+\s*\(\s*)?([\[({])").match(text, start)
    if opening is None:
        return "", start
    end = _closing(text, opening.end())
    return text[opening.end() : end], end


def _closing(text: str, start: int) -> int:
    """The place of the bracket that closes one opened just before `start`; strings are skipped."""
    stop = min(len(text), start + _MAX_LENGTH)
    return next((position for position, depth in _outside_strings(text, start, stop) if depth < 0), stop)


def _outside_strings(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Every place outside strings, with how many more brackets were opened than closed from `start` on, its own included."""
    depth, position = 0, start
    while position < stop:
        character = text[position]
        if character in "\"'`":
            match = _TOKEN.match(text, position)
            position = match.end() if match is not None and match.end() > position else position + 1
            continue
        depth += (character in _OPEN) - (character in _CLOSE)
        yield position, depth
        position += 1


def _split(table: str) -> Iterator[str]:
    """At the commas outside brackets and strings."""
    begin = 0
    for position, depth in _outside_strings(table, 0, len(table)):
        if table[position] == "," and depth == 0:
            yield table[begin:position]
            begin = position + 1
    yield table[begin:]


def _words(row: str) -> str:
    text = "\n".join(line for line in row.splitlines() if not line.lstrip().startswith(("#", "//"))).strip()
    if not text or _NOT_CASES.match(text):
        return ""
    wrapped = _WRAPPED.match(text)
    if wrapped is not None:
        text = f"({wrapped[1]})"
    tokens = _TOKEN.findall(_LABELS.sub("", text))
    while tokens[-2:-1] == [","] and tokens[-1] in {")", "]", "}"}:
        del tokens[-2]
    return " ".join(f'"{token[1:-1]}"' if token[:1] in {"'", '"', "`"} and len(token) > 1 else token for token in tokens)
