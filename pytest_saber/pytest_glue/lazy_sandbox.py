"""A sandbox that connects to its engine when the first run needs it, so that a missing engine is an incident of that run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pytest_saber.model.evidence import RunKey
from pytest_saber.model.ports import Sandbox, Workspace
from pytest_saber.model.task import Limits, WorkspaceSpec


class LazySandbox:
    """Implements `ports.Sandbox` by another one. Connecting is tried anew by each run until it succeeds."""

    def __init__(self, connect: Callable[[], Sandbox]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._sandbox: Sandbox | None = None

    @contextmanager
    def open(self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]) -> Iterator[Workspace]:
        """As `ports.Sandbox.open`. Raises InfrastructureFault also when there is no engine to connect to."""
        with self._connected().open(spec, limits, key, canaries) as workspace:
            yield workspace

    def describe(self) -> Mapping[str, str]:
        """As `ports.Sandbox.describe`. Raises InfrastructureFault."""
        return self._connected().describe()

    def reap(self) -> int:
        """As `ports.Sandbox.reap`, which connecting has done once already. Raises InfrastructureFault."""
        return self._connected().reap()

    def close(self) -> None:
        """Raises InfrastructureFault when what is left cannot be removed."""
        with self._lock:
            if self._sandbox is not None:
                self._sandbox.close()

    def _connected(self) -> Sandbox:
        """Connected, and rid of what dead sessions left. Raises InfrastructureFault."""
        with self._lock:
            if self._sandbox is None:
                sandbox = self._connect()
                sandbox.reap()
                self._sandbox = sandbox
            return self._sandbox
