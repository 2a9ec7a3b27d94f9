"""A sandbox without an engine and without a shell, for tests of everything above sandboxes.

Files live in a dictionary; a command does what the test says it does. Nothing is ever run.
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pytest_saber.errors import FaultSource, InfrastructureFault, Problem, TaskError, WorkspaceEnd, WorkspaceLost
from pytest_saber.model import canary
from pytest_saber.model.evidence import RunKey
from pytest_saber.model.ports import CommandOutput, Workspace
from pytest_saber.model.state import FileEntry, FileType, HookVerdict, State
from pytest_saber.model.task import Limits, WorkspaceSpec

Command = Callable[["FakeWorkspace"], CommandOutput | str]
"""What a command does. A string is its output with exit code 0; it may change `files` and raise as `Workspace.run` does."""

_USER = 1000


class FakeWorkspace:
    """Implements `ports.Workspace`. `files` maps absolute paths to contents and may be changed at will."""

    def __init__(
        self,
        number: int,
        spec: WorkspaceSpec,
        limits: Limits,
        files: dict[str, bytes],
        commands: Mapping[str, Command | str],
    ) -> None:
        self.spec = spec
        self.limits = limits
        self.calls: list[tuple[str, float, Mapping[str, str]]] = []
        """Command, timeout and environment of each call of `run`."""
        self.files = files
        self._commands = commands
        self._number = number
        self._before = State()
        self._end: tuple[WorkspaceEnd, str] | None = None
        self._closed = False

    @property
    def container_id(self) -> str:
        """A made-up one."""
        return f"fake-{self._number}"

    def run(self, command: str, *, timeout: float, env: Mapping[str, str] | None = None) -> CommandOutput:
        """The scripted answer to the very command; exit code 127 for any other."""
        self._raise_if_ended()
        self.calls.append((command, timeout, dict(env or {})))
        action = self._commands.get(command)
        if action is None:
            return CommandOutput(f"bash: {command}: no such scripted command\n", 127, cwd=self.spec.workdir)
        done = action if isinstance(action, str) else action(self)
        return CommandOutput(done, 0, cwd=self.spec.workdir) if isinstance(done, str) else done

    def read_file(self, path: str, *, limit: int) -> bytes:
        """At most `limit` bytes. Raises OSError as `open` would."""
        self._raise_if_ended()
        full = self.spec.resolve(path)
        if full in self.files:
            return self.files[full][:limit]
        raise self._error(errno.EISDIR if self._is_directory(full) else errno.ENOENT, path)

    def write_file(self, path: str, content: bytes) -> None:
        """Create a file or replace its content. Raises OSError as `open` would."""
        self._raise_if_ended()
        full = self.spec.resolve(path)
        if self._is_directory(full):
            raise self._error(errno.EISDIR, path)
        if not self._is_directory(posixpath.dirname(full)):
            raise self._error(errno.ENOENT, path)
        self.files[full] = content

    def baseline(self) -> State:
        """The files now."""
        self._raise_if_ended()
        self._before = self._state()
        return self._before

    def final(self) -> tuple[State, State]:
        """The baseline and the files now."""
        if self._closed:
            raise _closed()
        return self._before, self._state()

    def hook_verdicts(self, baseline: State, final: State) -> tuple[HookVerdict, ...]:  # noqa: ARG002 - there is no git
        """None: there is no git."""
        return ()

    def limits_hit(self) -> tuple[str, ...]:
        """None: there are no limits."""
        return ()

    def ended(self) -> str | None:
        """What `end` was called with."""
        return None if self._end is None else f"{self._end[0].value}: {self._end[1]}"

    def end(self, reason: WorkspaceEnd, message: str) -> None:
        """Let the workspace end by what happened in it, as a command's action would."""
        self._end = (reason, message)

    def close(self) -> None:
        """Make every further call raise InfrastructureFault."""
        self._closed = True

    def _raise_if_ended(self) -> None:
        if self._closed:
            raise _closed()
        if self._end is not None:
            raise WorkspaceLost(*self._end)

    def _is_directory(self, path: str) -> bool:
        return path in {"/", self.spec.workdir} or any(name.startswith(f"{path}/") for name in self.files)

    def _error(self, number: int, path: str) -> OSError:
        return OSError(number, os.strerror(number), path)

    def _state(self) -> State:
        return State(files={path: _entry(content) for path, content in sorted(self.files.items())})


class FakeSandbox:
    """Implements `ports.Sandbox`. `commands` maps a command line to its output, or to what it does."""

    def __init__(self, session: str, *, commands: Mapping[str, Command | str] | None = None) -> None:
        self._session = session
        self._commands = commands or {}
        self._opened: list[FakeWorkspace] = []
        self._closed = False

    @contextmanager
    def open(self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]) -> Iterator[Workspace]:
        """A workspace with the files of `spec`. Raises TaskError for a spec with git or set-up steps."""
        if self._closed:
            raise InfrastructureFault(FaultSource.HARNESS, "the sandbox is closed")
        if spec.git or spec.setup:
            problem = Problem(key.task, 0, "workspace: a fake sandbox has neither git nor set-up steps")
            raise TaskError((problem,))
        files = {
            spec.resolve(file.path): canary.fill(file.content, canaries).encode() for file in spec.files if file.type == "file"
        }
        workspace = FakeWorkspace(len(self._opened), spec, limits, files, self._commands)
        self._opened.append(workspace)
        try:
            yield workspace
        finally:
            workspace.close()

    def describe(self) -> Mapping[str, str]:
        """That it is a fake."""
        return {"engine": "fake"}

    def reap(self) -> int:
        """0: nothing outlives the process."""
        return 0

    def close(self) -> None:
        """Close every workspace; none is opened any more."""
        self._closed = True
        for workspace in self._opened:
            workspace.close()


def _entry(content: bytes) -> FileEntry:
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    return FileEntry(
        FileType.FILE, 0o644, _USER, _USER, size=len(content), sha256=hashlib.sha256(content).hexdigest(), blob=blob, text=text
    )


def _closed() -> InfrastructureFault:
    return InfrastructureFault(FaultSource.HARNESS, "the workspace was closed while it was in use")
