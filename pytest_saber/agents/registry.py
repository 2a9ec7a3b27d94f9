"""From `--saber-agent` and `--saber-model` to a factory of agents, before any run starts."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, cast

import pytest_saber.agents
from pytest_saber.agents.options import AgentOptions
from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.ports import Agent, AgentFactory
from pytest_saber.model.task import Task

GROUP = "pytest_saber.agents"
REFERENCE = "reference/"


def resolve(agent: str, model: str, options: AgentOptions) -> AgentFactory:
    """The factory of the agent under test. Raises UsageError for anything that would keep every run from starting."""
    if ":" in agent:
        return _imported(agent, model)
    creator = _creator(agent)
    # A wrong name is told all the same, rather than when a model is first tried.
    return (_creator("reference") if model.startswith(REFERENCE) else creator)(model, options)


def names() -> list[str]:
    """The agents that can be named: the package's own and those of installed entry points."""
    own = [module.name.replace("_", "-") for module in pkgutil.iter_modules(pytest_saber.agents.__path__)]
    return sorted({name for name in own if _own(name)} | {point.name for point in entry_points(group=GROUP)})


def _creator(agent: str) -> Callable[[str, AgentOptions], AgentFactory]:
    own = _own(agent)
    if own is not None:
        return own
    for point in entry_points(group=GROUP, name=agent):
        try:
            return cast(Callable[[str, AgentOptions], AgentFactory], point.load())
        except (ImportError, AttributeError) as error:
            raise UsageError(f"--saber-agent={agent}: its entry point {point.value} cannot be loaded: {error}") from error
    close = difflib.get_close_matches(agent, names(), n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    raise UsageError(
        f"--saber-agent={agent}: {hint}known agents are {', '.join(names())}, or package.module:attribute of your own"
    )


def _own(agent: str) -> Callable[[str, AgentOptions], AgentFactory] | None:
    module_name = agent.replace("-", "_")
    if module_name not in {module.name for module in pkgutil.iter_modules(pytest_saber.agents.__path__)}:
        return None
    module = importlib.import_module(f"{pytest_saber.agents.__name__}.{module_name}")
    return getattr(module, "create", None)


class CallableFactory:
    """A user's function or class that takes the task and returns the agent."""

    def __init__(self, make: Callable[[Task], Agent], identity: AgentIdentity) -> None:
        self._make = make
        self._identity = identity

    @property
    def identity(self) -> AgentIdentity:
        """As the option names it. An agent may have another one, which then counts for its run."""
        return self._identity

    def __call__(self, task: Task) -> Agent:
        """What the user's function returns for the task. Raises what it raises."""
        return self._make(task)


def _imported(agent: str, model: str) -> AgentFactory:
    module_name, _, path = agent.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]
        hint = "; for a module of this project set pytest's ini value `pythonpath = .`" if missing else ""
        raise UsageError(f"--saber-agent={agent}: cannot import '{module_name}': {error}{hint}") from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            close = difflib.get_close_matches(name, dir(found), n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise UsageError(f"--saber-agent={agent}: '{module_name}' has no '{path}'{hint}") from None
    if not callable(found):
        raise UsageError(
            f"--saber-agent={agent}: expected a factory of agents (called with the task), found {type(found).__name__}"
        )
    if isinstance(found, type) and "__call__" in dir(found) and not hasattr(found, "run"):
        raise UsageError(
            f"--saber-agent={agent}: {found.__name__} is a class whose objects are factories of agents; name an object of it, "
            f"such as factory in `factory = {found.__name__}()`"
        )
    if not isinstance(found, type) and isinstance(getattr(found, "identity", None), AgentIdentity):
        return cast(AgentFactory, found)
    return CallableFactory(found, AgentIdentity(agent, model))
