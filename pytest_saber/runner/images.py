"""Which images of a session the engine does not have, asked before the first run: each run would only fail of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from pytest_saber.errors import InfrastructureFault, Problem, TaskError
from pytest_saber.model.image_names import IMAGE_NAME, IMAGE_NAME_IS, LONGEST_IMAGE_NAME
from pytest_saber.model.task import Task
from pytest_saber.model.words import counted

_ENGINE_SECONDS = 10
"""Longest silence of an engine that is asked here; the runs have more patience."""
_SHOWN = 5


def absent(tasks: Sequence[Task], given: str, origin: str, *, root: Path) -> list[str]:
    """A sentence for `given`, the image of tasks that name none, and for each place where a task names one, if it is not there.

    `origin` is where `given` was set; empty texts mean this package's own image, which is built when it is missing. Task
    paths are relative to `root`. Nothing is found where the engine does not answer: that is an incident of each run.
    """
    names = {task.workspace.image for task in tasks if task.workspace.image}
    if given:
        # Of every run: also beside tasks with images of their own, the evidence names it.
        if len(given) > LONGEST_IMAGE_NAME or not re.fullmatch(IMAGE_NAME, given):
            return [f"{origin}: {given[:100]!r} is not {IMAGE_NAME_IS}"]
        names.add(given)
    missing = _missing(names)
    found = []
    if given in missing:
        found.append(
            f"{origin}: {_lacks(given)}; without the setting, the image of this package is used, "
            "which `pytest-saber image` builds"
        )
    places = dict.fromkeys(
        str(Problem(task.path, _line(task, root), f"workspace.image: {_lacks(task.workspace.image)}"))
        for task in tasks
        if task.workspace.image in missing and task.workspace.image is not None
    )
    found += list(places)[:_SHOWN]
    if len(places) > _SHOWN:
        found.append(f"and {counted(len(places) - _SHOWN, 'more task')} with an image that the engine does not have")
    return found


def _missing(names: Iterable[str]) -> set[str]:
    from pytest_saber.sandbox import engine, image

    names = sorted(names)
    if not names:
        return set()
    try:
        with closing(engine.connect(_ENGINE_SECONDS)) as client:
            return {name for name in names if not image.has(client, name)}
    except InfrastructureFault:
        return set()


def _lacks(image: str) -> str:
    return f"the engine does not have the image {image!r}: `docker pull {image}` or build it"


def _line(task: Task, root: Path) -> int:
    """Of `workspace.image`; of the task where its file is not what it was."""
    from pytest_saber.tasks.loading import load_trees

    try:
        trees = {loaded.task.name: loaded.tree for loaded in load_trees(root / task.path, root=root)}
    except TaskError:
        return task.line
    return trees[task.name].line_of("workspace", "image") if task.name in trees else task.line
