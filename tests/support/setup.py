"""What the tests of the set-up share: the checkout, and ways to run its scripts and commands for real."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = (*sorted((ROOT / "scripts").iterdir()), ROOT / ".ci" / "run")


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def execute(
    command: Sequence[str | Path], *, cwd: Path = ROOT, env: Mapping[str, str] | None = None, user: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command without the coverage measurement of the session around it. stderr goes where stdout goes."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST_"))}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, **(env or {})},
        user=user,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def saber(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the `pytest-saber` command, measured."""
    command = [sys.executable, "-c", "import sys; from pytest_saber.cli import main; sys.exit(main())", *arguments]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=300, check=False)
