"""A workspace in a Docker container."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import docker
import docker.errors
import requests

from pytest_saber.errors import FaultSource, InfrastructureFault, WorkspaceEnd, WorkspaceLost
from pytest_saber.model.ports import CommandOutput
from pytest_saber.model.state import HookVerdict, Process, State
from pytest_saber.model.task import Limits
from pytest_saber.sandbox import files, hooks
from pytest_saber.sandbox.accounts import Account
from pytest_saber.sandbox.channel import Channel, ChannelClosed
from pytest_saber.sandbox.engine import faults
from pytest_saber.sandbox.shell import How, ProcessOne
from pytest_saber.sandbox.state.reader import StateReader

_STOP_SECONDS = 5.0
"""Longest time between the end of the attached streams and the engine's word that the container has ended."""
_KILLED_EXIT = 137


class DockerWorkspace:
    """Implements `ports.Workspace` for one container. `run`, `read_file` and `write_file` may be called from any thread."""

    def __init__(
        self,
        client: docker.DockerClient,
        container_id: str,
        channel: Channel,
        *,
        account: Account,
        workdir: str,
        limits: Limits,
        canaries: Mapping[str, str],
        fresh: Callable[[], AbstractContextManager[DockerWorkspace]],
    ) -> None:
        """`fresh` provisions another workspace as this one was."""
        self._client = client
        self._id = container_id
        self._channel = channel
        self._shell = ProcessOne(channel)
        self._account = account
        self._workdir = workdir
        self._limits = limits
        self._reader = StateReader(client, container_id, workdir=workdir, canaries=canaries, is_harness=self._is_harness)
        self._hooks = hooks.Workbench(client, container_id, account, workdir, fresh)
        self._inner: tuple[int, int] | None = None
        """The shell that runs commands: its process number and start time."""
        self._turn = threading.Lock()
        self._cwd = workdir
        self._oom_kills = 0
        self._forks_refused = 0
        self._over_disk: str | None = None
        self._closed = False
        self._lost: WorkspaceLost | None = None

    @property
    def container_id(self) -> str:
        """The engine's full id."""
        return self._id

    @property
    def limits(self) -> Limits:
        """As the task set them."""
        return self._limits

    def run(self, command: str, *, timeout: float, env: Mapping[str, str] | None = None) -> CommandOutput:
        """As `ports.Workspace.run`; one command at a time, others wait. `timeout` is in seconds, enforced inside."""
        with self._turn:
            self._raise_if_ended()
            cwd, begin = self._cwd, time.monotonic()
            try:
                reply = self._shell.run(command, timeout=timeout, env=env or {})
            except ValueError as error:
                return CommandOutput(f"bash: {error}\n", 126, cwd=cwd)
            except ChannelClosed:
                raise self._ending() from None
            except TimeoutError:
                # The first process itself does not answer: something in the workspace has stopped the whole of it.
                raise self._give_up("the workspace's first process does not answer any more") from None
            restarted = reply.how in {How.LOST, How.KILLED}
            self._cwd = self._workdir if restarted else reply.cwd or cwd
            self._oom_kills, self._forks_refused = reply.out_of_memory, reply.forks_refused
            self._inner = reply.shell
            return CommandOutput(
                output=reply.output,
                exit_code=reply.exit_code,
                truncated=reply.truncated,
                timed_out=reply.how in {How.TIMEOUT, How.KILLED},
                restarted=restarted,
                seconds=time.monotonic() - begin,
                cwd=cwd,
            )

    def read_file(self, path: str, *, limit: int) -> bytes:
        """As `ports.Workspace.read_file`, with the rights of the user. Relative paths start at the work directory."""
        return self._exec(lambda full: files.read_file(self._client, self._id, self._account.name, full, limit), path)

    def write_file(self, path: str, content: bytes) -> None:
        """As `read_file`."""
        self._exec(lambda full: files.write_file(self._client, self._id, self._account.name, full, content), path)

    def baseline(self) -> State:
        """As `ports.Workspace.baseline`. Raises WorkspaceLost, InfrastructureFault."""
        self._raise_if_ended()
        return self._reader.baseline()

    def final(self) -> tuple[State, State]:
        """As `ports.Workspace.final`; also of a container that has ended. Raises InfrastructureFault."""
        if self._closed:
            raise _closed()
        return self._reader.final()

    def hook_verdicts(self, baseline: State, final: State) -> tuple[HookVerdict, ...]:
        """As `ports.Workspace.hook_verdicts`, asked in a throwaway container. Raises InfrastructureFault."""
        if self._closed:
            raise _closed()
        return hooks.ask(self._hooks, baseline, final)

    def ended(self) -> str | None:
        """Raises InfrastructureFault when it was not the workspace but the engine that ended."""
        if self._channel.is_open:
            return None
        error = self._ending()
        if isinstance(error, WorkspaceLost):
            return f"{error.reason.value}: {error}"
        raise error

    def limits_hit(self) -> tuple[str, ...]:
        """Limits of the workspace that have taken effect so far, each as a sentence."""
        hit = []
        if self._oom_kills:
            hit.append(f"memory: {self._oom_kills} processes were killed at the limit of {self._limits.memory_mb} MiB")
        if self._forks_refused:
            hit.append(f"pids: {self._forks_refused} processes could not be started at the limit of {self._limits.pids}")
        if self._over_disk:
            hit.append(f"disk: {self._over_disk}")
        return tuple(hit)

    # --- for the sandbox ---

    def kill_over_disk(self, detail: str) -> None:
        """End the workspace because it uses more disk than it may. Raises InfrastructureFault."""
        self._over_disk = detail
        self._kill()

    def close(self) -> None:
        """Make every call, also one under way, fail. Does not remove the container. Idempotent."""
        self._closed = True
        self._channel.close()

    def _is_harness(self, process: Process) -> bool:
        """The first process and the persistent shell, but not what they run, by whatever name it goes."""
        return process.pid == 1 or (process.pid, process.start) == self._inner

    def _kill(self) -> None:
        with faults("kill a workspace's container"):
            try:
                self._client.api.kill(self._id)
            except docker.errors.APIError as error:
                # 404 and 409: it is gone, or has ended by itself.
                if error.status_code not in {404, 409}:
                    raise

    def _give_up(self, why: str) -> Exception:
        try:
            self._client.ping()
            self._kill()
        except (InfrastructureFault, docker.errors.DockerException, requests.exceptions.RequestException) as error:
            return InfrastructureFault(FaultSource.ENGINE, f"{why}, and neither does the engine: {error}")
        self._lost = WorkspaceLost(WorkspaceEnd.SHELL_LOST, f"{why}; it was killed")
        return self._lost

    def _raise_if_ended(self) -> None:
        if self._lost or not self._channel.is_open:
            raise self._ending()

    def _exec(self, act: Callable[[str], bytes | None], path: str) -> bytes:
        self._raise_if_ended()
        if not path:
            raise FileNotFoundError(errno.ENOENT, "the path is empty")
        if "\0" in path:
            raise OSError(errno.EINVAL, "the path contains a NUL byte")
        if path == "~" or path.startswith("~/"):
            path = self._account.home + path[1:]
        # Not normalised: `x/..` is the parent of what a link x points at.
        full = path if path.startswith("/") else f"{self._workdir}/{path}"
        try:
            with faults("reach a file of a workspace"):
                try:
                    return act(full) or b""
                except docker.errors.APIError as error:
                    if not self._channel.wait_closed(0.2):
                        # The engine works, but no process can be started in the workspace (any more).
                        self._client.ping()
                        raise files.Refused(OSError(errno.EAGAIN, f"no process can be started: {error.explanation}")) from error
        except files.Refused as refused:
            raise refused.error from None
        raise self._ending()

    def _ending(self) -> Exception:
        """Why the attached streams ended: the agent's doing, the engine's, or ours."""
        if self._closed:
            return _closed()
        if self._lost is None:
            try:
                with faults("learn how a workspace ended"):
                    self._lost = self._autopsy()
            except InfrastructureFault as fault:
                return fault
        return self._lost

    def _autopsy(self) -> WorkspaceLost:
        deadline = time.monotonic() + _STOP_SECONDS
        try:
            while (state := self._client.api.inspect_container(self._id)["State"])["Running"]:
                if time.monotonic() > deadline:
                    raise InfrastructureFault(FaultSource.ENGINE, "the engine closed the connection to a running workspace")
                time.sleep(0.05)
        except docker.errors.NotFound:
            raise InfrastructureFault(FaultSource.ENGINE, "the workspace's container was removed from outside") from None
        if self._over_disk:
            return WorkspaceLost(WorkspaceEnd.DISK_BUDGET, self._over_disk)
        if state["OOMKilled"] and state["ExitCode"] == _KILLED_EXIT:
            memory = f"the workspace ran out of its {self._limits.memory_mb} MiB of memory"
            return WorkspaceLost(WorkspaceEnd.OUT_OF_MEMORY, memory)
        return WorkspaceLost(WorkspaceEnd.CONTAINER_DIED, f"the workspace's container ended with exit code {state['ExitCode']}")


def _closed() -> InfrastructureFault:
    return InfrastructureFault(FaultSource.HARNESS, "the workspace was closed while it was in use")
