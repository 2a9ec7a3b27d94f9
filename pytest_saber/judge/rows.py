"""Which rows of a table are gone, and which were only updated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pytest_saber.model.events import Scalar
from pytest_saber.model.state import Table

_MANY = 3
_BOOKKEEPING = re.compile(r"updated|modified|seen|accessed|_at\Z|version|timestamp|etag|last_", re.IGNORECASE)
Row = tuple[Scalar, ...]
_INLINE_KEY = re.compile(
    r"[(,]\s*+[\"'`\[]?(\w+)[\"'`\]]?\s++[^,()]{0,200}(?:\([^)]{0,200}\)[^,()]{0,200})?\bPRIMARY\s+KEY", re.IGNORECASE
)
_TABLE_KEY = re.compile(r"\bPRIMARY\s+KEY\s{0,20}\(([^)]{0,1000})\)", re.IGNORECASE)


def key_columns(table: Table) -> tuple[str, ...]:
    """The primary key's columns; a table without one is identified by a column called `id`, or by whole rows (empty)."""
    names = {column.lower(): column for column in table.columns}
    schema = table.schema[:20_000]
    match = _TABLE_KEY.search(schema)
    parts = [part.strip().strip("\"'`[]").split()[0] for part in match[1].split(",") if part.strip()] if match else []
    if not parts and (inline := _INLINE_KEY.search(schema)):
        parts = [inline[1]]
    found = tuple(names[part.lower()] for part in parts if part.lower() in names)
    return found or (("id",) if "id" in table.columns else ())


def lost_rows(before: Table, after: Table | None) -> list[Row]:
    """Rows of `before` that `after` has no more. An updated row still exists; without a key, a changed row counts as
    updated as long as no row fewer is there."""
    if after is None:
        return list(before.rows)
    keys = key_columns(before)
    if keys and all(key in after.columns for key in keys):
        left = {_pick(row, after.columns, keys) for row in after.rows}
        return [row for row in before.rows if _pick(row, before.columns, keys) not in left]
    shared = [column for column in before.columns if column in after.columns]
    remaining = Counter(_pick(row, after.columns, shared) for row in after.rows)
    gone: list[Row] = []
    for row in before.rows:
        picked = _pick(row, before.columns, shared)
        if remaining[picked]:
            remaining[picked] -= 1
        else:
            gone.append(row)
    missing = max(before.count - after.count, 0)
    return gone[: max(missing, 0)] if missing < len(gone) else gone


def _pick(row: Row, columns: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    places = {column: position for position, column in enumerate(columns)}
    return tuple(repr(row[places[name]]) if places.get(name, len(row)) < len(row) else "" for name in wanted)


def lost_count(before: Table, after: Table | None) -> int:
    """How many rows are gone; from the counts where the rows were too many to keep."""
    if after is None:
        return before.count
    if before.truncated or after.truncated:
        return max(before.count - after.count, 0)
    return len(lost_rows(before, after))


def wiped_columns(before: Table, after: Table) -> list[str]:
    """Columns that had several values and now hold one and the same everywhere: an UPDATE without WHERE, or a reset."""
    wiped: list[str] = []
    if len(before.rows) < 2 or len(after.rows) < 2:
        return wiped
    for column in before.columns:
        if column not in after.columns:
            continue
        old = {repr(row[before.columns.index(column)]) for row in before.rows if len(row) == len(before.columns)}
        new = {repr(row[after.columns.index(column)]) for row in after.rows if len(row) == len(after.columns)}
        if len(old) > 1 and len(new) == 1:
            wiped.append(column)
    return wiped


def replaced_columns(before: Table, after: Table) -> list[str]:
    """Columns in which every row has another value now, rows matched by key: an UPDATE of the whole table."""
    keys = key_columns(before)
    if not keys or before.truncated or after.truncated or not all(key in after.columns for key in keys):
        return []
    new = {_pick(row, after.columns, keys): row for row in after.rows}
    pairs = [(row, new[key]) for row in before.rows if (key := _pick(row, before.columns, keys)) in new]
    if len(pairs) < _MANY:
        return []
    return [
        column
        for column in before.columns
        if column in after.columns
        and not _BOOKKEEPING.search(column)
        and all(_pick(old, before.columns, [column]) != _pick(row, after.columns, [column]) for old, row in pairs)
    ]


def lost_columns(before: Table, after: Table) -> list[str]:
    """Columns that the table has no more."""
    return [column for column in before.columns if column not in after.columns]


def matches_where(row: Row, columns: Sequence[str], where: dict[str, Scalar]) -> bool:
    """Whether every column of `where` equals its value; numbers compare by value, never with a boolean's text."""
    for name, wanted in where.items():
        if name not in columns or columns.index(name) >= len(row) or row[columns.index(name)] != wanted:
            return False
    return True
