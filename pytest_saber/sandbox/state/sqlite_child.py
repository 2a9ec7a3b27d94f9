"""Reads one SQLite database from its input and prints its tables as JSON.

Run as a script, in a process that has given up its rights and may open no file: the database lives in memory only.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import struct
import sys
from typing import Any

_NOBODY = 65534
_SECONDS = 4
_MEMORY = 512 << 20
_OUTPUT = 32 << 20
_TABLES = 200
_ROWS = 2_000
_BYTES = 2 << 20
_CELL = 64 << 10
_STEPS = 200_000_000
_WAL_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}


def main(size: int) -> None:
    """The first `size` bytes of the input are the database, the rest is its write-ahead log."""
    data = sys.stdin.buffer.read()
    _confine()
    sys.stdout.write(json.dumps(read(bytearray(data[:size]), data[size:])))
    sys.stdout.flush()


def _confine() -> None:
    limits = {
        resource.RLIMIT_CPU: _SECONDS,
        resource.RLIMIT_AS: _MEMORY,
        resource.RLIMIT_FSIZE: _OUTPUT,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_NOFILE: 3,
    }
    for limit, value in limits.items():
        resource.setrlimit(limit, (value, value))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def read(data: bytearray, log: bytes) -> dict[str, Any]:
    """`tables` by name, and what went wrong, as `error`."""
    tables: dict[str, Any] = {}
    errors: list[str] = []
    data = apply_log(data, log)
    if data[18:20] == b"\2\2":
        data[18:20] = b"\1\1"  # No write-ahead log exists in memory; what it held is in the pages now.
    database = sqlite3.connect(":memory:")
    try:
        database.deserialize(bytes(data))
        database.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "temp_store=MEMORY"):
            database.execute(f"PRAGMA {pragma}")
        steps = [0]

        def tick() -> int:
            steps[0] += 100_000
            return int(steps[0] > _STEPS)

        database.set_progress_handler(tick, 100_000)
        query = (
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        found = database.execute(f"{query} LIMIT {_TABLES + 1}").fetchall()
        if len(found) > _TABLES:
            errors.append(f"more than {_TABLES} tables; the rest was not read")
        budget = _BYTES
        for name, schema in found[:_TABLES]:
            tables[name[:_CELL]], budget = _table(database, name, (schema or "")[:_CELL], budget, errors)
    except (sqlite3.Error, MemoryError, UnicodeError, OverflowError) as problem:
        errors.append(f"{type(problem).__name__}: {problem}")
    finally:
        database.close()
    return {"tables": tables, "error": "; ".join(errors[:5])[:500]}


def _table(database: sqlite3.Connection, name: str, schema: str, budget: int, errors: list[str]) -> tuple[dict[str, Any], int]:
    """One table, and what is left of the budget for bytes. A virtual table runs code of its own: its schema is all."""
    table: dict[str, Any] = {"schema": schema, "columns": [], "count": 0, "rows": [], "truncated": True}
    if schema.lstrip().upper().startswith("CREATE VIRTUAL"):
        return table, budget
    try:
        info = database.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()
        table["columns"] = [row[1] for row in info]
        keys = [row[1] for row in sorted(info, key=lambda row: int(row[5])) if row[5]]
        order = ", ".join(map(_quoted, keys)) or "rowid"
        (table["count"],) = database.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()  # noqa: S608 - quoted
        budget -= len(schema)
        for row in database.execute(f"SELECT * FROM {_quoted(name)} ORDER BY {order} LIMIT {_ROWS}"):  # noqa: S608
            cells = [_cell(value) for value in row]
            budget -= sum(len(cell) if isinstance(cell, str) else 8 for cell in cells)
            if budget < 0:
                break
            table["rows"].append(cells)
        table["truncated"] = len(table["rows"]) < table["count"]
    except (sqlite3.Error, MemoryError, UnicodeError, OverflowError) as problem:
        errors.append(f"table {name[:100]}: {type(problem).__name__}: {problem}")
    return table, budget


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(value: Any) -> Any:
    """JSON has neither blobs nor infinities."""
    if isinstance(value, bytes):
        return value[: _CELL // 2].hex()
    if isinstance(value, str):
        return value[:_CELL]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value


def apply_log(data: bytearray, log: bytes) -> bytearray:
    """The database with every committed transaction of its write-ahead log (sqlite.org/fileformat.html, section 4)."""
    if len(log) < 32:
        return data
    magic, _, page_size, _ = struct.unpack_from(">IIII", log)
    order = _WAL_MAGIC.get(magic)
    if order is None or page_size < 512 or page_size > 65536 or page_size & (page_size - 1):
        return data
    salt, sums = log[16:24], _checksum(order, log[:24], (0, 0))
    if sums != struct.unpack_from(">II", log, 24):
        return data
    pending: dict[int, int] = {}
    for start in range(32, len(log) - page_size - 23, 24 + page_size):
        number, size = struct.unpack_from(">II", log, start)
        sums = _checksum(order, log[start : start + 8], sums)
        sums = _checksum(order, log[start + 24 : start + 24 + page_size], sums)
        if log[start + 8 : start + 16] != salt or sums != struct.unpack_from(">II", log, start + 16) or not number:
            break
        pending[number] = start + 24
        if not size:
            continue
        if size * page_size > _MEMORY // 8:
            break
        data.extend(bytes(max(0, size * page_size - len(data))))
        for page, place in pending.items():
            if page <= size:
                data[(page - 1) * page_size : page * page_size] = log[place : place + page_size]
        del data[size * page_size :]
        pending.clear()
    return data


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    for one, two in struct.iter_unpack(f"{order}II", data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second


if __name__ == "__main__":
    main(int(sys.argv[1]))
