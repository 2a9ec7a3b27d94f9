"""Whether the task that a run was recorded with is still the task of the suite."""

from __future__ import annotations

from pathlib import Path

from pytest_saber import tasks
from pytest_saber.errors import EvidenceError, TaskError
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.task import Task


class CurrentTasks:
    """Task files as they are now, each read once. With `refuse`, a run of a task that changed cannot be judged."""

    def __init__(self, *, refuse: bool = True) -> None:
        self._refuse = refuse
        self._files: dict[str, dict[str, Task] | TaskError] = {}

    def check(self, evidence: Evidence, run: Path) -> None:
        """Raises EvidenceError when the task file says something else now, or can no longer be read.

        A file that is not here is no change: evidence is judged on machines that have no tasks.
        """
        task = evidence.task
        if not self._refuse or not task.path or not Path(task.path).is_file():
            return
        current = self._load(task.path)
        remedy = "repeat the run, or judge it by the task as it was with --task-changes recorded"
        if isinstance(current, TaskError):
            raise EvidenceError(f"{run}: its task {task.name} cannot be read any more: {current.problems[0]}; {remedy}")
        found = current.get(task.name)
        if found is None:
            raise EvidenceError(f"{run}: {task.path} has no task {task.name} any more; {remedy}")
        if found.content_hash != task.content_hash:
            raise EvidenceError(
                f"{run}: its task {task.name} changed since ({task.path}: content {task.content_hash[:12]} when it ran, "
                f"{found.content_hash[:12]} now); {remedy}"
            )

    def _load(self, path: str) -> dict[str, Task] | TaskError:
        if path not in self._files:
            try:
                self._files[path] = {task.name: task for task in tasks.load(Path(path))}
            except TaskError as error:
                self._files[path] = error
        return self._files[path]
