"""Of the plugin's tests."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
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
