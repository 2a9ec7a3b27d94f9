"""Who provides the agent under test, and what is to be said where settings name another one.

A fixture or a hook goes before the options that choose an agent. An option that a person typed is then not dropped without
a word: a session that was asked about one agent must not answer about another.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_saber.pytest_glue.collection import AGENT, fixture_definitions
from pytest_saber.pytest_glue.settings import Settings, Value

if TYPE_CHECKING:
    from pytest_saber.model.evidence import AgentIdentity

HOOK = "pytest_saber_agent"
REFERENCE = "reference/"


@dataclass(frozen=True, slots=True)
class Unused:
    """A setting that names an agent which is not the one under test."""

    value: Value
    provider: str
    agent: AgentIdentity

    @property
    def asked_for(self) -> bool:
        """Whether a person asked for it for this session, on the command line or in the environment."""
        return not self.value.origin.startswith("ini ")

    def __str__(self) -> str:
        given = ", ".join(self.value.lines)
        hooked = self.provider.startswith("the hook ")
        own = "let the fixture request saber_agent to build on the agent that settings name"
        instead = "let it return None" if hooked else own
        return (
            f"{self.value.origin}: {given} is not what is tested: {self.provider} provides the agent {self.agent.agent!r} "
            f"with the model {self.agent.model!r}. Leave the setting out, or {instead}"
        )


def unused(settings: Settings, provider: str, agent: AgentIdentity) -> list[Unused]:
    """The settings that were given and that `agent`, which `provider` made without them, does not go by."""
    model, name = settings["model"], settings["agent"]
    found = [model] if model.text and agent.model not in model.lines else []
    found += [name] if not name.is_default and agent.agent != name.text else []
    return [Unused(value, provider, agent) for value in found]


def hooks(config: pytest.Config) -> list[str]:
    """Where `pytest_saber_agent` is implemented."""
    return [_place(found.function, config.rootpath) for found in config.hook.pytest_saber_agent.get_hookimpls()]


def hook_named(config: pytest.Config) -> str:
    """`the hook pytest_saber_agent (conftest.py:3)`."""
    return f"the hook {HOOK} ({', '.join(hooks(config))})"


def overriding(item: pytest.Item) -> Any | None:
    """The fixture of the user's own that gives an item its agent without the one that settings name; None otherwise."""
    definitions = fixture_definitions(item).get(AGENT, ())
    own = definitions[1:]
    # The first one is this package's. An override that requests its own name is given the one below it.
    return None if all(AGENT in definition.argnames for definition in own) else definitions[-1]


def fixture_named(definition: Any, root: Path) -> str:
    """`the fixture saber_agent (conftest.py:12)`."""
    return f"the fixture {AGENT} ({_place(definition.func, root)})"


def overrides(items: Iterable[pytest.Item], root: Path) -> dict[str, int]:
    """Each fixture that provides an agent of its own, and for how many of `items`."""
    counts: dict[str, int] = {}
    for item in items:
        definition = overriding(item)
        if definition is not None:
            name = fixture_named(definition, root)
            counts[name] = counts.get(name, 0) + 1
    return counts


def agent_named(settings: Settings) -> str:
    """The agent that settings name: reference models bring their own."""
    name, models = settings.text("agent"), settings["model"].lines
    own = bool(models) and all(model.startswith(REFERENCE) for model in models) and ":" not in name
    return "reference" if own else name


def _place(function: Any, root: Path) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return str(getattr(function, "__module__", "") or type(function).__module__)
    path = Path(code.co_filename)
    return f"{path.relative_to(root) if path.is_relative_to(root) else path}:{code.co_firstlineno}"
