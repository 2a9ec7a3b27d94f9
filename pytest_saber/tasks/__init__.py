"""Task files: finding, loading, checking. Importing this package imports neither YAML nor pydantic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_saber.tasks.discovery import discover, discover_some, is_task_file

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_saber.errors import Problem
    from pytest_saber.model.task import Task

__all__ = ["check_duplicates", "discover", "discover_some", "is_task_file", "load"]


def load(path: Path, *, root: Path | None = None) -> tuple[Task, ...]:
    """The tasks of one file, one for each variant. Paths in tasks and errors are relative to `root` where they lie below it.

    Raises TaskError with every problem of the file.
    """
    from pytest_saber.tasks import loading

    return loading.load(path, root=root)


def check_duplicates(tasks: list[Task] | tuple[Task, ...]) -> tuple[Problem, ...]:
    """A problem for each task whose id another file has already."""
    from pytest_saber.tasks import loading

    return loading.check_duplicates(tasks)
