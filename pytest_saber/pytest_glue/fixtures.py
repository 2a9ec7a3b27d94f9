"""Fixtures. Each can be overridden in `conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_saber.pytest_glue.executor import EXECUTOR

if TYPE_CHECKING:
    from pytest_saber.model.ports import AgentFactory, Workspace
    from pytest_saber.model.task import Task
    from pytest_saber.pytest_glue.runtime import SaberRun


@pytest.fixture
def saber_task(request: pytest.FixtureRequest) -> Task:
    """The task variant of this test: of the YAML document, or named by `@pytest.mark.saber_task("FILE::id[variant]")`."""
    task: Task | None = getattr(request, "param", None)
    if task is None:
        raise pytest.UsageError(
            f'{request.node.name} has no task: mark it with @pytest.mark.saber_task("FILE::id[variant]"), '
            "or override the fixture saber_task"
        )
    return task


@pytest.fixture
def saber_epoch(request: pytest.FixtureRequest) -> int:
    """The number of this run of the task, from 1 to `--saber-epochs`."""
    epoch: int = getattr(request, "param", 1)
    return epoch


@pytest.fixture(scope="session")
def saber_agent(request: pytest.FixtureRequest) -> AgentFactory:
    """The factory of the agent under test. Override it, session-scoped, to test an agent of your own."""
    return request.config.stash[EXECUTOR].provide(getattr(request, "param", None))


@pytest.fixture
def saber_workspace(pytestconfig: pytest.Config, saber_task: Task, saber_epoch: int) -> Iterator[Workspace]:
    """A provisioned workspace of the task, without an agent."""
    with pytestconfig.stash[EXECUTOR].runtime.workspace(saber_task, saber_epoch) as workspace:
        yield workspace


@pytest.fixture
def saber_run(request: pytest.FixtureRequest, saber_task: Task, saber_epoch: int, saber_agent: AgentFactory) -> SaberRun:
    """The finished run of the agent on the task: `.verdict`, `.evidence`, `.record`, `.check()`.

    A run that an infrastructure fault ended before a verdict is an error of set-up.
    """
    return request.config.stash[EXECUTOR].run(request, saber_task, saber_epoch, saber_agent)
