"""The pytest plugin (entry point `saber`).

Loaded with every pytest run, so it imports pytest and the standard library only; everything else is imported once a task
has been collected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator

import pytest

from pytest_saber.pytest_glue import beforehand as _beforehand
from pytest_saber.pytest_glue import idle as _idle
from pytest_saber.pytest_glue import settings as _settings
from pytest_saber.pytest_glue import stale as _stale
from pytest_saber.pytest_glue.collection import markers
from pytest_saber.pytest_glue.controller import Controller
from pytest_saber.pytest_glue.executor import EXECUTOR, Executor
from pytest_saber.pytest_glue.fixtures import saber_agent, saber_epoch, saber_run, saber_task, saber_workspace
from pytest_saber.pytest_glue.progress import ProgressLine
from pytest_saber.pytest_glue.records import Ledger

_DECIDED: pytest.StashKey[bool] = pytest.StashKey()
_PARTS = ("saber-executor", "saber-controller")

__all__ = ["saber_agent", "saber_epoch", "saber_run", "saber_task", "saber_workspace"]


def pytest_addoption(parser: pytest.Parser) -> None:
    _settings.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_saber import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    options = early_config.known_args_namespace
    try:
        result = yield
    except BaseException as error:
        _stale.replace(early_config, options, os.environ, _stale.in_words(error))
        raise
    wrong = _stale.unknown_option(parser, args)
    if wrong:
        _stale.replace(early_config, options, os.environ, f"{_stale.NOT_BEGUN}: {wrong}")
        if wrong.startswith(_stale.PREFIX):
            raise pytest.UsageError(wrong)
    return result


def pytest_configure(config: pytest.Config) -> None:
    for marker in markers():
        config.addinivalue_line("markers", marker)
    is_worker = hasattr(config, "workerinput")
    try:
        _refuse_half_a_plugin(config)
        settings = _settings.resolve(config, os.environ)
        if not is_worker:
            _idle.check(config, settings)
    except pytest.UsageError as error:
        if not is_worker:
            _stale.replace(config, config.option, os.environ, _stale.in_words(error), ours=True)
        raise
    progress = ProgressLine(config)
    executor = Executor(config, settings, Ledger(), progress)
    config.stash[EXECUTOR] = executor
    config.pluginmanager.register(executor, _PARTS[0])
    if not is_worker:
        config.pluginmanager.register(Controller(config, settings, executor, progress), _PARTS[1])


def _refuse_half_a_plugin(config: pytest.Config) -> None:
    """Raises pytest.UsageError: without one of its parts a session would run agents and decide nothing."""
    for name in _PARTS:
        if config.pluginmanager.is_blocked(name):
            raise pytest.UsageError(f"-p no:{name}: this is a part of pytest-saber; -p no:saber turns off the whole of it")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    executor = session.config.stash[EXECUTOR]
    if not executor.is_worker:
        _beforehand.check_folders(session.config, executor.settings)


def pytest_collection_finish(session: pytest.Session) -> None:
    option = session.config.option
    if option.setuponly and not option.setupplan and session.config.stash[EXECUTOR].suite.selected:
        raise pytest.UsageError(
            "--setup-only: agents would run and no test would fail of what they did; leave it out, or use --setup-plan, "
            "which runs none"
        )


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"saber: {text}" for text in _beforehand.missing_folders(config, config.stash[EXECUTOR].settings)]


def pytest_saber_gate(config: pytest.Config) -> None:
    config.stash[_DECIDED] = True


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    if hasattr(config, "workerinput") or config.getoption("collectonly"):
        return
    suite = config.stash[EXECUTOR].suite
    if exitstatus == pytest.ExitCode.USAGE_ERROR:
        # pytest calls this while the error is on its way to its own report of it.
        error = sys.exception()
        reason = _stale.in_words(error) if error is not None else "the session was ended as one that cannot be done"
        _stale.replace(config, config.option, os.environ, reason, ours=suite.selected > 0)
    elif _DECIDED not in config.stash:
        _stale.replace(config, config.option, os.environ, "no task was selected in this session", ours=suite.collected > 0)


def pytest_unconfigure(config: pytest.Config) -> None:
    executor = config.stash.get(EXECUTOR, None)
    if executor is not None:
        executor.close()
        executor.termination.restore()
