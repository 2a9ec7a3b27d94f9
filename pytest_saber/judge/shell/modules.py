"""Modules of the project that program text imports, with what settings files and the environment tell them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_saber.judge.shell.model import Module, ScriptText
from pytest_saber.judge.shell.words import Variable

_MAX_MODULES = 10
_MAX_DEPTH = 3
_MAX_TEXT = 100_000
_MAX_NAMES = 40
_MAX_LINES = 100
_MAX_SETTINGS = 20_000
_FROM = re.compile(r"(?:^|[;\n])[ \t]*from[ \t]++(\.*+)([\w.]*+)[ \t]++import[ \t]++(\([^)]{0,2000}\)|[^\n;#]{0,2000})")
_IMPORT = re.compile(r"(?:^|[;\n])[ \t]*import[ \t]+([\w., \t]+)")
_RELATIVE = re.compile(
    r"(?:require(?:_relative)?\s*+(?:\(\s*+)?|from\s+|import\s*+(?:\(\s*+)?)['\"](\.{1,2}/[\w./-]+?)(?:\.[cm]?[jt]s|\.rb|\.php)?['\"]"
)
_NAMES_SETTINGS = re.compile(r"['\"]([\w./-]{1,100}\.(?:json|ya?ml|toml|ini|cfg|conf|properties|env))['\"]")
_ASKS_ENVIRONMENT = re.compile(
    r"(?:environ(?:\.get)?\s?[\[(]|getenv\s?\(|process\.env\[|\bENV(?:\.fetch)?\s?[\[(]|\b(?:env|config|decouple)\()\s?['\"](\w{1,60})['\"]"
    r"|process\.env\.(\w{1,60})"
)
_READS_DOTENV = re.compile(r"dotenv|decouple|read_env|pydantic_settings|BaseSettings")
_LINE = re.compile(r"^(?:export[ \t]+)?(\w{1,60})=(\S*)", re.MULTILINE)


def collect(text_of: ScriptText, program: str, code: str, folders: Sequence[str], words: Sequence[str]) -> tuple[Module, ...]:
    """The modules that `code` imports from `folders`, then those that these import. `words`: the interpreter's arguments."""
    found: dict[str, Module] = {}
    pending = [(code, folders[0], 0)]
    required = [word[2:] for word in words if program == "ruby" and re.match(r"-r\.?/?\w", word)]
    while pending:
        text, beside, depth = pending.pop(0)
        names = [
            *_imported(text, program, beside, folders),
            *(posixpath.join(folder, name) for name in required for folder in folders),
        ]
        required = []
        for name in names:
            path = posixpath.normpath(name)
            if path in found or len(found) == _MAX_MODULES:
                continue
            whole = next((whole for ending in _endings(program) if (whole := text_of(path + ending))), None)
            if whole is not None and len(whole) <= _MAX_TEXT:
                found[path] = Module(
                    path, whole, _settings(text_of, whole, posixpath.dirname(path), folders), direct=depth == 0
                )
                if depth + 1 < _MAX_DEPTH:
                    pending.append((whole, posixpath.dirname(path), depth + 1))
    return tuple(found.values())


def _endings(program: str) -> tuple[str, ...]:
    if program.startswith("python"):
        return (".py", "/__init__.py")
    return (".js", ".mjs", ".cjs", ".ts", "/index.js", ".rb", ".php", "")


def _imported(code: str, program: str, beside: str, folders: Sequence[str]) -> Iterator[str]:
    """Absolute paths, without ending, that imports may mean."""
    if not program.startswith("python"):
        for match, _ in zip(_RELATIVE.finditer(code), range(_MAX_NAMES), strict=False):
            yield posixpath.join(beside, match[1])
        return
    for match, _ in zip(_FROM.finditer(code), range(_MAX_NAMES), strict=False):
        above = posixpath.normpath(posixpath.join(beside, *[".."] * (len(match[1]) - 1)))
        inner = [name.split()[0] for name in match[3].strip("()").split(",") if name.split()]
        for folder in [above] if match[1] else folders:
            base = posixpath.join(folder, match[2].replace(".", "/"))
            yield from (base, *(f"{base}/{name}" for name in inner[:_MAX_NAMES]))
    for match, _ in zip(_IMPORT.finditer(code), range(_MAX_NAMES), strict=False):
        for name in match[1].split(",")[:_MAX_NAMES]:
            for folder in folders if name.split() else ():
                yield posixpath.join(folder, name.split()[0].replace(".", "/"))


def _settings(text_of: ScriptText, code: str, beside: str, folders: Sequence[str]) -> str:
    """The text of the settings files that a module names."""
    texts: list[str] = []
    for match, _ in zip(_NAMES_SETTINGS.finditer(code), range(5), strict=False):
        for folder in (beside, *folders):
            text = text_of(posixpath.normpath(posixpath.join(folder, match[1])))
            if text is not None:
                texts.append(text[:_MAX_SETTINGS])
                break
    return "\n".join(texts)


def environment(
    texts: Sequence[str], variables: Mapping[str, Variable], dotenv: str | None, *, is_read: bool
) -> Mapping[str, str]:
    """What the environment says under the names that `texts` ask it for. `dotenv`: a file with more of it, which is read if
    `is_read` or where a text says so."""
    asked = {match[1] or match[2] for text in texts for match in _ASKS_ENVIRONMENT.finditer(text[:_MAX_TEXT])}
    found: dict[str, str] = {}
    if dotenv is not None and (is_read or any(_READS_DOTENV.search(text[:_MAX_TEXT]) for text in texts)):
        found = {name: value for name, value in assigned(dotenv) if name in asked}
    known = {name: variable.value for name in asked if (variable := variables.get(name)) is not None}
    return {**found, **{name: value for name, value in known.items() if value is not None}}


def assigned(dotenv: str) -> list[tuple[str, str]]:
    """The lines `NAME=value` of a file with variables."""
    return [(match[1], match[2].strip("'\"")) for match in _LINE.finditer(dotenv[:_MAX_SETTINGS])][:_MAX_LINES]


def asked_names(text: str) -> list[str]:
    """The names that a text asks the environment for."""
    return [match[1] or match[2] for match, _ in zip(_ASKS_ENVIRONMENT.finditer(text), range(_MAX_NAMES), strict=False)]
