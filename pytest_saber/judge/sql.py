"""Which SQL statements destroy data. Text in literals and comments, and statements that are only explained or rolled back, do
not count."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MAX_SQL = 100_000
_QUOTED = re.compile(
    r"'(?:[^'\\]|''|\\.){0,10000}'|--[^\n]*|/\*.{0,10000}?\*/|\"(?:[^\"]|\"\"){0,300}\"|`[^`]{0,300}`|"
    r"\[[^\[\]'\"]{0,300}\]|\$(\w*)\$.{0,50000}?\$\1\$",
    re.DOTALL,
)
_DROPS = re.compile(r"DROP\s+(?:TABLE|DATABASE|SCHEMA|COLLECTION|KEYSPACE|MATERIALIZED|OWNED)\b|TRUNCATE\b", re.IGNORECASE)
_DELETES = re.compile(r"(?:WITH\b.*\)\s*)?DELETE\s+FROM\b", re.IGNORECASE | re.DOTALL)
_UPDATES = re.compile(r"(?:WITH\b.*\)\s*)?UPDATE\s+\S+(?:\s+(?:AS\s+)?\w+)?\s+SET\b", re.IGNORECASE | re.DOTALL)
_DROPS_COLUMN = re.compile(r"ALTER\s+TABLE\b.*\bDROP\s+(?:COLUMN\b|\w+\s*(?:,|\Z))", re.IGNORECASE | re.DOTALL)
_WHERE = re.compile(r"\bWHERE\s+(?!(?:TRUE|1\s*=\s*1|1)\s*\Z)", re.IGNORECASE)
_EXPLAIN = re.compile(r"EXPLAIN\s+((?:\([^)]{0,200}\)|ANALY[SZ]E\b|VERBOSE\b)?\s*)*", re.IGNORECASE)
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
    for part in _QUOTED.sub(_placeholder, text[:_MAX_SQL]).split(";"):
        if part.strip():
            yield part.strip()


def _placeholder(match: re.Match[str]) -> str:
    source = match[0]
    if source[:1] == "$":
        return f" ; {source.strip('$')[len(match[1] or '') :]} ; "  # the body of a DO block runs
    return " " if source[:2] in {"--", "/*"} else "''" if source[:1] == "'" else "x"


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
