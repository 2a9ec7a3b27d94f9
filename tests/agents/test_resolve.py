"""Finding the agent under test: by model string, by name, by import path; every mistake is told before a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.values import task

from pytest_saber.agents import AgentOptions, names, resolve
from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import AgentIdentity


def test_the_package_s_agents_are_found_by_name() -> None:
    assert {"react", "reference"} <= set(names())
    assert "options" not in names()


@pytest.mark.parametrize("agent", ["react", "reference"])
def test_a_reference_model_takes_the_reference_agent(agent: str) -> None:
    factory = resolve(agent, "reference/harmful:twice", AgentOptions())
    assert factory.identity == AgentIdentity("reference", "reference/harmful:twice")


@pytest.mark.parametrize(
    ("agent", "model", "message"),
    [
        ("reakt", "openai/x", "--saber-agent=reakt: did you mean 'react'? known agents are "),
        ("options", "openai/x", "--saber-agent=options: known agents are "),
        (
            "react",
            "reference/safety",
            "--saber-model=reference/safety: the reference agent takes reference/safe, reference/harmful, reference/none",
        ),
        ("react", "reference/safety", "did you mean 'reference/safe'?"),
        ("react", "reference/none:x", "--saber-model=reference/none:x"),
        ("reference", "openai/gpt", "--saber-model=openai/gpt: the reference agent takes"),
        (
            "no_such_module:x",
            "",
            "--saber-agent=no_such_module:x: cannot import 'no_such_module': No module named 'no_such_module';"
            " for a module of this project set pytest's ini value `pythonpath = .`",
        ),
        ("my_agent:mak", "", "--saber-agent=my_agent:mak: 'my_agent' has no 'mak'; did you mean 'make'?"),
        (
            "my_agent:Factory",
            "",
            "--saber-agent=my_agent:Factory: Factory is a class whose objects are factories of agents; name an object of it, "
            "such as factory in `factory = Factory()`",
        ),
        (
            "my_agent:NUMBER",
            "",
            "--saber-agent=my_agent:NUMBER: expected a factory of agents (called with the task), found int",
        ),
    ],
)
def test_mistakes_are_usage_errors_with_a_suggestion(agent: str, model: str, message: str, user_module: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(agent, model, AgentOptions())
    assert message in str(caught.value)


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's module with agents, importable as `my_agent`."""
    path = tmp_path / "my_agent.py"
    path.write_text(
        """
from pytest_saber.model.evidence import AgentIdentity, Termination
from pytest_saber.model.ports import AgentResult
from pytest_saber.model.terms import TerminationReason

NUMBER = 3

class Factory:
    identity = AgentIdentity("quiet", "own")

    def __call__(self, task):
        return Quiet(task)

class Quiet:
    def __init__(self, task):
        self.task = task
    identity = property(lambda self: AgentIdentity("quiet", "own"))
    def run(self, session):
        return AgentResult("nothing to do", Termination(TerminationReason.ANSWERED))

def make(task):
    return Quiet(task)

class Factory:
    identity = AgentIdentity("factory", "own")
    def __call__(self, task):
        return Quiet(task)

class nested:
    factory = Factory()
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_agent", raising=False)
    return path


@pytest.mark.parametrize(
    ("attribute", "identity"),
    [
        ("make", AgentIdentity("my_agent:make", "own/model")),
        ("Quiet", AgentIdentity("my_agent:Quiet", "own/model")),
        ("nested.factory", AgentIdentity("factory", "own")),
    ],
)
def test_a_user_s_agent_is_imported(user_module: Path, attribute: str, identity: AgentIdentity) -> None:
    factory = resolve(f"my_agent:{attribute}", "own/model", AgentOptions())
    assert factory.identity == identity
    assert factory(task()).identity == AgentIdentity("quiet", "own")
