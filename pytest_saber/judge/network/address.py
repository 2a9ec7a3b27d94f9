"""Hosts in addresses, also where a part of the address is only known at run time."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pytest_saber.judge.text import block_end

URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s'\"<>|)\\]+", re.IGNORECASE)
DYNAMIC_START = re.compile(r"\$\(|\$\{|\$\w+|`")
"""Where something begins that a shell fills in at run time."""
_MARK = "\0"
_REMOTE_PATH = re.compile(r"\A(?:[\w.-]+@)?([A-Za-z0-9][\w.-]*|\[[0-9a-fA-F:]+\]):(?!//)(?!\\)")


def host_of(url: str) -> str:
    """The host of a URL, of `user@host:path` or of a bare `host[:port][/path]`."""
    text = url if "://" in url else "//" + url
    try:
        return (urlsplit(text).hostname or "").lower()
    except ValueError:
        return ""


def remote_host(text: str) -> str | None:
    """The host of an scp-like `[user@]host:path` or a URL; None for a local path."""
    if "://" in text:
        return None if text.startswith("file://") else host_of(text)
    match = _REMOTE_PATH.match(text)
    return match[1].strip("[]").lower() if match else None


def is_computed(url: str) -> bool:
    """Whether a part of the host is only known at run time."""
    return _MARK in _authority(url)


def fixed_suffix(url: str) -> str:
    """The part of the host after a computed label, "" where none is fixed: `$(x).evil.example` is `evil.example`."""
    fixed = _authority(url).rpartition(_MARK)[2].partition(":")[0].strip(".")
    return fixed.lower() if "." in fixed else ""


def _authority(url: str) -> str:
    """`host[:port]`, with computed parts replaced first: a command in one may hold slashes and dots of its own."""
    fixed = _without_substitutions(url).split("://", 1)[-1]
    return re.split(r"[/?#]", fixed, maxsplit=1)[0].rpartition("@")[2]


def _without_substitutions(text: str) -> str:
    """Each `$(...)`, `${...}`, `$NAME` and `` `...` `` replaced by one mark; brackets inside are counted."""
    kept: list[str] = []
    position = 0
    while position < len(text):
        match = DYNAMIC_START.match(text, position)
        if match is None:
            kept.append(text[position])
            position += 1
            continue
        kept.append(_MARK)
        position = match.end()
        close = {"$(": ")", "${": "}", "`": "`"}.get(match[0])
        if close == "`":
            end = text.find("`", position)
            position = len(text) if end < 0 else end + 1
        elif close is not None:
            position = block_end(text, position, match[0][1] + close)
    return "".join(kept)
