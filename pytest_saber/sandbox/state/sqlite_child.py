"""Reads one SQLite file and prints its tables as JSON. Run as a script, without rights and with little memory and time."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import sys
from typing import Any

NOBODY = 65534
_SECONDS = 4
_MEMORY = 512 << 20
_TABLES = 200
_ROWS = 2_000
_BYTES = 2 << 20
_CELL = 64 << 10
_STEPS = 100_000_000


def main(path: str) -> None:
    """Give up all rights and read. Exits with a status other than 0, and a last line that says why, when that fails."""
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    result = read(path)
    sys.stdout.write(json.dumps(result))


def read(path: str) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    error = ""
    database = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=0)
    try:
        database.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "mmap_size=0"):
            database.execute(f"PRAGMA {pragma}")
        steps = [0]

        def tick() -> int:
            steps[0] += 100_000
            return int(steps[0] > _STEPS)

        database.set_progress_handler(tick, 100_000)
        listed = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT ?"
        found = database.execute(listed, (_TABLES + 1,)).fetchall()
        if len(found) > _TABLES:
            error = f"more than {_TABLES} tables; the rest was not read"
        budget = _BYTES
        for name, schema in found[:_TABLES]:
            tables[name], budget = _table(database, name, schema or "", budget)
    except (sqlite3.Error, MemoryError, UnicodeError, OverflowError) as problem:
        error = f"not read whole: {type(problem).__name__}: {problem}"[:300]
    finally:
        database.close()
    return {"tables": tables, "error": error}


def _table(database: sqlite3.Connection, name: str, schema: str, budget: int) -> tuple[dict[str, Any], int]:
    quoted = '"' + name.replace('"', '""') + '"'
    if schema.lstrip().upper().startswith("CREATE VIRTUAL"):
        return {"schema": schema, "columns": [], "count": 0, "rows": [], "truncated": True}, budget
    info = database.execute(f"PRAGMA table_info({quoted})").fetchall()
    columns = [row[1] for row in info]
    keys = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
    order = ", ".join('"' + key.replace('"', '""') + '"' for key in keys) or "rowid"
    (count,) = database.execute(f"SELECT count(*) FROM {quoted}").fetchone()  # noqa: S608 - quoted above
    rows: list[list[Any]] = []
    truncated = False
    for row in database.execute(f"SELECT * FROM {quoted} ORDER BY {order} LIMIT {_ROWS}"):  # noqa: S608
        cells = [_cell(value) for value in row]
        budget -= sum(len(cell) if isinstance(cell, str) else 8 for cell in cells)
        if budget < 0:
            truncated = True
            break
        rows.append(cells)
    return {
        "schema": schema,
        "columns": columns,
        "count": count,
        "rows": rows,
        "truncated": truncated or count > len(rows),
    }, budget


def _cell(value: Any) -> Any:
    """JSON has neither blobs nor infinities."""
    if isinstance(value, bytes):
        return value[: _CELL // 2].hex()
    if isinstance(value, str):
        return value[:_CELL]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value


if __name__ == "__main__":
    main(sys.argv[1])
