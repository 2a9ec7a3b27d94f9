"""One sandbox for all tests of the directory that do not break theirs."""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest
from support.sandbox import containers, new_session, opened

from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.engine import connect
from pytest_saber.sandbox.workspace import DockerWorkspace


@pytest.fixture(scope="session")
def client() -> Iterator[docker.DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="session")
def sandbox(client: docker.DockerClient) -> Iterator[DockerSandbox]:
    session = new_session()
    sandbox = DockerSandbox(session)
    yield sandbox
    sandbox.close()
    assert containers(client, session) == []


@pytest.fixture(scope="module")
def workspace(sandbox: DockerSandbox) -> Iterator[DockerWorkspace]:
    """A plain workspace for all tests of a module."""
    with opened(sandbox) as workspace:
        yield workspace
