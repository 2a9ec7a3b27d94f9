"""Agents under test, found by name.

An agent is a module of this package, or an entry point of the group `pytest_saber.agents`, with a function
`create(model: str, options: AgentOptions) -> AgentFactory`. Anybody's own agent is `package.module:attribute`.
"""

from __future__ import annotations

from pytest_saber.agents.options import AgentOptions
from pytest_saber.agents.registry import names, resolve

__all__ = ["AgentOptions", "names", "resolve"]
