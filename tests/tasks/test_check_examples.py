"""Every check is documented with one example, and the example is that check."""

from __future__ import annotations

import pytest

from pytest_saber.model.checks import VOCABULARY
from pytest_saber.tasks.document import parse
from pytest_saber.tasks.markdown import markdown
from pytest_saber.tasks.schema_checks import CheckForm


@pytest.mark.parametrize("name", VOCABULARY)
def test_the_example_of_a_check_loads_as_that_check(name: str) -> None:
    example = VOCABULARY[name].EXAMPLE
    tree, problems = parse(example, "example.yaml")
    assert problems == ()
    assert type(CheckForm.model_validate(tree.plain()).build()) is VOCABULARY[name]


def test_the_page_shows_every_example_in_its_check_s_row() -> None:
    rows = {line.split("`")[1]: line for line in markdown().splitlines() if line.startswith("| `") and line.count("|") >= 5}
    for name, check in VOCABULARY.items():
        assert rows[name].endswith(f"| `{check.EXAMPLE}` |")
