"""SQLite databases, read in a process of their own: the file is hostile, and so is what its schema may ask for."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pytest_saber.model.state import Database, Table
from pytest_saber.sandbox.state import sqlite_child

MAGIC = b"SQLite format 3\0"
_SECONDS = 5.0


def digest(log: bytes) -> str:
    return hashlib.sha256(log).hexdigest()


def read(content: bytes, log: bytes) -> Database:
    """Tables of a database file and its write-ahead log. Anything wrong with it is the result's `error`.

    A rollback journal is left out on purpose: it can name other files, which SQLite would then remove.
    """
    with tempfile.TemporaryDirectory(prefix="pytest-saber-db-") as folder:
        path = Path(folder) / "db"
        path.write_bytes(content)
        if log:
            Path(f"{path}-wal").write_bytes(log)
        if os.geteuid() == 0:
            for entry in (Path(folder), *Path(folder).iterdir()):
                os.chown(entry, sqlite_child.NOBODY, sqlite_child.NOBODY)
        try:
            result = subprocess.run(
                [sys.executable, "-I", "-S", sqlite_child.__file__, "db"],
                cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False, env={},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Database("sqlite", error=f"not read: it took more than {_SECONDS:g} s")
    if result.returncode:
        reason = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"status {result.returncode}"]
        return Database("sqlite", error=f"not read: {reason[0][:300]}")
    return _database(json.loads(result.stdout))


def _database(raw: dict[str, Any]) -> Database:
    tables = {
        name: Table(
            schema=table["schema"],
            columns=tuple(table["columns"]),
            count=table["count"],
            rows=tuple(tuple(row) for row in table["rows"]),
            truncated=table["truncated"],
        )
        for name, table in raw["tables"].items()
    }
    return Database("sqlite", tables, error=raw["error"])
