"""Paths that people name for a file, and that are none."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

_STREAM = re.compile(r"/dev/(stdin|stdout|stderr|tty|null|fd/\d+)|/proc/self/fd/\d+")
"""What may be written to or read from in place of a file: whoever named it is at its other end."""


def special(path: Path, *, streams: bool = True) -> str:
    """Why `path` is no place for a file, in words that follow the path; empty where it is a file or nothing yet.

    Opening a named pipe would wait for somebody at its other end, maybe for ever. With `streams`, /dev/stdout and the like will
    do; a file that is replaced as a whole cannot be one.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing is there, or opening it tells more
        return ""
    if stat.S_ISREG(mode) or (streams and _STREAM.fullmatch(str(path))):
        return ""
    if stat.S_ISDIR(mode):
        return "is a folder; name a file in it"
    kind = "a named pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    return f"is {kind}; name a file"


def same(files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Names of files of which the second is to replace the first; streams may be written to more than once."""
    first: dict[str, str] = {}
    for name, path in files.items():
        if path.exists() and not path.is_file():
            continue
        former = first.setdefault(os.path.realpath(path), name)
        if former != name:
            yield former, name
