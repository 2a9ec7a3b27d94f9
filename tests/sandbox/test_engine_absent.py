"""Without an engine: a fault in words, and no socket left to the garbage collector."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import docker.api.client
import pytest
import requests

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.sandbox import engine


def test_a_missing_engine_is_a_fault_and_leaks_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InfrastructureFault, match=r"cannot connect to the Docker engine: .*No such file") as caught:
            engine.connect()
        assert caught.value.source is FaultSource.ENGINE
        del caught
        # pytest turns a socket that is collected open into an error of this test.
        gc.collect()


def test_an_engine_that_this_user_may_not_use() -> None:
    refused = requests.exceptions.ConnectionError("aborted")
    refused.__cause__ = PermissionError(13, "Permission denied")
    with pytest.raises(InfrastructureFault) as caught, engine.faults("connect to the Docker engine"):
        raise refused
    assert str(caught.value) == (
        "cannot connect to the Docker engine: [Errno 13] Permission denied (this user may not use the Docker engine; "
        "`pytest-saber doctor` says how to)"
    )


def test_an_engine_behind_ssh_without_the_package_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker.api.client, "SSHHTTPAdapter", None, raising=False)
    monkeypatch.delattr(docker.api.client, "SSHHTTPAdapter")
    monkeypatch.setenv("DOCKER_HOST", "ssh://agent@127.0.0.1")
    with pytest.raises(
        InfrastructureFault, match="cannot connect to the Docker engine: Install paramiko package to enable ssh"
    ):
        engine.connect()
