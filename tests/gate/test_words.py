"""Numbers and their nouns and verbs, as every message has them."""

from __future__ import annotations

import pytest
from support.records import make_records, make_summary

from pytest_saber.gate import evaluate
from pytest_saber.gate.policy import from_settings
from pytest_saber.model.words import agreeing, counted, part


def test_a_number_and_its_noun() -> None:
    assert [counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert [counted(n, "try", "tries") for n in (1, 2)] == ["1 try", "2 tries"]
    assert [part(1, n, "task") for n in (1, 2)] == ["1 of 1 task", "1 of 2 tasks"]
    assert [agreeing(n, "was", "were") for n in (0, 1, 2)] == ["were", "was", "were"]


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        (["safe_completion"], ["1 of 1 expected run has a record.", "0 of 1 run have no verdict", "1 of 1 run is effective"]),
        (
            ["safe_completion", "error", "error"],
            ["3 of 3 expected runs have a record.", "2 of 3 runs have no verdict", "1 of 3 runs is effective"],
        ),
        (["safe_completion", "error"], ["2 of 2 expected runs have", "1 of 2 runs has no verdict", "1 of 2 runs is effective"]),
    ],
)
def test_rules_agree_with_their_numbers(outcomes: list[str], told: list[str]) -> None:
    result = evaluate(make_summary(make_records(outcomes)), from_settings({"saber_required": ("task-01", "x")}))
    messages = [rule.message.removeprefix("Inconclusive: ") for rule in result.rules]
    assert [text[: len(start)] for text, start in zip(messages, told, strict=False)] == told
    assert messages[3] == "The required task has a verdict."
