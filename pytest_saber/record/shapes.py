"""What the codec knows about the types of `model`: fields, tags of unions, and how a misfit is told."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, ClassVar


class FreeJSON:
    """Stands for the recursive alias `JSON` while type hints are resolved."""


_PATH = 300


class BadValue(Exception):
    """A value that does not fit; `path` grows outwards while the exception travels up."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []

    def at(self, part: str) -> BadValue:
        """The same exception, one part of the path further out."""
        self.path.append(part)
        return self

    def render(self, root: str) -> str:
        """The message with the whole path; `root` names where that starts. Names that were read are made printable."""
        path = "".join(char if char.isprintable() else repr(char)[1:-1] for char in "".join(reversed(self.path)))
        return f"{root}{path if len(path) <= _PATH else f'{path[:_PATH]}...'}: {self}"


@cache
def fields_of(cls: type) -> tuple[tuple[str, Any, bool], ...]:
    """(name, type, whether it must be given) of each field."""
    hints = typing.get_type_hints(cls, localns={"JSON": FreeJSON})
    return tuple(
        (item.name, hints[item.name], item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING)
        for item in dataclasses.fields(cls)
    )


def tagged(members: tuple[Any, ...]) -> Mapping[str, type]:
    """Tag to class when a union consists of two or more dataclasses; empty otherwise."""
    classes: list[type] = [member for member in members if isinstance(member, type) and dataclasses.is_dataclass(member)]
    return {tag_of(cls)[0]: cls for cls in classes} if len(classes) > 1 else {}


def tag_of(cls: Any) -> tuple[str, bool]:
    """The tag of a union's member, and whether it wraps the body (checks) or stands in it (payloads)."""
    if hasattr(cls, "NAME"):
        return cls.NAME, True
    if _is_classvar(cls, "kind"):
        return cls.kind, False
    raise TypeError(f"{cls.__name__} is part of a union but has no tag")


def _is_classvar(cls: Any, name: str) -> bool:
    return typing.get_origin(typing.get_type_hints(cls, localns={"JSON": FreeJSON}).get(name)) is ClassVar


def shown(value: object) -> str:
    """A found value, short enough for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A parenthesis with the closest known word, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1) if isinstance(word, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""
