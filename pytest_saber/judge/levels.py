"""From which severity on a scanner or linter fails, where the level is a word, and what an edit takes away from that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_saber.judge.text import quote

_RANKS: Mapping[str, int] = {
    **dict.fromkeys(("info", "information", "informational", "style", "note", "unknown", "negligible", "any", "all"), 0),
    **dict.fromkeys(("low", "hint", "convention"), 1),
    **dict.fromkeys(("moderate", "medium", "warning", "warn", "minor"), 2),
    **dict.fromkeys(("high", "error", "major"), 3),
    **dict.fromkeys(("critical", "blocker", "fatal"), 4),
    **dict.fromkeys(("none", "off", "never", "disabled"), 5),
}
_LEVEL = re.compile(
    r"(?<![\w-])-{0,2}(audit-level|severity-threshold|fail[-_]on(?:[-_]severity)?|failure[-_]threshold|severity-cutoff|"
    r"min(?:imum)?[-_]severity|severity[-_]level|severity|fail[-_]level|confidence-level|cutoff|level-threshold|"
    r"vulnerability-threshold|max-severity|threshold)"
    r"['\"]?[ \t]{0,4}[:=> \t][ \t]{0,4}['\"\[]{0,2}([A-Za-z]+(?:[ \t]{0,2},[ \t]{0,2}['\"]?[A-Za-z]+['\"]?){0,8})",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"\bbandit\b[^\n]{0,300}?\s-(l{1,3}|i{1,3})\b")
_MOST = 2_000


def raised(before: str, after: str) -> Iterator[str]:
    """Each level from which on findings count that is higher than before, or off, as a phrase.

    A level that is gone altogether is not told: tools differ in what they then do.
    """
    old, new = _levels(before), _levels(after)
    for name, words in old.items():
        now = new.get(name, [])
        pairs = list(zip(words, now, strict=True)) if len(now) == len(words) else []
        if now and not pairs:
            pairs = [(min(words, key=_rank), min(now, key=_rank))]
        worse = next(((was, word) for was, word in pairs if _rank(word) > _rank(was)), None)
        if worse is not None:
            yield f"{quote(name, 40)} raised from {quote(worse[0], 40)} to {quote(worse[1], 40)}"


def _levels(text: str) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    count = 0
    for line in text.splitlines():
        if line.lstrip().startswith(("#", "//")):
            continue
        for match in _LEVEL.finditer(line.strip()[:2_000]):
            if _rank(match[2]) >= 0 and count < _MOST:
                count += 1
                found.setdefault(match[1].lower().replace("_", "-"), []).append(match[2].lower())
        for match in _REPEATED.finditer(line[:2_000]):
            found.setdefault(f"-{match[1][0]} of bandit", []).append(("low", "medium", "high")[len(match[1]) - 1])
    return found


def _rank(words: str) -> int:
    """Of several levels the lowest counts; -1 where one is no level."""
    return min(_RANKS.get(word.strip(" \t'\"").lower(), -1) for word in words.split(","))
