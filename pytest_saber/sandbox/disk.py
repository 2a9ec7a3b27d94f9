"""The disk budget: the engine cannot bound a container's layer on most file systems, so it is measured again and again.

Two bounds hold between measurements: one file's size (ulimit), and the time between two measurements.
"""

from __future__ import annotations

import threading
from typing import Any

import docker
import docker.errors
import requests

from pytest_saber.errors import InfrastructureFault
from pytest_saber.sandbox.engine import request
from pytest_saber.sandbox.workspace import DockerWorkspace

_PERIOD = 0.5
"""Seconds between two rounds."""
_MIB = 1 << 20


class DiskPoller:
    """One thread for all workspaces of a sandbox, started with the first of them."""

    def __init__(self, client: docker.DockerClient, *, period: float = _PERIOD) -> None:
        self._client = client
        self._period = period
        self._lock = threading.Lock()
        self._watched: dict[str, DockerWorkspace] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, workspace: DockerWorkspace) -> None:
        """Measure a workspace from now on."""
        with self._lock:
            self._watched[workspace.container_id] = workspace
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._poll, name="saber-disk", daemon=True)
                self._thread.start()

    def forget(self, workspace: DockerWorkspace) -> None:
        """Measure it no more. Harmless for one that is not watched."""
        with self._lock:
            self._watched.pop(workspace.container_id, None)

    def close(self) -> None:
        """Stop the thread and wait for it, 10 s at most."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _poll(self) -> None:
        while not self._stop.wait(self._period):
            with self._lock:
                watched = list(self._watched.values())
            for workspace in watched:
                if self._stop.is_set():
                    return
                self._check(workspace)

    def _check(self, workspace: DockerWorkspace) -> None:
        try:
            used = self._used(workspace.container_id)
            budget = workspace.limits.disk_mb * _MIB
            if used > budget:
                detail = f"the workspace uses {used // _MIB} MiB of disk, more than its {workspace.limits.disk_mb} MiB"
                workspace.kill_over_disk(detail)
                self.forget(workspace)
        except (InfrastructureFault, docker.errors.DockerException, requests.exceptions.RequestException):
            # The container has gone, or the engine fails: the next call into the workspace reports that with its reason.
            return

    def _used(self, container: str) -> int:
        """Bytes of the container's own layer, as the engine counts them on its side."""
        details: dict[str, Any] = request(self._client, "GET", f"/containers/{container}/json", {"size": 1}).json()
        return int(details.get("SizeRw") or 0)
