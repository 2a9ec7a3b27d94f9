"""Every regular expression of the package, with texts made to keep each of them busy."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import CodeType
from typing import Any

import pytest_saber

_ROOT = Path(pytest_saber.__file__).parent
_AT_START = frozenset({"match", "fullmatch"})
_USES = frozenset({*_AT_START, "compile", "search", "findall", "finditer", "sub", "subn", "split"})
_MOST_ATTACKS = 60
_LONG = 50
"""A repeat with a higher bound is attacked as one without."""
_SAMPLES = " \tax0.-(\"'/\n{=,:<@"


@dataclass(frozen=True, slots=True)
class Used:
    """A regular expression where it stands, and how it is used."""

    where: str
    """`path:line` in the package."""
    name: str
    """Of the constant that holds it, or none."""
    pattern: re.Pattern[Any]
    methods: frozenset[str]
    """`match` or `fullmatch` where it is used for these alone; else `search`."""


@dataclass(frozen=True, slots=True)
class Attack:
    """What a pattern may begin with, and what it then may take for ever."""

    head: str
    piece: str

    def text(self, size: int) -> str:
        """About `size` characters."""
        return self.head + self.piece * (size // len(self.piece))


class _Anything(str):
    """Stands for a value of run time in a pattern, such as a name that is looked for."""

    __slots__ = ()

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **__: object) -> _Anything:
        return self


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Anything("name"))


def used() -> list[Used]:
    """Those of every call of `re` in the package, what only run time knows replaced by a word."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(_ROOT.rglob("*.py"))}
    everywhere = _methods(trees.values())
    found = []
    for path, tree in trees.items():
        names = _constants(tree)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _use(node)]
        if not calls:
            continue
        methods = _methods([tree])
        chained = _called(tree)
        place = path.relative_to(_ROOT.parent).with_suffix("")
        space = _Names(vars(importlib.import_module(".".join(place.parts))))
        for call in calls:
            name = names.get(id(call), "")
            how = {chained.get(id(call), _use(call))}
            if how == {"compile"}:
                how = (methods if name.startswith("_") else everywhere).get(name, {"search"})
            how = how if how <= _AT_START else {"search"}
            found.append(Used(f"{path.relative_to(_ROOT.parent)}:{call.lineno}", name, _pattern(call, space), frozenset(how)))
    return found


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    """Texts that match a part of the pattern over and over."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags & (re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE)
    found: list[Attack] = []
    _sample(parser.parse(text, flags), "", found)
    return list(dict.fromkeys(found))


def _use(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if function.attr in _USES else ""
    return ""


def _constants(tree: ast.Module) -> dict[int, str]:
    """Expression (its identity) to the name that it is given."""
    return {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }


def _methods(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Name of a constant to the methods that are called on it, and `search` where it is used in any other way."""
    found: dict[str, set[str]] = {}
    for tree in trees:
        called = _called(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                name = node.id if isinstance(node, ast.Name) else node.attr
                found.setdefault(name, set()).add(called.get(id(node), "search"))
    return found


def _called(tree: ast.Module) -> dict[int, str]:
    """Expression (its identity) to the method of a pattern that is taken from it."""
    return {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in _USES}


def _pattern(call: ast.Call, space: _Names) -> re.Pattern[Any]:
    """Raises what evaluating or compiling the expression raises."""
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(_use(call), 2)
    flags = [word.value for word in call.keywords if word.arg == "flags"] + call.args[place : place + 1]

    def value(node: ast.expr) -> Any:
        code: CodeType = compile(ast.Expression(node), "<pattern>", "eval")
        return eval(code, space)

    pattern = value(call.args[0])
    return pattern if isinstance(pattern, re.Pattern) else re.compile(pattern, value(flags[0]) if flags else 0)


def _sample(tree: Iterable[tuple[Any, Any]], text: str, found: list[Attack]) -> str:
    """`text` and the shortest or first that the tree matches; every long repeat of it is added to `found`."""
    for operation, value in tree:
        if operation is c.LITERAL:
            text += chr(value)
        elif operation is c.NOT_LITERAL:
            text += "x" if value != ord("x") else "y"
        elif operation is c.ANY:
            text += "a"
        elif operation is c.IN:
            text += _member(value)
        elif operation in {c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT}:
            low, high, repeated = value
            one = _sample(repeated, "", [])
            _sample(repeated, text, found)
            if one and high > _LONG and len(found) < _MOST_ATTACKS:
                found += [Attack(text, one), Attack("", text + one)]
            text += one * max(low, min(high, 1))
        elif operation is c.SUBPATTERN:
            text = _sample(value[3], text, found)
        elif operation is c.ATOMIC_GROUP:
            text = _sample(value, text, found)
        elif operation is c.BRANCH:
            first, *_ = [_sample(branch, text, found) for branch in value[1]]
            text = first
    return text


def _member(items: list[tuple[Any, Any]]) -> str:
    """A character of a set, one of the likely ones if there is one."""
    negated = items[0][0] is c.NEGATE
    for character in _SAMPLES:
        if any(_holds(item, character) for item in items) != negated:
            return character
    return next((chr(value if kind is c.LITERAL else value[0]) for kind, value in items if kind in {c.LITERAL, c.RANGE}), "~")


def _holds(item: tuple[Any, Any], character: str) -> bool:
    kind, value = item
    if kind is c.LITERAL:
        return character == chr(value)
    if kind is c.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if kind is c.CATEGORY:
        word = {c.CATEGORY_SPACE: r"\s", c.CATEGORY_WORD: r"\w", c.CATEGORY_DIGIT: r"\d"}
        word |= {c.CATEGORY_NOT_SPACE: r"\S", c.CATEGORY_NOT_WORD: r"\W", c.CATEGORY_NOT_DIGIT: r"\D"}
        return re.fullmatch(word[value], character) is not None
    return False
