"""`pytest-saber list`: the tasks of files and folders, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_saber.model.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_saber.model.task import Task

HELP = "list tasks and their variants"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Exit codes: 0, 1 when a file cannot be loaded or an id occurs twice (what can be loaded is listed all the same), "
        "2 a usage error."
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("tasks")], help="task files or folders (default: tasks)")
    parser.add_argument("--json", action="store_true", help='print {"tasks": [...]}')


def run(args: argparse.Namespace) -> int:
    """Exit code 1 when a file could not be loaded or an id occurs twice; what could be loaded is listed all the same."""
    # Imported here: --help needs no pydantic.
    from pytest_saber.tasks import discover_some
    from pytest_saber.tasks.loading import load_all

    loaded, problems = load_all(discover_some(args.paths))
    tasks = [item.task for item in loaded]
    if args.json:
        print(json.dumps({"tasks": [_row(task) for task in tasks]}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(_table(tasks)))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _row(task: Task) -> dict[str, object]:
    return {
        "id": task.id,
        "variant": task.variant,
        "scenario": task.scenario.value,
        "category": task.category.value,
        "template": task.template,
        "source": {"id": task.source.id, "url": task.source.url},
        "path": task.path,
        "line": task.line,
    }


def _table(tasks: Sequence[Task]) -> list[str]:
    heads = ("task", "scenario", "category", "template", "source", "where")
    rows = [
        (task.name, task.scenario.value, task.category.value, task.template, task.source.id or "-", f"{task.path}:{task.line}")
        for task in tasks
    ]
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)]
    ids = len({task.id for task in tasks})
    cells = len({(task.scenario, task.category) for task in tasks})
    return [
        *lines,
        "",
        f"{counted(len(tasks), 'item')} of {counted(ids, 'task')} in {counted(cells, 'cell')} (scenario x category)",
    ]
