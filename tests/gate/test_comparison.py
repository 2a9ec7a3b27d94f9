"""Several models of one session, task by task."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.records import AGENT, make_record, make_records, make_summary

from pytest_saber.gate.comparison import compare_models, holm
from pytest_saber.gate.policy import from_settings
from pytest_saber.gate.rules import evaluate
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import ModelComparison, ModelRow, RunRecord
from pytest_saber.model.terms import Scenario

SAFE, HARMFUL, IDLE = "safe_completion", "harmful_completion", "incapable"


def by(model: str, outcomes: str, **fields: Any) -> Sequence[RunRecord]:
    """One run a task: `.` safe, `x` harmful, `-` incapable, `e` without a verdict."""
    names = {".": SAFE, "x": HARMFUL, "-": IDLE, "e": "error"}
    return make_records([names[char] for char in outcomes], agent=AgentIdentity("react", model), **fields)


def compared(*runs: Sequence[RunRecord]) -> ModelComparison:
    everything = [run for part in runs for run in part]
    found = compare_models(make_summary(everything))
    assert found is not None
    return found


def row(comparison: ModelComparison, model: str, part: str = "") -> ModelRow:
    return next(row for row in comparison.rows if (row.model, row.slice) == (model, part))


def test_one_model_is_not_compared() -> None:
    assert compare_models(make_summary(make_records([SAFE, HARMFUL]))) is None
    assert compare_models(make_summary([])) is None


def test_by_hand() -> None:
    """The example of docs/gate.md."""
    found = compared(by("a", "x...x."), by("b", "xxxx.."), by("c", "xxxxxx"))
    assert found.reference == "a"
    assert [line.model for line in found.rows] == ["a", "b", "c"]
    b, c = row(found, "b"), row(found, "c")
    assert b.change == pytest.approx(1 / 3)
    assert c.change == pytest.approx(2 / 3)
    assert (b.p, c.p) == (3 / 8, 1 / 16)
    assert (b.adjusted, c.adjusted) == (3 / 8, 1 / 8)
    assert (b.tasks, b.templates, b.runs, b.reference_runs) == (6, 6, 6, 6)
    assert (b.unmatched_runs, b.unmatched_reference_runs, b.note) == (0, 0, "")
    assert row(found, "a").change is None


@given(st.text("x.", min_size=4, max_size=12), st.data())
def test_agrees_with_scipy(first: str, data: st.DataObject) -> None:
    """McNemar's mid-p test from the binomial distribution, and the interval of the paired t-test."""
    second = data.draw(st.text("x.", min_size=len(first), max_size=len(first)))
    line = row(compared(by("a", first), by("b", second)), "b")
    changes = [(new == "x") - (old == "x") for old, new in zip(first, second, strict=True)]
    up, down = changes.count(1), changes.count(-1)
    binomial = stats.binom(up + down, 0.5)
    low_side, high_side = (binomial.sf(n - 1) - binomial.pmf(n) / 2 for n in (up, down))
    assert line.p == pytest.approx(min(1.0, 2 * min(low_side, high_side)))
    if len(set(changes)) > 1:
        interval = stats.ttest_1samp(changes, 0).confidence_interval()
        assert line.low == pytest.approx(max(-1.0, interval.low), abs=1e-6)
        assert line.high == pytest.approx(min(1.0, interval.high), abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_test_of_bonferroni(ps: list[float]) -> None:
    """A hypothesis is rejected when every set of hypotheses with it is: its p value is the largest of theirs."""
    indices = range(len(ps))
    sets = [chosen for n in range(1, len(ps) + 1) for chosen in itertools.combinations(indices, n)]
    closed = [
        max(min(1.0, len(chosen) * min(ps[i] for i in chosen)) for chosen in sets if index in chosen) for index in indices
    ]
    assert holm(ps) == pytest.approx(closed)


def test_runs_of_one_model_alone_are_counted_and_not_compared() -> None:
    line = row(compared(by("a", "..-x"), by("b", "x-x")), "b")
    assert (line.tasks, line.runs, line.reference_runs) == (1, 1, 1)
    assert line.change == 1.0
    assert (line.unmatched_runs, line.unmatched_reference_runs) == (1, 2)
    assert line.hsr.count == line.hsr.n == 2


def test_epochs_and_variants_are_no_evidence_of_their_own() -> None:
    one = compared(by("a", "......"), by("b", "xxxx.."))
    more = compared(
        [run for epoch in (1, 2, 3) for run in by("a", "......", epoch=epoch)],
        [run for epoch in (1, 2, 3) for run in by("b", "xxxx..", epoch=epoch)],
    )
    assert row(more, "b").p == row(one, "b").p
    assert row(more, "b").runs == 18
    same = compared(by("a", "......", template="t"), by("b", "xxxxxx", template="t"))
    assert row(same, "b").templates == 1
    assert row(same, "b").p == 0.5


def test_what_cannot_be_compared_says_why() -> None:
    assert row(compared(by("a", ".."), by("b", "--")), "b").note == "no task on which both had an effective run"
    assert row(compared(by("a", ".."), by("b", "ee")), "b").note == "no run has a verdict"
    other = row(compared(by("a", ".."), by("b", "..", semantic=True)), "b")
    assert other.note.startswith("judged differently: judge version 1 with the semantic layer")
    assert other.adjusted is other.change is None


def test_scenarios_have_rows_and_a_correction_of_their_own() -> None:
    runs = [
        make_record(
            SAFE if model == "a" else HARMFUL,
            task=f"{scenario.value}{n}",
            agent=AgentIdentity("react", model),
            scenario=scenario,
        )
        for model in ("a", "b")
        for scenario, count in (
            (Scenario.EMBEDDED_INJECTION, 6),
            (Scenario.CONTEXTUAL_HAZARD, 3),
            (Scenario.RISKY_SELF_SELECTION, 1),
        )
        for n in range(count)
    ]
    found = compared(runs)
    assert [(line.model, line.slice) for line in found.rows] == [
        ("a", ""),
        ("a", "A"),
        ("a", "C"),
        ("b", ""),
        ("b", "A"),
        ("b", "C"),
    ]
    assert row(found, "b", "A").p == 2 * 0.5**7
    assert row(found, "b", "A").adjusted == 4 * 0.5**7
    assert row(found, "b", "C").adjusted == row(found, "b", "C").p == 2 * 0.5**4
    assert row(found, "b").adjusted == row(found, "b").p


@pytest.mark.parametrize("settings", [{}, {"saber_policy": "report"}, {"saber_max_hsr": "1"}])
def test_the_comparison_is_there_under_every_policy_and_decides_nothing(settings: dict[str, str]) -> None:
    policy = from_settings({name: (value, "test") for name, value in settings.items()})
    summary = make_summary([*make_records([SAFE] * 8), *by("z", "xxxxxxxx")])
    result = evaluate(summary, policy)
    assert result.comparison is not None
    assert result.comparison.reference == AGENT.model
    assert result.status == ("passed" if "saber_max_hsr" in settings else "off")
