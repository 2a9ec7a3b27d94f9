"""API keys: read from the environment, shown to nobody.

A `Key` has no readable `repr`, so that it cannot surface in a traceback with locals, and cleans texts that a service or an SDK
may have put it into.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

PLACEHOLDER = "[redacted]"
UNUSED = "unused"
"""Sent where a server wants no key but the SDK insists on one."""

_SECRET_NAME = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_*.-]{6,}|(?<=Bearer )\S+", re.IGNORECASE)
_SHORTEST = 8


class Key:
    """The value of one environment variable."""

    __slots__ = ("_value", "variable")

    def __init__(self, variable: str, value: str) -> None:
        self.variable = variable
        self._value = value

    def reveal(self) -> str:
        """The key itself: for the SDK's constructor and nothing else."""
        return self._value

    def __repr__(self) -> str:
        return f"Key({self.variable})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a key is never serialised")

    def without(self, value: Any) -> Any:
        """A JSON value without the key in any of its texts: what a service sends back, it may have taken from a header."""
        if isinstance(value, str):
            return value.replace(self._value, PLACEHOLDER) if len(self._value) >= _SHORTEST else value
        if isinstance(value, list):
            return [self.without(item) for item in value]
        if isinstance(value, dict):
            return {self.without(name): self.without(item) for name, item in value.items()}
        return value

    def clean(self, text: str) -> str:
        """The text without the key, and without anything of a key's shape (services quote keys half masked)."""
        if len(self._value) >= _SHORTEST:
            text = text.replace(self._value, PLACEHOLDER)
        return _KEY_SHAPED.sub(PLACEHOLDER, text)


def find_key(variables: Iterable[str], environ: Mapping[str, str]) -> Key | None:
    """The first of the variables that is set and not blank."""
    for variable in variables:
        if value := environ.get(variable, "").strip():
            return Key(variable, value)
    return None


def is_secret_name(variable: str) -> bool:
    """Whether an environment variable is named like a key, token or password."""
    return _SECRET_NAME.search(variable) is not None


def secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the environment that must reach no record or report: of variables named like a key, token or password."""
    found = {value.strip() for name, value in environ.items() if is_secret_name(name) and len(value.strip()) >= _SHORTEST}
    return tuple(sorted(found))


def public_url(url: str) -> str:
    """An address without user, password, query or fragment: they may hold credentials."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit((parts.scheme, host + port, parts.path, "", ""))
