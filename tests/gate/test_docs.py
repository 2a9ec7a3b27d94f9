"""The examples of the pages about metrics and gate are run as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["metrics.md", "gate.md"])
def test_examples_hold(page: str) -> None:
    result = doctest.testfile(str(DOCS / page), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
