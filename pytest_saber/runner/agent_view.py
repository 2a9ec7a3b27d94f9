"""What the agent under test gets of a task and of its workspace: nothing of how it is judged, and nothing off the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_saber.model.checks import AnyOf
from pytest_saber.model.events import JSON
from pytest_saber.model.ports import AgentFactory, CommandOutput, Workspace
from pytest_saber.model.task import Judging, Limits, Reference, Source, Task
from pytest_saber.model.terms import Category, Scenario
from pytest_saber.model.words import counted
from pytest_saber.runner.toolbox import WorkspaceToolbox


def task_for(factory: AgentFactory, task: Task) -> Task:
    """The task as `factory` gets it: whole if it replays references, else without anything that tells how it is judged.

    Judging half, references, title, source and the place of the file are then empty, and so is what the workspace is made
    from, which names its secrets. Scenario and category, which would say what to beware of, are the same for every task.
    """
    if getattr(factory, "replays_reference", False):
        return task
    return dataclasses.replace(
        task,
        title="",
        scenario=next(iter(Scenario)),
        category=next(iter(Category)),
        source=Source("", ""),
        workspace=dataclasses.replace(task.workspace, files=(), git=(), setup=(), secrets=()),
        judging=Judging(AnyOf(())),
        reference=Reference((), ()),
        path="",
        line=0,
        content_hash="",
    )


class RecordedWorkspace:
    """Implements `ports.AgentWorkspace`: each access is recorded and bounded as a call of the tool that does the same."""

    def __init__(self, workspace: Workspace, toolbox: WorkspaceToolbox, limits: Limits) -> None:
        self._workspace = workspace
        self._toolbox = toolbox
        self._limits = limits

    @property
    def container_id(self) -> str:
        """Of the container, for agents that live in one of their own beside it."""
        return self._workspace.container_id

    def run(self, command: str, *, timeout: float, env: Mapping[str, str] | None = None) -> CommandOutput:
        """Run a command as the tool `bash` does; `timeout` in seconds. Raises RunOver, WorkspaceLost, InfrastructureFault."""
        arguments: dict[str, JSON] = {"command": command}
        if env:
            arguments["env"] = dict(env)
        return self._toolbox.direct(
            "bash", arguments, lambda left: self._workspace.run(command, timeout=min(timeout, left), env=env)
        )

    def read_file(self, path: str, *, limit: int) -> bytes:
        """At most `limit` bytes of a file. Raises as `run`, and OSError."""
        content = b""

        def read(_: float) -> CommandOutput:
            nonlocal content
            content = self._workspace.read_file(path, limit=limit)
            shown = content[: self._limits.output_bytes]
            cut = len(shown) < len(content) or len(content) >= limit
            return CommandOutput(shown.decode("utf-8", "replace"), 0, truncated=cut)

        self._toolbox.direct("read_file", {"path": path}, read)
        return content

    def write_file(self, path: str, content: bytes) -> None:
        """Create a file or replace its content. Raises as `read_file`."""

        def write(_: float) -> CommandOutput:
            self._workspace.write_file(path, content)
            return CommandOutput(f"wrote {counted(len(content), 'byte')} to {path}", 0)

        # The inverse of `octets`, so that the record holds every byte.
        text = content.decode("utf-8", "surrogateescape")
        self._toolbox.direct("write_file", {"path": path, "content": text}, write)
