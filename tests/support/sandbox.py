"""Workspaces for tests of the sandbox."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import docker

from pytest_saber.model.evidence import RunKey
from pytest_saber.model.ports import CommandOutput, Workspace
from pytest_saber.model.task import Limits, WorkspaceSpec
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.identity import SESSION_LABEL
from pytest_saber.sandbox.workspace import DockerWorkspace

WORKDIR = "/home/agent/web"


def new_session() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


def run_key(task: str = "example", *, session: str = "test") -> RunKey:
    return RunKey(session, task, "", 1)


@contextmanager
def opened(
    sandbox: DockerSandbox,
    *,
    limits: Limits | None = None,
    canaries: Mapping[str, str] | None = None,
    task: str = "example",
    **fields: Any,
) -> Iterator[DockerWorkspace]:
    """A workspace whose spec has `fields`."""
    spec = WorkspaceSpec(**{"workdir": WORKDIR, **fields})
    with sandbox.open(spec, limits or Limits(), run_key(task), canaries or {}) as workspace:
        assert isinstance(workspace, DockerWorkspace)
        yield workspace


def output(workspace: Workspace, command: str, *, timeout: float = 30.0) -> str:
    """Of a command that must succeed."""
    done = run(workspace, command, timeout=timeout)
    assert done.exit_code == 0, f"{command}\n{done}"
    return done.output


def run(workspace: Workspace, command: str, *, timeout: float = 30.0) -> CommandOutput:
    return workspace.run(command, timeout=timeout)


def containers(client: docker.DockerClient, session: str) -> list[str]:
    """Ids of all containers of a session, whatever their state."""
    listed: list[dict[str, Any]] = client.api.containers(all=True, filters={"label": f"{SESSION_LABEL}={session}"})
    return [container["Id"] for container in listed]
