"""Of the plugin's tests."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from support.docker_sessions import Project
from support.engine_proxy import Proxy, engine_at
from support.suites import Suite

import pytest_saber


@pytest.fixture(scope="session", autouse=True)
def _loaded() -> None:
    """pytester forgets what a session in this process imported; half-forgotten packages have classes twice."""
    for module in pkgutil.walk_packages(pytest_saber.__path__, "pytest_saber."):
        if not any(part in module.name for part in (".cli", ".judge", ".runner", ".sandbox")):
            importlib.import_module(module.name)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """An empty project whose sandbox is in memory."""
    return Suite(pytester, monkeypatch)


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    """The engine itself, whatever a test makes of `DOCKER_HOST`."""
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def engine(tmp_path: Path, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """What the session takes for its engine."""
    path = tmp_path / "engine.sock"
    with engine_at(path, client) as proxy:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        yield proxy


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, client: docker.DockerClient) -> Project:
    """An empty project whose sandbox is the default one."""
    return Project(pytester, monkeypatch, client)
