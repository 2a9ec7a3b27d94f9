"""Databases made by SQLite itself, whole, hostile and damaged."""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_saber.model.state import Database
from pytest_saber.sandbox.state import sqlite


@contextmanager
def _database(path: Path, *statements: str) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    try:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        yield connection
    finally:
        connection.close()


def _read(path: Path) -> Database:
    log = Path(f"{path}-wal")
    return sqlite.read(path.read_bytes(), log.read_bytes() if log.exists() else b"")


def test_tables_rows_and_types(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with _database(
        path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, data BLOB, n REAL)",
        "INSERT INTO t VALUES (7, 'sieben', x'00ff', 1.5), (3, NULL, NULL, 9e999), (5, 'ä', x'', -2)",
        'CREATE TABLE "odd ""name" (b, a, PRIMARY KEY (a, b)) WITHOUT ROWID',
        'INSERT INTO "odd ""name" VALUES (1, 2), (2, 1)',
        "CREATE VIEW v AS SELECT * FROM t",
    ):
        pass
    found = _read(path)
    assert found.error == ""
    assert list(found.tables) == ['odd "name', "t"]
    table = found.tables["t"]
    assert table.columns == ("id", "name", "data", "n")
    assert table.schema.startswith("CREATE TABLE t (id INTEGER")
    assert table.rows == ((3, None, None, "inf"), (5, "ä", "", -2.0), (7, "sieben", "00ff", 1.5))
    assert (table.count, table.truncated) == (3, False)
    assert found.tables['odd "name'].rows == ((2, 1), (1, 2))


def test_what_is_committed_in_a_write_ahead_log_counts_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with _database(path, "PRAGMA journal_mode=WAL", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 200)
        connection.commit()
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("PRAGMA cache_size = 1")
        connection.executemany("INSERT INTO t VALUES (?)", [("uncommitted" * 90,)] * 300)
        log = Path(f"{path}-wal").read_bytes()
        assert b"uncommitted" in log
        table = _read(path).tables["t"]
        assert (table.count, table.rows[0], table.rows[1]) == (202, (1,), (2,))
        damaged = bytearray(log)
        damaged[40] ^= 1
        assert sqlite.read(path.read_bytes(), bytes(damaged)).tables["t"].rows == ((1,),)
        assert sqlite.read(path.read_bytes(), log[:20]).tables["t"].rows == ((1,),)


def test_large_tables_are_cut_and_say_so(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with _database(path, "CREATE TABLE many (x)", "CREATE TABLE wide (x)") as connection:
        connection.executemany("INSERT INTO many VALUES (?)", ((number,) for number in range(5000)))
        connection.executemany("INSERT INTO wide VALUES (?)", (("y" * 50_000,) for _ in range(100)))
        connection.commit()
    tables = _read(path).tables
    assert (tables["many"].count, len(tables["many"].rows), tables["many"].truncated) == (5000, 2000, True)
    assert (tables["wide"].count, tables["wide"].truncated) == (100, True)
    assert len(tables["wide"].rows) < 45


def test_more_tables_than_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with _database(path, "PRAGMA synchronous=OFF", "BEGIN", *(f"CREATE TABLE t{number:03} (x)" for number in range(205))):
        pass
    found = _read(path)
    assert len(found.tables) == 200
    assert found.error == "more than 200 tables; the rest was not read"


def test_a_schema_that_computes_is_stopped(tmp_path: Path) -> None:
    """A generated column of a gigabyte, and one that would count for hours: the other tables are still read."""
    path = tmp_path / "a.db"
    with _database(path, "CREATE TABLE bomb (x, y AS (zeroblob(900000000)))", "CREATE TABLE fine (x)") as connection:
        connection.execute("INSERT INTO bomb(x) VALUES (1)")
        connection.execute("INSERT INTO fine VALUES (1)")
        connection.commit()
    found = _read(path)
    assert found.tables["fine"].rows == ((1,),)
    assert "table bomb: " in found.error


def test_a_virtual_table_is_named_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with _database(path, "CREATE VIRTUAL TABLE f USING fts5(body)", "INSERT INTO f VALUES ('text')"):
        pass
    table = _read(path).tables["f"]
    assert (table.columns, table.rows, table.truncated) == ((), (), True)
    assert table.schema == "CREATE VIRTUAL TABLE f USING fts5(body)"


def test_a_collation_that_is_missing_costs_its_table_only(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.create_collation("mine", lambda one, other: (one > other) - (one < other))
    connection.execute("CREATE TABLE a (x TEXT COLLATE mine PRIMARY KEY) WITHOUT ROWID")
    connection.execute("CREATE TABLE b (x)")
    connection.execute("INSERT INTO b VALUES (1)")
    connection.commit()
    connection.close()
    found = _read(path)
    assert found.tables["b"].rows == ((1,),)
    assert "table a: OperationalError: no such collation sequence: mine" in found.error


@pytest.mark.parametrize(
    "content", [sqlite.MAGIC, sqlite.MAGIC + bytes(5000), sqlite.MAGIC + b"\xff" * 5000], ids=["short", "zeros", "ones"]
)
def test_no_database_at_all(content: bytes) -> None:
    found = sqlite.read(content, b"")
    assert found.tables == {}
    assert found.error.startswith(("DatabaseError: ", "OperationalError: "))


def test_damaged_databases_never_break_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with _database(path, "PRAGMA page_size=512", "CREATE TABLE t (x, y)", "CREATE INDEX i ON t (x)") as connection:
        connection.executemany("INSERT INTO t VALUES (?, ?)", ((number, "y" * number) for number in range(100)))
        connection.commit()
    whole = path.read_bytes()
    chance = random.Random(7)
    for _ in range(12):
        damaged = bytearray(whole)
        for _ in range(40):
            damaged[chance.randrange(100, len(damaged))] = chance.randrange(256)
        found = sqlite.read(bytes(damaged), b"")
        assert found.engine == "sqlite"
        assert found.error or found.tables


def test_a_log_cannot_grow_the_database_without_end(tmp_path: Path) -> None:
    """A header that claims four billion pages is not believed."""
    path = tmp_path / "a.db"
    with _database(path, "CREATE TABLE t (x)"):
        pass
    page = path.read_bytes()[:4096]
    head = struct.pack(">IIII8s", 0x377F0683, 3007000, 4096, 0, b"saltsalt")
    sums = _sum(head, (0, 0))
    log = head + struct.pack(">II", *sums)
    frame = struct.pack(">II", 1, 0xFFFFFFFF)
    sums = _sum(page, _sum(frame, sums))
    log += frame + b"saltsalt" + struct.pack(">II", *sums) + page
    assert list(sqlite.read(path.read_bytes(), log).tables) == ["t"]


def _sum(data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    for one, two in struct.iter_unpack(">II", data):
        first = first + one + second & 0xFFFFFFFF
        second = second + two + first & 0xFFFFFFFF
    return first, second
