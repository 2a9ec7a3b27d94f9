"""What the plugin costs a session without a task."""

from __future__ import annotations

import pytest
from support.suites import Suite

HEAVY = (
    "docker",
    "yaml",
    "pydantic",
    "openai",
    "anthropic",
    "scipy",
    "numpy",
    "dulwich",
    "tree_sitter",
    "requests",
    "junitparser",
)

REPORT = f"""
import sys

def pytest_unconfigure(config):
    loaded = sorted(name for name in {HEAVY!r} if name in sys.modules)
    print("HEAVY", loaded)
    print("OURS", sorted(name for name in sys.modules if name.startswith("pytest_saber") and name.count(".") == 1))
"""


@pytest.mark.parametrize(
    "ini",
    ["", "saber_model = openai/some-model\nsaber_max_hsr = 0.2\nsaber_baseline = none.json\n"],
    ids=["bare", "configured"],
)
def test_a_session_without_a_task_loads_nothing_heavy(suite: Suite, ini: str) -> None:
    suite.add("conftest.py", REPORT)
    suite.add("config.yaml", "a: 1\n")
    suite.add("test_plain.py", "def test_plain(): pass\n")
    suite.pytester.makeini(f"[pytest]\naddopts = -p no:hypothesispytest -p no:anyio\n{ini}")
    result = suite.run("-s", fresh=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["HEAVY []"])


def test_loading_the_plugin_imports_its_glue_only(suite: Suite) -> None:
    suite.add("conftest.py", REPORT)
    suite.add("test_plain.py", "def test_plain(): pass\n")
    result = suite.run("-s", fresh=True)
    ours = [f"pytest_saber.{name}" for name in ("errors", "hookspecs", "model", "plugin", "pytest_glue")]
    assert f"OURS {ours!r}" in result.outlines


def test_signals_of_a_session_without_a_task_are_its_own(suite: Suite) -> None:
    suite.add("test_plain.py", "import signal\ndef test_plain(): assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n")
    suite.run(fresh=True).assert_outcomes(passed=1)
