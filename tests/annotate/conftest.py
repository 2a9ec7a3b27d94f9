"""Sessions with a sandbox in memory and a semantic judge."""

from __future__ import annotations

import importlib
import pkgutil

import openai  # noqa: F401 - see `_loaded`
import pytest
from support.suites import Suite

import pytest_saber


@pytest.fixture(scope="session", autouse=True)
def _loaded() -> None:
    """pytester forgets what a session in this process imported; half-forgotten packages have classes twice."""
    for module in pkgutil.walk_packages(pytest_saber.__path__, "pytest_saber."):
        importlib.import_module(module.name)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """An empty project whose sandbox is in memory."""
    return Suite(pytester, monkeypatch)
