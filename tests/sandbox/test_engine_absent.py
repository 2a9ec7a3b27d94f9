"""Without an engine: a fault in words, and no socket left to the garbage collector."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest

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
