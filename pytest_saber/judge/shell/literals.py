"""The literal values of expressions in program text: strings, joined paths, lists, and names that were given such a value.

One small reader for Python, JavaScript, Perl, Ruby and PHP, since paths and commands are written alike in all of them. It
understands no program: what is not a literal is `UNKNOWN`, and text that it cannot follow has no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

UNKNOWN = "\0"
"""Stands in a value for a part that only run time knows."""
HOME, HERE = "~", "."
MAX_VALUES = 20
_MAX_TOKENS = 20_000
_MAX_DEPTH = 12
_MAX_NAMES = 500
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<prefix>[rRbBuUfF]{0,2})(?P<string>\"\"\"(?:[^\\]|\\.){0,4000}?\"\"\"|'''(?:[^\\]|\\.){0,4000}?'''
        |"(?:[^"\\\n]|\\.){0,4000}"|'(?:[^'\\\n]|\\.){0,4000}'|`(?:[^`\\]|\\.){0,4000}`)
      |(?P<name>[$@%&]?[A-Za-z_]\w*(?:(?:\.|::|->)\w+)*)
      |(?P<number>\d[\w.]*)
      |(?P<mark>=>|[-+*/.,()\[\]{}:%])
    )""",
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"\s{0,200}")
_ASSIGNED = re.compile(
    r"(?:^|[;{\n(])[ \t]*(?:(?:const|let|var|my|our|final|local|export)[ \t]+)?[$@]?([A-Za-z_]\w*)[ \t]*"
    r"(?::[ \t]*\w+[ \t]*)?=(?![=~>])"
)
_KEYWORD = re.compile(r"\s{0,200}[A-Za-z_]\w{0,100}\s{0,20}=(?![=~>])")
_LOOP = re.compile(r"\bfor(?:each)?\b[ \t]*+(?:\([ \t]*+)?(?:const |let |var |my )?[$@]?([A-Za-z_]\w*)[ \t]+(?:in|of)\b")
_HOMES = re.compile(
    r"(?:(?:pathlib\.)?Path\.home|require\(\s*['\"](?:node:)?os['\"]\s*\)\.homedir|(?:os\.)?homedir|Dir\.home)\s*(?:\(\s*\))?"
    r"|(?:os\.environ|ENV|\$ENV|\$_SERVER|process\.env)\s*[\[{]\s*['\"]?HOME['\"]?\s*[\]}]|process\.env\.HOME\b"
    r"|(?:os\.environ\.get|os\.getenv|getenv|ENV\.fetch)\s*\(\s*['\"]HOME['\"]\s*\)"
)
_HERES = re.compile(r"(?:os\.getcwd|(?:pathlib\.)?Path\.cwd|process\.cwd|Dir\.pwd|getcwd)\s*(?:\(\s*\))?|__dirname\b")
_OPERANDS = re.compile(
    r"(?:sys\.argv|process\.argv|\$?ARGV|\$argv|Deno\.args)\s*\[[^\]]{0,20}\](?:\s*\[[^\]]{0,20}\])?|"
    r"\bshift\b(?:\(\s*\))?|@ARGV|ARGV"
)
_KEEP = frozenset(
    ["absolute", "as_posix", "decode", "encode", "expanduser", "format", "rstrip", "split", "strip", "tostring", "trim"]
)
_JOINS = frozenset({"join", "joinpath", "resolve", "expand_path"})
_SAME = frozenset(
    {
        "path",
        "purepath",
        "posixpath",
        "expanduser",
        "abspath",
        "realpath",
        "normpath",
        "fspath",
        "str",
        "string",
        "quote",
        "glob",
        "file",
    }
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


class Literals:
    """Values of expressions in one program text. Bounded in names, depth and number of values."""

    def __init__(self, code: str, program: str = "", operands: Sequence[str] = ()) -> None:
        self.code = code
        self._interpolates = program in {"perl", "php"}
        self._operands = list(operands)[:MAX_VALUES]
        self._names: dict[str, list[str]] = {}
        self._left = _MAX_TOKENS
        assigned = [(match.end(), match[1]) for match in _ASSIGNED.finditer(code)]
        assigned += [(match.end(), match[1]) for match in _LOOP.finditer(code)]
        for position, name in sorted(assigned)[:_MAX_NAMES]:
            values = self.at(position)[0]
            if any(value.strip(UNKNOWN) for value in values):
                known = self._names.setdefault(name, [])
                known += [value for value in values if value not in known][: MAX_VALUES - len(known)]

    def at(self, position: int) -> tuple[list[str], int]:
        """The values of the expression that begins at `position` (a list has several), and where it ends."""
        return self._sum(position, 0)

    def arguments(self, position: int) -> list[tuple[list[str], bool]]:
        """Those of a call whose bracket opened just before `position`: the values of each, and whether it is a list."""
        found: list[tuple[list[str], bool]] = []
        while len(found) < 40:
            if (keyword := _KEYWORD.match(self.code, position)) is not None:
                position = keyword.end()
            is_list = self.code[position : position + 40].lstrip()[:1] == "["
            values, end = self.at(position)
            found.append((values, is_list))
            following = self._token(end)
            if following is None or following["mark"] != ",":
                break
            position = following.end()
        return found

    def _token(self, position: int) -> re.Match[str] | None:
        self._left -= 1
        return _TOKEN.match(self.code, position) if self._left > 0 else None

    def _sum(self, position: int, depth: int) -> tuple[list[str], int]:
        values, position = self._term(position, depth)
        for _ in range(100):
            token = self._token(position)
            mark = token["mark"] if token is not None else None
            if token is None or mark not in {"+", "/", "."}:
                break
            if mark == "." and (method := self._token(token.end())) is not None and (method["name"] or "$")[0] != "$":
                kept = self._method(values, method, depth)
                if kept is None:
                    break
                values, position = kept
                continue
            more, end = self._term(token.end(), depth + 1)
            values = [
                left + ("/" if mark == "/" else "") + right for left in values or [UNKNOWN] for right in more or [UNKNOWN]
            ][:MAX_VALUES]
            position = end
        return values, position

    def _method(self, values: list[str], method: re.Match[str], depth: int) -> tuple[list[str], int] | None:
        """What a method makes of the values, where it keeps them or joins a path to them; None ends the expression."""
        name = method["name"].lower()
        opened = self._token(method.end())
        if opened is None or opened["mark"] != "(" or not (name in _KEEP or name in _JOINS):
            return None
        more, end = self._list(opened.end(), ")", depth + 1)
        if name in _JOINS and more:
            values = [f"{value}/{part}" for value in values for part in more][:MAX_VALUES]
        return values, end

    def _term(self, position: int, depth: int) -> tuple[list[str], int]:
        if depth > _MAX_DEPTH:
            return [], position
        blank = _BLANK.match(self.code, position)
        start = position if blank is None else blank.end()
        for pattern, value in ((_HOMES, HOME), (_HERES, HERE)):
            if match := pattern.match(self.code, start):
                return [value], match.end()
        if match := _OPERANDS.match(self.code, start):
            return list(self._operands), match.end()
        token = self._token(position)
        if token is None:
            return [], position
        if token["string"] is not None:
            values, end = [self._text(token["string"], token["prefix"])], token.end()
            return self._adjacent(values, end)
        if token["name"] is not None:
            return self._named(token["name"], token.end(), depth)
        if token["mark"] in {"(", "["}:
            return self._list(token.end(), {"(": ")", "[": "]"}[token["mark"]], depth + 1)
        return [], token.end() if token["number"] is not None else position

    def _adjacent(self, values: list[str], position: int) -> tuple[list[str], int]:
        """Strings that stand side by side are one."""
        for _ in range(50):
            token = self._token(position)
            if token is None or token["string"] is None:
                break
            values = [value + self._text(token["string"], token["prefix"]) for value in values]
            position = token.end()
        return values, position

    def _list(self, position: int, close: str, depth: int) -> tuple[list[str], int]:
        found: list[str] = []
        for _ in range(200):
            values, end = self._sum(position, depth)
            found += values
            token = self._token(end)
            if token is None:
                return found[:MAX_VALUES], end
            if token["mark"] == close:
                return found[:MAX_VALUES], token.end()
            position = token.end()
        return found[:MAX_VALUES], position

    def _named(self, name: str, position: int, depth: int) -> tuple[list[str], int]:
        token = self._token(position)
        last = re.split(r"\.|::|->", name)[-1].lower()
        if token is not None and token["mark"] == "(":
            values: list[list[str]] = []
            at = token.end()
            for _ in range(12):
                more, end = self._sum(at, depth + 1)
                if more:
                    values.append(more)
                following = self._token(end)
                if following is None or following["mark"] not in {",", "=>"}:
                    closes = following is not None and following["mark"] == ")"
                    return self._called(last, values), following.end() if closes and following is not None else end
                at = following.end()
            return [], at
        return list(self._names.get(name.lstrip("$@%&"), ())), position

    def _called(self, name: str, arguments: list[list[str]]) -> list[str]:
        if not arguments or not (name in _JOINS or name in _SAME):
            return []
        values = arguments[0]
        for more in arguments[1:] if name in _JOINS or name in {"path", "purepath"} else ():
            values = [right if right.startswith("/") else f"{left}/{right}" for left in values for right in more][:MAX_VALUES]
        return values

    def _text(self, source: str, prefix: str) -> str:
        width = 3 if source[:3] in {'"""', "'''"} else 1
        text = source[width:-width]
        if "r" not in prefix.lower():
            text = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text, flags=re.DOTALL)
        quote = source[0]
        if "f" in prefix.lower():
            return re.sub(r"\{([^{}]{1,200})\}", self._filled, text)
        if quote == "`":
            return re.sub(r"\$\{([^{}]{1,200})\}", self._filled, text)
        if quote == '"':
            text = re.sub(r"#\{([^{}]{1,200})\}", self._filled, text)
            if self._interpolates:
                text = re.sub(r"\$ENV\{['\"]?HOME['\"]?\}", HOME, text)
                return re.sub(r"\$\{?([A-Za-z_]\w*)\}?", self._interpolated, text)
        return text

    def _filled(self, match: re.Match[str]) -> str:
        inner = match[1].strip()
        if _HOMES.fullmatch(inner):
            return HOME
        values = self._names.get(inner.lstrip("$@"), ())
        return values[0] if values else UNKNOWN

    def _interpolated(self, match: re.Match[str]) -> str:
        values = self._names.get(match[1], ())
        return values[0] if values else match[0]


def receivers(code: str, method: re.Pattern[str]) -> Iterator[int]:
    """Where the expression begins on which each `method` is called: `x` of `x.read_text()`, `(` of `(a / "b").open()`."""
    for found in list(method.finditer(code))[:200]:
        position, depth = found.start(), 0
        floor = max(0, position - 500)
        while position > floor:
            character = code[position - 1]
            if character in ")]":
                depth += 1
            elif character in "([":
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and not (character.isalnum() or character in "_.$@'\"~/-"):
                break
            position -= 1
        yield position
