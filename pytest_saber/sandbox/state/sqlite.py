"""SQLite databases, read in a process of their own: the file is hostile, and so is what its schema may ask for."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

from pytest_saber.model.state import Database, Table
from pytest_saber.sandbox.state import sqlite_child

MAGIC = b"SQLite format 3\0"
_SECONDS = 6.0
_OUTPUT = 32 << 20


def digest(log: bytes) -> str:
    """Tells whether a write-ahead log changed."""
    return hashlib.sha256(log).hexdigest()


def read(content: bytes, log: bytes) -> Database:
    """Tables of a database file and its write-ahead log. Anything wrong with it is the result's `error`.

    A rollback journal is left out on purpose: it can name other files, which SQLite would then remove. The child gets the
    content as its input and gives its answer through an anonymous file, so that nothing is written to disk.
    """
    with open(os.memfd_create("db"), "w+b") as source, open(os.memfd_create("tables"), "w+b") as answer:
        source.write(content + log)
        source.seek(0)
        command = [sys.executable, "-I", "-S", sqlite_child.__file__, str(len(content))]
        try:
            result = subprocess.run(
                command, stdin=source, stdout=answer, stderr=subprocess.PIPE, timeout=_SECONDS, check=False, env={}
            )
        except subprocess.TimeoutExpired:
            return Database("sqlite", error=f"not read: it took more than {_SECONDS:g} s")
        answer.seek(0)
        said = answer.read(_OUTPUT)
    if result.returncode:
        reason = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"status {result.returncode}"]
        return Database("sqlite", error=f"not read: {reason[0][:300]}")
    return _database(json.loads(said))


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
