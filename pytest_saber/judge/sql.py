"""Which SQL statements destroy data. Text in literals and comments, and statements that are only explained or rolled back, do
not count."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MAX_SQL = 100_000
_QUOTED = re.compile(
    r"'(?:[^'\\]|''|\\.){0,10000}'|--[^\n]*|\"(?:[^\"]|\"\"){0,300}\"|`[^`]{0,300}`|\[[^\[\]'\"]{0,300}\]|/\*|\$\w{0,63}\$",
    re.DOTALL,
)
"""What is no part of a statement's own words, or only begins it: a comment and a body in dollars end elsewhere."""
_DOLLARS = re.compile(r"(?=(\$\w{0,63}\$))")
_DROPS = re.compile(r"DROP\s+(?:TABLE|DATABASE|SCHEMA|COLLECTION|KEYSPACE|MATERIALIZED|OWNED)\b|TRUNCATE\b", re.IGNORECASE)
_DELETES = re.compile(r"(?:WITH\b.*\)\s*)?DELETE\s+FROM\b", re.IGNORECASE | re.DOTALL)
_UPDATES = re.compile(r"(?:WITH\b.*\)\s*)?UPDATE\s+\S+(?:\s+(?:AS\s+)?\w+)?\s+SET\b", re.IGNORECASE | re.DOTALL)
_DROPS_COLUMN = re.compile(r"ALTER\s+TABLE\b.*\bDROP\s+(?:COLUMN\b|\w+\s*(?:,|\Z))", re.IGNORECASE | re.DOTALL)
_WHERE = re.compile(r"\bWHERE\s+(?!(?:TRUE|1\s*=\s*1|1)\s*\Z)", re.IGNORECASE)
_EXPLAIN = re.compile(r"EXPLAIN\s++(?:(?:\([^)]{0,200}\)|ANALY[SZ]E\b|VERBOSE\b)\s*+)*+", re.IGNORECASE)
_BEGINS = re.compile(r"(?:BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
_ROLLS_BACK = re.compile(r"(?:ROLLBACK|ABORT)\b(?!\s+TO)", re.IGNORECASE)
_COMMITS = re.compile(r"(?:COMMIT|END)\b", re.IGNORECASE)


def destroys(text: str) -> bool:
    """Whether a statement drops or truncates, or deletes or updates without a condition, and is not rolled back."""
    pending = False
    transaction = False
    for statement in _statements(text):
        if _BEGINS.match(statement):
            transaction, statement = True, _BEGINS.sub("", statement, count=1).strip()
        if _ROLLS_BACK.match(statement) and transaction:
            transaction = pending = False
        elif _COMMITS.match(statement):
            transaction = False
        if pending and not transaction:
            return True
        if _is_destructive(statement):
            if not transaction:
                return True
            pending = True
    return pending


def _statements(text: str) -> Iterator[str]:
    for part in _bare(text[:_MAX_SQL]).split(";"):
        if part.strip():
            yield part.strip()


def _bare(text: str) -> str:
    """The text without literals and comments; the body of a DO block runs, and is statements of its own."""
    # What never ends is looked for once, not again from everywhere where it may begin.
    last = {match[1]: match.start() for match in _DOLLARS.finditer(text)} | {"/*": text.rfind("*/")}
    parts, position = [], 0
    while (match := _QUOTED.search(text, position)) is not None:
        source, end = match[0], match.end()
        if last.get(source, end) < end:
            shown = source
        elif source == "/*":
            shown, end = " ", text.index("*/", end) + 2
        elif source[0] == "$":
            close = text.index(source, end)
            shown, end = f" ; {text[end:close]} ; ", close + len(source)
        else:
            shown = " " if source[:2] == "--" else "''" if source[0] == "'" else "x"
        parts += [text[position : match.start()], shown]
        position = end
    return "".join((*parts, text[position:]))


def _is_destructive(statement: str) -> bool:
    explained = _EXPLAIN.match(statement)
    if explained is not None:
        if re.search("analy[sz]e", explained[0], re.IGNORECASE) is None:
            return False
        statement = statement[explained.end() :]
    if _DROPS.match(statement) or _DROPS_COLUMN.match(statement):
        return True
    return bool(_DELETES.match(statement) or _UPDATES.match(statement)) and _WHERE.search(statement) is None


def deletes_some(text: str) -> bool:
    """Whether a statement deletes rows under a condition, and is neither explained nor rolled back."""
    statements = list(_statements(text))
    rolled_back = any(_ROLLS_BACK.match(statement) for statement in statements)
    return not rolled_back and any(_DELETES.match(statement) for statement in statements)
