"""An agent of a fixture or a hook beside settings that name another one: no report names an agent that did not run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from support.suites import CONFTEST, Suite

MINE = """
import pytest
from pytest_saber.agents import AgentOptions, resolve
from pytest_saber.model.evidence import AgentIdentity

class Mine:
    replays_reference = True

    def __init__(self, model="mine/1"):
        self.inner = resolve("react", "reference/safe", AgentOptions())
        self.identity = AgentIdentity("mine", model)

    def __call__(self, task):
        inner, identity = self.inner(task), self.identity
        class One:
            run = staticmethod(inner.run)
        One.identity = identity
        return One()

"""
FIXTURE = "@pytest.fixture(scope='session')\ndef saber_agent():\n    return Mine()\n"
HOOK = "def pytest_saber_agent(config):\n    return Mine()\n"
OTHER = "--saber-model=reference/harmful"
HOW = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])


def providing(suite: Suite, code: str) -> int:
    """A conftest.py with an agent; the number of the line of its last definition."""
    text = CONFTEST + MINE + code
    (suite.path / "conftest.py").write_text(text)
    return text[: text.rindex("def ")].count("\n") + 1


def report(suite: Suite) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((suite.path / "out.json").read_text())
    return loaded


@HOW
@pytest.mark.parametrize(("code", "name"), [(FIXTURE, "fixture saber_agent"), (HOOK, "hook pytest_saber_agent")])
def test_an_option_that_names_another_agent_ends_the_session_before_any_run(
    suite: Suite, code: str, name: str, workers: tuple[str, ...]
) -> None:
    suite.tasks("a", "b")
    number = providing(suite, code) - (1 if code == FIXTURE else 0)
    instead = "let it return None" if code == HOOK else "let the fixture request saber_agent to build on the agent that"
    result = suite.run(OTHER, "--saber-max-hsr=0", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert (
        f"--saber-model: reference/harmful is not what is tested: the {name} (conftest.py:{number}) provides the agent 'mine' "
        f"with the model 'mine/1'. Leave the setting out, or {instead}"
    ) in text
    assert "Traceback" not in text
    assert suite.opened == []
    assert suite.entries("close") == []


def test_a_variable_and_an_agent_option_are_asked_for_too(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.tasks("a")
    providing(suite, FIXTURE)
    monkeypatch.setenv("SABER_MODEL", "reference/harmful")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*env SABER_MODEL: reference/harmful is not what is tested: the fixture saber_agent *"])
    monkeypatch.delenv("SABER_MODEL")
    result = suite.run("--saber-agent=react")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*--saber-agent: react is not what is tested: the fixture saber_agent *"])
    assert suite.opened == []


@pytest.mark.parametrize(
    ("code", "name", "workers"),
    [
        (FIXTURE, "fixture saber_agent", ()),
        (FIXTURE, "fixture saber_agent", ("-n", "2")),
        (HOOK, "hook pytest_saber_agent", ()),
    ],
    ids=["fixture", "fixture with xdist", "hook"],
)
def test_a_configured_model_that_is_not_used_is_told_in_every_report(
    suite: Suite, code: str, name: str, workers: tuple[str, ...]
) -> None:
    suite.tasks("a", "b")
    providing(suite, code)
    suite.pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\nsaber_model = reference/harmful\n")
    arguments = ("--saber-max-hsr=0", "--saber-json=out.json", "--saber-markdown=out.md", "--junitxml=out.xml")
    result = suite.run(*arguments, *workers)
    assert result.ret == 0
    told = f"ini saber_model: reference/harmful is not what is tested: the {name} (conftest.py:"
    result.stdout.fnmatch_lines(["mine/1 (mine), session *: 2 of 2 runs"])
    assert sum(line.startswith(told) for line in result.outlines) == 1
    found = report(suite)
    assert (found["agent"], found["model"]) == ("mine", "mine/1")
    assert (found["conditions"]["agent"], found["conditions"]["model"]) == ("mine", "mine/1")
    [note] = found["notes"]
    assert note.startswith(told)
    assert "is not what is tested: the " in (suite.path / "out.md").read_text()
    properties = {entry.get("name"): entry.get("value") for entry in ET.parse(suite.path / "out.xml").iter("property")}
    assert properties["saber.agent"] == "mine"
    assert properties["saber.model"] == "mine/1"


def test_the_header_names_the_fixture(suite: Suite) -> None:
    suite.tasks("a", folder="tasks/x")
    suite.tasks("b", folder="tasks/y")
    suite.add("tasks/y/conftest.py", MINE + FIXTURE)
    result = suite.run("--saber-model=reference/safe")
    assert result.ret == 0, "the other folder is tested with the model that was named"
    result.stdout.fnmatch_lines(["saber: agent of the fixture saber_agent (tasks/y/conftest.py:*) for 1 of 2 runs"])


def test_the_header_does_not_name_a_model_beside_a_hook(suite: Suite) -> None:
    suite.tasks("a")
    providing(suite, HOOK)
    suite.pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\nsaber_model = reference/harmful\n")
    result = suite.run()
    result.stdout.fnmatch_lines(["saber: model reference/harmful (ini saber_model); agent of a fixture or a hook; jobs *"])


@pytest.mark.parametrize(
    "code",
    [
        "@pytest.fixture(scope='session')\ndef saber_agent(saber_agent):\n    return saber_agent\n",
        "@pytest.fixture(scope='session')\ndef saber_agent(request):\n    return request.getfixturevalue('saber_agent')\n",
        "@pytest.fixture(scope='session')\ndef saber_agent(saber_agent):\n    return Mine('mine/2')\n",
        "@pytest.fixture(scope='session')\n"
        "def saber_agent(pytestconfig):\n    return Mine(pytestconfig.getoption('saber_model')[0])\n",
    ],
    ids=["builds on it", "asks for it late", "wraps it", "reads the option"],
)
def test_a_fixture_that_goes_by_the_option_goes_on_working(suite: Suite, code: str) -> None:
    suite.tasks("a")
    providing(suite, code)
    result = suite.run("--saber-model=reference/safe", "--saber-max-hsr=0")
    assert result.ret == 0
    assert "is not what is tested" not in result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--saber-model=reference/safe"], "agent reference (of the model)"),
        (["--saber-model=reference/safe", "--saber-agent=react"], "agent reference (of the model, not react of --saber-agent)"),
        (
            ["--saber-model=reference/safe", "--saber-model=scripted/none.json"],
            "agent react (default), reference for reference/safe",
        ),
    ],
)
def test_reference_models_bring_their_own_agent(suite: Suite, arguments: list[str], shown: str) -> None:
    suite.tasks("a")
    result = suite.run(*arguments)
    [line] = [line for line in result.outlines if line.startswith("saber: ")]
    assert line.split("; ")[1] == shown
