"""The `pytest-saber` command."""

from __future__ import annotations

import sys


def main() -> int:
    """Entry point of the console script."""
    from pytest_saber.cli.main import run

    return run(sys.argv[1:])
