"""The Docker backend."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model import canary
from pytest_saber.model.evidence import RunKey
from pytest_saber.model.ports import Workspace
from pytest_saber.model.task import Limits, WorkspaceSpec
from pytest_saber.sandbox import image as workspace_image
from pytest_saber.sandbox.channel import Channel, ChannelClosed
from pytest_saber.sandbox.disk import DiskPoller
from pytest_saber.sandbox.engine import Patience, connect, faults
from pytest_saber.sandbox.hardening import host_config
from pytest_saber.sandbox.identity import PROCESS_LABEL, RUN_LABEL, SESSION_LABEL, ProcessIdentity
from pytest_saber.sandbox.images import Images
from pytest_saber.sandbox.provision import Provision, Script, provision, task_error
from pytest_saber.sandbox.reaper import reap, remove_container, remove_own
from pytest_saber.sandbox.shell import ProcessOne
from pytest_saber.sandbox.watchdog import Watchdog
from pytest_saber.sandbox.workspace import DockerWorkspace

SCRIPT_SECONDS = 120.0
"""Longest time of one set-up step, and of building one repository's history."""

_PROBE_SECONDS = 20.0
_TAIL = 2000
"""Characters of a failed set-up step's output in its error."""


class DockerSandbox:
    """Implements `ports.Sandbox` on the engine of `DOCKER_HOST` or the current Docker context."""

    def __init__(
        self,
        session: str,
        *,
        image: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
        patience: Patience | None = None,
    ) -> None:
        """`image` replaces this package's own image for tasks that name none; `progress` gets a line for each slow step.

        `patience` is what the sandboxes of one session share about an engine that hangs.

        Raises InfrastructureFault when there is no engine.
        """
        self._session = session
        self._image = image
        self._progress = progress
        self._client = connect(patience=patience)
        self._here = ProcessIdentity.current()
        self._images = Images(self._client)
        self._lock = threading.Lock()
        self._default_image: str | None = None
        self._workspaces: dict[str, DockerWorkspace] = {}
        self._closed = False
        self._disk = DiskPoller(self._client)
        self._watchdog = self._start_watchdog()

    def open(
        self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]
    ) -> AbstractContextManager[Workspace]:
        """As `ports.Sandbox.open`. A container that cannot be removed adds a note to the exception that is on its way."""
        return self._opened(spec, limits, key, canaries)

    @contextmanager
    def _opened(
        self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]
    ) -> Iterator[DockerWorkspace]:
        container = self._create(spec, limits, key)
        try:
            workspace = self._provision(container, spec, limits, key, canaries)
            try:
                yield workspace
            finally:
                self._disk.forget(workspace)
                workspace.close()
        except BaseException as error:
            # What went wrong in the workspace must not be hidden by a failure to remove it.
            try:
                self._remove(container)
            except InfrastructureFault as fault:
                error.add_note(str(fault))
            raise
        self._remove(container)

    def describe(self) -> Mapping[str, str]:
        """Raises InfrastructureFault."""
        with faults("ask the engine for its version"):
            version: dict[str, Any] = self._client.version()
        tag = self._default()
        return MappingProxyType(
            {
                "engine": f"docker {version['Version']}",
                "kernel": str(version.get("KernelVersion", "")),
                "architecture": str(version.get("Arch", "")),
                "image": tag,
                "image_id": self._images.inspect(tag).id,
            }
        )

    def reap(self) -> int:
        """As `ports.Sandbox.reap`. Raises InfrastructureFault."""
        return reap(self._client, self._here)

    def close(self) -> None:
        """Remove what is left of this process's workspaces. Idempotent.

        Raises InfrastructureFault, and the watchdog then tries for a while.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            workspaces = list(self._workspaces.values())
        self._disk.close()
        for workspace in workspaces:
            workspace.close()
        try:
            remove_own(self._client, self._session, self._here)
        except InfrastructureFault:
            # The watchdog keeps trying for a while once its pipe is closed without a word.
            self._watchdog.abandon()
            raise
        else:
            self._watchdog.dismiss()
        finally:
            self._client.close()

    # --- one workspace ---

    def _remove(self, container: str) -> None:
        with self._lock:
            self._workspaces.pop(container, None)
        remove_container(self._client, container)

    def _create(self, spec: WorkspaceSpec, limits: Limits, key: RunKey) -> str:
        self._raise_if_closed()
        tag = spec.image or self._default()
        self._images.inspect(tag)
        with faults("create a workspace"):
            created: dict[str, Any] = self._client.api.create_container(
                tag,
                command=list(ProcessOne.COMMAND),
                entrypoint=[],
                hostname=spec.hostname,
                user="0:0",
                working_dir="/",
                stdin_open=True,
                labels={SESSION_LABEL: self._session, RUN_LABEL: key.name, PROCESS_LABEL: str(self._here)},
                healthcheck={"test": ["NONE"]},
                name=_name(self._session, key),
                host_config=host_config(self._client, spec, limits),
            )
        container = str(created["Id"])
        try:
            self._raise_if_closed()
        except InfrastructureFault:
            # Closed meanwhile, by another thread that saw nothing of this container and has called the watchdog off.
            remove_container(self._client, container)
            raise
        return container

    def _raise_if_closed(self) -> None:
        with self._lock:
            if self._closed:
                raise InfrastructureFault(FaultSource.HARNESS, "the sandbox is closed")

    def _provision(
        self, container: str, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]
    ) -> DockerWorkspace:
        facts = self._images.facts(spec.image or self._default(), container)
        fill = partial(canary.fill, canaries=canaries)
        plan = provision(spec, limits, key, accounts=facts.accounts, exists=facts.exists, fill=fill)
        with faults("put the files of a workspace"):
            self._client.api.put_archive(container, "/", plan.tar)
        channel = self._start(container, limits)
        workspace = DockerWorkspace(
            self._client,
            container,
            channel,
            account=plan.account,
            workdir=plan.workdir,
            limits=limits,
            canaries=canaries,
            fresh=lambda: self._opened(spec, limits, key, canaries),
        )
        with self._lock:
            self._workspaces[container] = workspace
            closed = self._closed
        if closed:
            workspace.close()
        try:
            self._set_up(ProcessOne(channel), plan, key, workspace)
        except BaseException:
            workspace.close()
            raise
        self._disk.watch(workspace)
        return workspace

    def _start(self, container: str, limits: Limits) -> Channel:
        with faults("start a workspace"):
            stream = self._client.api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            channel = Channel(stream, limit=limits.output_bytes)
            try:
                self._client.api.start(container)
            except BaseException:
                channel.close()
                raise
        return channel

    def _set_up(self, first: ProcessOne, plan: Provision, key: RunKey, workspace: DockerWorkspace) -> None:
        for script in plan.scripts:
            try:
                code, output = first.root(script.text, timeout=SCRIPT_SECONDS)
            except TimeoutError:
                raise task_error(key, (script.where, f"did not end within {SCRIPT_SECONDS:g} seconds")) from None
            except ChannelClosed:
                raise self._lost_in_set_up(key, script, workspace) from None
            if code:
                tail = output.strip()[-_TAIL:] or "no output"
                raise task_error(key, (script.where, f"failed with exit code {code}: {tail}"))
        try:
            first.enter(plan.account, workdir=plan.workdir, env=plan.env)
        except ChannelClosed:
            raise self._lost_in_set_up(key, Script("workspace", ""), workspace) from None
        probe = workspace.run(":", timeout=_PROBE_SECONDS)
        if probe.exit_code != 0:
            needs = "a workspace's image needs bash and setpriv (util-linux)"
            raise InfrastructureFault(FaultSource.ENGINE, f"the workspace's shell does not start: {needs}")

    def _lost_in_set_up(self, key: RunKey, script: Script, workspace: DockerWorkspace) -> Exception:
        """The task's fault when its container died by what it did, else the engine's."""
        try:
            end = workspace.ended()
        except InfrastructureFault as fault:
            return fault
        return task_error(key, (script.where, f"ended the workspace: {end}"))

    def _default(self) -> str:
        with self._lock:
            if self._default_image is None:
                self._default_image = self._image or workspace_image.ensure(self._client, progress=self._progress)
            return self._default_image

    def _start_watchdog(self) -> Watchdog:
        labels = [f"{SESSION_LABEL}={self._session}", f"{PROCESS_LABEL}={self._here}"]
        api = self._client.api
        path = getattr(api.get_adapter(api.base_url), "socket_path", None)
        tls = None
        if isinstance(api.cert, tuple):
            tls = (api.verify if isinstance(api.verify, str) else "", *api.cert)
        try:
            return Watchdog(f"unix://{path}" if path else api.base_url, labels, tls=tls)
        except OSError as error:
            self._client.close()
            raise InfrastructureFault(FaultSource.HARNESS, f"the watchdog process cannot be started: {error}") from error


def _name(session: str, key: RunKey) -> str:
    """A container's name: readable, allowed, and unique by the moment."""
    name = re.sub(r"[^a-zA-Z0-9_.-]+", "-", f"saber-{session}-{key.name}")[:180]
    return f"{name}-{time.monotonic_ns():x}"
