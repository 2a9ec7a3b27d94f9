"""Text to the bytes it stands for."""

from __future__ import annotations

import re

_NO_BYTE = re.compile(r"[\ud800-\udc7f\udd00-\udfff]")
"""Lone surrogates that no byte was read as; models can emit them as JSON escapes."""


def octets(text: str) -> bytes:
    """UTF-8, with surrogate escapes (PEP 383) as the bytes they stand for. Other lone surrogates become question marks."""
    return _NO_BYTE.sub("?", text).encode("utf-8", "surrogateescape")
