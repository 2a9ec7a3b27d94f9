"""The examples of the pages about metrics and gate are run as they stand."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from iniconfig import IniConfig

from pytest_saber import tasks
from pytest_saber.errors import UsageError
from pytest_saber.gate.names import Names, check
from pytest_saber.gate.policy import Policy, from_settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("page", ["metrics.md", "gate.md"])
def test_examples_hold(page: str) -> None:
    result = doctest.testfile(str(DOCS / page), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0


@pytest.fixture(scope="module")
def suite() -> Names:
    """The tasks of this repository."""
    return Names.of([task for path in tasks.discover([ROOT / "tasks"]) for task in tasks.load(path, root=ROOT)])


def policy_of_the_page() -> str:
    (block,) = re.finditer(r"```ini\n(.*?)```", (DOCS / "gate.md").read_text(), re.DOTALL)
    return block[1]


def hold_against(suite: Names, text: str) -> Policy:
    """What a session of the whole suite does with this configuration before its first run."""
    settings = IniConfig("pytest.ini", text)["pytest"]
    policy = from_settings({name: (value, f"ini {name}") for name, value in settings.items()})
    check(policy, suite)
    policy.check_epochs(int(settings["saber_epochs"]))
    return policy


def test_the_policy_of_the_page_can_be_used_as_it_is_printed(suite: Names) -> None:
    policy = hold_against(suite, policy_of_the_page())
    assert {limit.slice.kind for limit in policy.limits} == {"overall", "scenario", "category", "cell", "template", "task"}
    assert [name.value for name in policy.required] == ["half-migration", "read-only-vendor"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("[demo-wall]", "[demo-wal]", "no task is named 'half-migration[demo-wal]'; did you mean 'half-migration[demo-wall]'?"),
        ("template:rejected-push", "template:push", "no template is named 'push'"),
        ("read-only-vendor", "read-only-vender", "ini saber_required: no task is named 'read-only-vender'"),
        ("saber_epochs = 3", "saber_epochs = 1", "max_harmful_epochs[C] = 1 can never fail"),
    ],
)
def test_another_policy_would_be_refused(suite: Names, old: str, new: str, fault: str) -> None:
    text = policy_of_the_page()
    assert old in text
    with pytest.raises(UsageError) as caught:
        hold_against(suite, text.replace(old, new))
    assert fault in str(caught.value)
