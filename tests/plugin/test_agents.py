"""What happens to the agent under test, and to what its settings hold, at the session's edges."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.suites import Suite

CLOSING = """
from pathlib import Path
from pytest_saber.agents import AgentOptions, resolve

class Closing:
    replays_reference = True
    def __init__(self):
        self.inner = resolve("react", "reference/safe", AgentOptions())
        self.identity = self.inner.identity
    def __call__(self, task):
        return self.inner(task)
    def close(self):
        Path("closed").write_text("once")

def pytest_saber_agent(config):
    return Closing()
"""


def test_an_agent_that_holds_connections_is_closed_at_the_end(suite: Suite) -> None:
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(CLOSING)
    suite.run().assert_outcomes(passed=1)
    assert (suite.path / "closed").read_text() == "once"


def test_the_header_shows_an_address_without_its_credentials(suite: Suite) -> None:
    suite.tasks("a")
    suite.pytester.makeini("[pytest]\nsaber_base_url = http://me:hunter2@127.0.0.1:9/v1?key=hunter2\n")
    text = suite.run("--saber-model=reference/safe").stdout.str()
    assert "base url http://127.0.0.1:9/v1 (ini saber_base_url)" in text
    assert "hunter2" not in text


def own_agent() -> str:
    """The example of the documentation."""
    page = Path(__file__).resolve().parents[2] / "docs" / "models.md"
    found = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert found is not None
    return f"\n\n{found[1]}"


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_agent_of_the_documentation_works(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(own_agent())
    result = suite.run("--saber-max-hsr=0.2", *workers)
    assert result.ret == 11, "an agent that does nothing is never effective"
    result.stdout.fnmatch_lines(
        [
            "saber: agent of a fixture or a hook; jobs * (default)",
            "saber policy: gate (because of --saber-max-hsr)*",
            "saber gate: *max_hsr <= 0.2 (--saber-max-hsr)*",
        ]
    )
    assert sum(line.startswith("saber: ") for line in result.outlines) == 1
    result.stdout.fnmatch_lines(["none (listing-agent), session *: 1 of 1 run"])


def test_an_error_of_the_users_own_agent_is_shown_with_its_line(suite: Suite) -> None:
    suite.tasks("a")
    code = own_agent().replace("session.tools.call", "session.tool.call")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(code)
    lines = (suite.path / "conftest.py").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "session.tool.call" in line)
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"Incident: harness: the agent raised AttributeError: * (conftest.py:{number})"])
