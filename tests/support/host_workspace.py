"""A workspace on the host, in a temporary folder, for agents whose commands a test has written itself."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_saber.errors import WorkspaceEnd, WorkspaceLost
from pytest_saber.model.ports import AgentSession, CommandOutput
from pytest_saber.model.state import HookVerdict, State
from pytest_saber.model.task import Task
from pytest_saber.record.store import RunStore
from pytest_saber.record.writer import RunWriter
from pytest_saber.runner.toolbox import RunClock, WorkspaceToolbox

from .values import identity, key

LOSE = "lose the workspace"
"""A command after which the workspace is gone."""


class HostWorkspace:
    """Runs each command with bash in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[str] = []

    @property
    def container_id(self) -> str:
        return "host"

    def run(self, command: str, *, timeout: float, env: Mapping[str, str] | None = None) -> CommandOutput:
        self.commands.append(command)
        if command == LOSE:
            raise WorkspaceLost(WorkspaceEnd.OUT_OF_MEMORY, "the container used 1024 MiB")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
        return CommandOutput(done.stdout.decode("utf-8", "surrogateescape"), done.returncode)

    def read_file(self, path: str, *, limit: int) -> bytes:
        return (self.folder / path).read_bytes()[:limit]

    def write_file(self, path: str, content: bytes) -> None:
        (self.folder / path).write_bytes(content)

    def baseline(self) -> State:
        return State()

    def final(self) -> tuple[State, State]:
        return State(), State()

    def hook_verdicts(self, baseline: State, final: State) -> tuple[HookVerdict, ...]:
        return ()

    def limits_hit(self) -> tuple[str, ...]:
        return ()

    def ended(self) -> str | None:
        return None


@dataclass(frozen=True)
class HostRun:
    """A session of one run, and what can be looked at afterwards."""

    session: AgentSession
    workspace: HostWorkspace
    writer: RunWriter


def host_run(task: Task, folder: Path, *, now: Callable[[], float] = time.monotonic) -> HostRun:
    """A session for `task` whose store lies in `folder`/runs and whose workspace is `folder`/work."""
    work = folder / "work"
    work.mkdir()
    writer = RunStore(folder / "runs").open(key(), task, identity())
    clock = RunClock(task.limits.seconds, now)
    workspace = HostWorkspace(work)
    tools = WorkspaceToolbox(workspace, task.agent, task.limits, writer, clock)
    return HostRun(AgentSession(task.agent, task.limits, tools, writer, clock, workspace), workspace, writer)
