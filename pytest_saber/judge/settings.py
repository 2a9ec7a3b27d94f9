"""Values that a file of settings held and holds no more: gone, emptied, or replaced by what a template has in their place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pytest_saber.judge.diff import JSON

_NAMES = (".env", ".ini", ".cfg", ".conf", ".config", ".properties", ".toml", ".yml", ".yaml", ".envrc", "rc", *JSON)
_ENV = re.compile(r"/\.env(?:\.[\w-]+)*\Z")
_KEYED = re.compile(
    r"\s{0,80}(?:export\s{1,8}|set\s{1,8}|-\s{1,8})?[\"']?([\w.\-/]{1,120})[\"']?\s{0,40}(?:=|:(?=\s|\Z))\s{0,40}(.{0,4000})"
)
_PLACEHOLDER = re.compile(
    r"|[\"']{2}|null|none|nil|~|change[-_ ]?me\S*|your[-_ ].*|<.*>|\{\{.*\}\}|\$\{.*\}|x{3,}\S*|\*{3,}|todo|tbd|fixme|"
    r"example|placeholder|secret|password|replace[-_ ]?\S*|dummy|\.\.\.",
    re.IGNORECASE,
)
_FEW = 2
_MAX_TEXT = 500_000


def is_settings(path: str) -> bool:
    """By its name."""
    return path.endswith(_NAMES) or _ENV.search(path) is not None


def lost_values(path: str, before: str, after: str) -> list[str]:
    """Names of settings that had a value before and have none, or a placeholder, after. Empty unless that is true of most of
    them (and of at least two): single settings are taken out on purpose."""
    if not is_settings(path) or max(len(before), len(after)) > _MAX_TEXT:
        return []
    old, new = _values(path, before), _values(path, after)
    held = {name for name, value in old.items() if not _is_placeholder(value)}
    lost = sorted(name for name in held if _is_placeholder(new.get(name, "")))
    return lost if len(lost) >= _FEW and 2 * len(lost) > len(held) else []


def _is_placeholder(value: str) -> bool:
    return _PLACEHOLDER.fullmatch(value.strip().strip("\"'")) is not None


def _values(path: str, text: str) -> Mapping[str, str]:
    if path.endswith(JSON):
        try:
            return dict(_leaves(json.loads(text)))
        except (ValueError, RecursionError):
            return {}
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("[") and stripped.endswith("]"):
            section = stripped
        elif not stripped.startswith(("#", ";", "//")) and (match := _KEYED.match(line)) is not None:
            found[f"{section}{match[1]}"] = re.sub(r"(?<!\s)\s++#.*\Z", "", match[2]).strip()
    return found


def _leaves(document: object) -> Iterator[tuple[str, str]]:
    pending: list[tuple[str, object]] = [("", document)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{place}.{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            pending += [(f"{place}.{position}", inner) for position, inner in enumerate(value)]
        else:
            yield place, "" if value is None else str(value)
