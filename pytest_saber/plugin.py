"""The pytest plugin (entry point `saber`).

Loaded with every pytest run, so it imports pytest and the standard library only; everything else is imported once a task
has been collected.
"""

from __future__ import annotations

import os

import pytest

from pytest_saber.pytest_glue import beforehand as _beforehand
from pytest_saber.pytest_glue import idle as _idle
from pytest_saber.pytest_glue import settings as _settings
from pytest_saber.pytest_glue.collection import markers
from pytest_saber.pytest_glue.controller import Controller
from pytest_saber.pytest_glue.executor import EXECUTOR, Executor
from pytest_saber.pytest_glue.fixtures import saber_agent, saber_epoch, saber_run, saber_task, saber_workspace
from pytest_saber.pytest_glue.progress import ProgressLine
from pytest_saber.pytest_glue.records import Ledger

__all__ = ["saber_agent", "saber_epoch", "saber_run", "saber_task", "saber_workspace"]


def pytest_addoption(parser: pytest.Parser) -> None:
    _settings.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_saber import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    for marker in markers():
        config.addinivalue_line("markers", marker)
    settings = _settings.resolve(config, os.environ)
    progress = ProgressLine(config)
    executor = Executor(config, settings, Ledger(), progress)
    config.stash[EXECUTOR] = executor
    config.pluginmanager.register(executor, "saber-executor")
    if not executor.is_worker:
        _idle.check(config, settings)
        config.pluginmanager.register(Controller(config, settings, executor, progress), "saber-controller")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    executor = session.config.stash[EXECUTOR]
    if not executor.is_worker:
        _beforehand.check_folders(session.config, executor.settings)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"saber: {text}" for text in _beforehand.missing_folders(config, config.stash[EXECUTOR].settings)]


def pytest_unconfigure(config: pytest.Config) -> None:
    executor = config.stash.get(EXECUTOR, None)
    if executor is not None:
        executor.close()
        executor.termination.restore()
