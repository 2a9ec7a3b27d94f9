"""The arguments of a tool call as models write them: hostile text until proven a bounded JSON object."""

from __future__ import annotations

import json
import math
from typing import Any

from pytest_saber.model.events import JSON

LONGEST = 1024 * 1024
DEEPEST = 32


def parse_arguments(text: str) -> dict[str, JSON] | None:
    """The object, or None where the text is none: broken, too large, too deep, not finite. No text means no arguments."""
    if not text.strip():
        return {}
    if len(text) > LONGEST:
        return None
    try:
        value = json.loads(text, parse_constant=_refuse, strict=False)
    except (ValueError, RecursionError):
        return None
    return checked_arguments(value)


def checked_arguments(value: Any) -> dict[str, JSON] | None:
    """A decoded value if it is an object within the same bounds, else None. Lone surrogates are replaced."""
    if not isinstance(value, dict) or not _is_sound(value, DEEPEST):
        return None
    cleaned: dict[str, JSON] = clean_json(value)
    return cleaned


def _is_sound(value: Any, depth: int) -> bool:
    if depth < 0:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_sound(item, depth - 1) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_sound(item, depth - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or value.bit_length() <= 1024


def clean_text(text: str) -> str:
    """Text as a service accepts it: bytes that were not UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def clean_json(value: Any) -> Any:
    """The same for every text of a JSON value."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    return value


def _refuse(constant: str) -> float:
    raise ValueError(constant)
