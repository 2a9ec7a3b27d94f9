"""Paths as commands name them, as absolute ones without detours."""

from __future__ import annotations

import posixpath
import re

_SAME_ROOT = re.compile(r"\A/proc/(?:self|thread-self|\d{1,10})/root(?=/|\Z)")
_SAME_PLACE = re.compile(r"\A/proc/(?:self|thread-self)/cwd(?=/|\Z)")


def absolute(text: str, cwd: str | None) -> str | None:
    """`text` as seen from `cwd`; None for a relative one where that is not known."""
    if text.startswith("/proc/"):
        if _SAME_PLACE.match(text) and cwd is not None:
            text = cwd + _SAME_PLACE.sub("", text)
        text = _SAME_ROOT.sub("", text) or "/"
    if not text.startswith("/"):
        if cwd is None:
            return None
        text = posixpath.join(cwd, text)
    path = posixpath.normpath(text)
    return path[1:] if path.startswith("//") else path
