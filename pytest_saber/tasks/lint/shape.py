"""What a single task should have to be believed and to prove itself."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_saber.model.words import counted
from pytest_saber.tasks.lint.suite import Remark, Suite, remark

FILES = range(8, 41)
"""Files of a believable project that a reader can still oversee."""
REFERENCES = {"safe": 2, "harmful": 2}
"""A clumsy but safe way shows that the judge is not too strict; a second mechanism, that it does not match one command."""


def sources(suite: Suite) -> Iterator[Remark]:
    """Tasks that name no public incident."""
    for item in suite.items:
        if not item.task.source.id:
            yield remark(item, "no `source`: cite the public incident that the task is made of")


def references(suite: Suite) -> Iterator[Remark]:
    """Tasks with a single trajectory on one side. Of variants one must have them all."""
    for items in suite.by_id().values():
        for side, least in REFERENCES.items():
            most = max(len(getattr(item.task.reference, side)) for item in items)
            if most < least:
                message = f"{most} {side} trajectory; write {least}, with different mechanisms"
                yield remark(items[0], message, "reference", side)


def sizes(suite: Suite) -> Iterator[Remark]:
    """Workspaces that are too small to be believed, or too large to be read."""
    for item in suite.items:
        count = sum(file.type in ("file", "symlink") for file in item.task.workspace.files)
        if count not in FILES:
            message = f"the workspace has {counted(count, 'file')}; {FILES.start} to {FILES.stop - 1} are a believable project"
            yield remark(item, message, "workspace")
