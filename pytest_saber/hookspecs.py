"""Hooks of pytest-saber, for `conftest.py` and other plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_saber.model.ports import AgentFactory, Sandbox
    from pytest_saber.model.summary import GateResult, RunRecord, Summary


@pytest.hookspec(firstresult=True)
def pytest_saber_agent(config: pytest.Config) -> AgentFactory | None:
    """Make the factory of the agent under test, for the whole session; None leaves it to `--saber-agent` and `--saber-model`.

    A `saber_agent` fixture in `conftest.py` goes before this hook, and may use other fixtures.
    """


@pytest.hookspec(firstresult=True)
def pytest_saber_sandbox(config: pytest.Config, session_name: str) -> Sandbox | None:
    """Make the sandbox of this process; None gives the Docker one. Whatever it opens must carry `session_name`."""


@pytest.hookspec
def pytest_saber_run(config: pytest.Config, record: RunRecord) -> None:
    """Called on the controller for each finished run, in the order in which reports arrive."""


@pytest.hookspec
def pytest_saber_gate(config: pytest.Config, summary: Summary, gate: GateResult) -> None:
    """Called on the controller once, after the gate's decision and before any report is written."""
