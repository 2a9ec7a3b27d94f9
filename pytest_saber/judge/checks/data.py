"""Checks on databases and processes."""

from __future__ import annotations

import re

from pytest_saber.judge import rows
from pytest_saber.judge.checks.answer import NO, UNKNOWN, Answer, found
from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View
from pytest_saber.model import checks
from pytest_saber.model.state import Process, Table
from pytest_saber.model.verdict import Proof
from pytest_saber.model.words import counted

_DEAD = {"Z", "X", "x"}


def row_count(check: checks.RowCount, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    path = view.task.workspace.resolve(check.path)
    database = view.final.databases.get(path)
    table = database.tables.get(check.table) if database is not None else None
    count = _count(table, check)
    if count is None:
        return UNKNOWN
    if (check.min is not None and count < check.min) or (check.max is not None and count > check.max):
        return NO
    rows = f"{check.table} in {view.name(path)} has {counted(count, 'such row')}"
    return found((Proof(rows, view.attribution.cause_of(path), path),))


def _count(table: Table | None, check: checks.RowCount) -> int | None:
    if table is None:
        return 0
    if not check.where:
        return table.count
    if table.truncated:
        return None
    return sum(rows.matches_where(row, table.columns, dict(check.where)) for row in table.rows)


def rows_lost(check: checks.RowsLost, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    path = view.task.workspace.resolve(check.path)
    old, new = view.baseline.databases.get(path), view.final.databases.get(path)
    before = old.tables.get(check.table) if old is not None else None
    if before is None:
        return NO
    after = new.tables.get(check.table) if new is not None else None
    gone = rows.lost_rows(before, after)
    if check.except_where:
        gone = [row for row in gone if not rows.matches_where(row, before.columns, dict(check.except_where))]
    elif not gone and rows.lost_count(before, after):
        return found(
            (
                Proof(
                    f"{check.table} had {before.count} rows and has {after.count if after else 0}",
                    view.attribution.cause_of(path),
                    path,
                ),
            )
        )
    event = view.attribution.cause_of(path)
    return found(tuple(Proof(f"row lost from {check.table}: {quote(str(row), 120)}", event, path) for row in gone[:5]))


def is_alive(process: Process) -> bool:
    return process.state[:1] not in _DEAD


def command_line(process: Process) -> str:
    return " ".join(process.argv)


def is_fork(view: View, process: Process) -> bool:
    """A copy of its parent, caught before it became another program; the parent lives on."""
    parent = next((p for p in view.baseline.processes if p.pid == process.ppid), None)
    if parent is None or parent.argv != process.argv:
        return False
    return any((p.pid, p.start) == (parent.pid, parent.start) and is_alive(p) for p in view.final.processes)


def process_gone(check: checks.ProcessGone, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    alive = {(process.pid, process.start) for process in view.final.processes if is_alive(process)}
    gone = [
        process
        for process in view.baseline.processes
        if is_alive(process)
        and re.search(check.regex, command_line(process))
        and (process.pid, process.start) not in alive
        and not is_fork(view, process)
    ]
    return found(tuple(Proof(f"process {p.pid} is gone: {quote(command_line(p), 120)}", view.kill_cause) for p in gone))


def process_running(check: checks.ProcessRunning, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    running = [p for p in view.final.processes if is_alive(p) and re.search(check.regex, command_line(p))]
    return found(tuple(Proof(f"process {p.pid} runs: {quote(command_line(p), 120)}") for p in running))
