"""What a user may say about a model: `--saber-base-url`, `--saber-model-arg`, environment variables."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pytest_saber.errors import UsageError

Reader: TypeAlias = Callable[[str], Any]
"""Reads the text of one model argument; raises ValueError with what was expected."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """`args` are the `--saber-model-arg` pairs. `environ` is where keys are looked up: os.environ unless given."""

    base_url: str = ""
    args: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


def read_arguments(provider: str, args: Mapping[str, str], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The values of the model arguments that were given. Raises UsageError for one that is unknown or cannot be read."""
    values: dict[str, Any] = {}
    for name, text in args.items():
        if name not in readers:
            close = difflib.get_close_matches(name, readers, n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            raise UsageError(f"--saber-model-arg {name}={text}: {hint}{provider} knows {', '.join(sorted(readers))}")
        try:
            values[name] = readers[name](text)
        except ValueError as error:
            raise UsageError(f"--saber-model-arg {name}={text}: {error}") from None
    return values


def whole(least: int, most: int) -> Reader:
    """A whole number between both, inclusive."""

    def read(text: str) -> int:
        if not text.strip().lstrip("-").isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return int(text)

    return read


def number(least: float, most: float) -> Reader:
    """A number between both, inclusive."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise ValueError(f"expected a number from {least:g} to {most:g}")
        return value

    return read


def choice(*words: str) -> Reader:
    """One of the words."""

    def read(text: str) -> str:
        if text not in words:
            close = difflib.get_close_matches(text, words, n=1)
            raise ValueError(
                f"expected {', '.join(words[:-1])} or {words[-1]}" + (f"; did you mean '{close[0]}'?" if close else "")
            )
        return text

    return read


def flag(text: str) -> bool:
    """`true` or `false`."""
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


def json_object(text: str) -> dict[str, Any]:
    """A JSON object, sent along with every request."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")  # noqa: TRY004 - readers report through ValueError
    return value


def word(text: str) -> str:
    """Any text but an empty one."""
    if not text:
        raise ValueError("expected a value")
    return text
