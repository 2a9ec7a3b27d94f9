"""Containers for the tests of the state readers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import docker
import pytest
from support.sandbox import new_session
from support.state import WORKDIR, Box

from pytest_saber.sandbox import image
from pytest_saber.sandbox.docker import DockerSandbox


@pytest.fixture(scope="session")
def client() -> Iterator[docker.DockerClient]:
    connected = docker.from_env()
    yield connected
    connected.close()


@pytest.fixture(scope="session")
def workspace_image(client: docker.DockerClient) -> str:
    return image.ensure(client, progress=print)


@pytest.fixture(scope="session")
def sandbox() -> Iterator[DockerSandbox]:
    sandbox = DockerSandbox(new_session())
    yield sandbox
    sandbox.close()


@pytest.fixture
def box(client: docker.DockerClient, workspace_image: str) -> Iterator[Box]:
    """A container as agents get it, but for root's powers, which the set-up of tests needs. A volume lies at /data."""
    container = client.containers.run(
        workspace_image,
        ["sleep", "infinity"],
        user="root",
        detach=True,
        network_mode="none",
        cap_drop=["ALL"],
        cap_add=["CHOWN", "DAC_OVERRIDE", "FOWNER", "MKNOD", "SETUID", "SETGID", "SETFCAP", "KILL", "NET_BIND_SERVICE"],
        labels={"pytest-saber.session": f"state-{uuid.uuid4().hex}"},
        tmpfs={"/mnt/fast": ""},
        volumes=["/data"],
        stop_signal="SIGKILL",
    )
    try:
        created = Box(client, container)
        created.run(f"mkdir -p {WORKDIR} && chmod 777 /data /mnt/fast && chown -R agent:agent /home/agent", user="root")
        yield created
    finally:
        container.remove(force=True, v=True)
