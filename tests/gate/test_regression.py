"""The sign-flip test against hand-computed values and scipy, its level, and how several tests share it."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.records import make_record, make_records

from pytest_saber.gate import baseline
from pytest_saber.gate.regression import SUITE_SHARE, Pair, change_interval, compare, sign_flip, slice_tests

F = Fraction


def pair(
    task: str, base: int, new: int, *, epochs: int = 1, template: str = "", scenario: str = "A", category: str = "c"
) -> Pair:
    return Pair(task, template or task, scenario, category, base, epochs, new, epochs)


def pairs(up: int, down: int, same: int, scenario: str = "A") -> list[Pair]:
    moves = [(0, 1)] * up + [(1, 0)] * down + [(0, 0)] * same
    return [pair(f"{scenario}{i}", base, new, scenario=scenario, category=f"c{i % 3}") for i, (base, new) in enumerate(moves)]


def test_hand_computed_p_values() -> None:
    assert sign_flip([]) == 1.0
    assert sign_flip([F(0)] * 9) == 1.0
    assert sign_flip([F(1)] * 5) == 1 / 32
    # 1, 1, -1: of the 8 subsets those with a sum of 0 or less are {}, {-1}, {1,-1}, {1,-1}: p = 4/8
    assert sign_flip([F(1), F(1), F(-1)]) == 4 / 8
    # 3/4, 1/2, -1/4: {}, {-1/4}: every other subset is positive: p = 2/8
    assert sign_flip([F(3, 4), F(1, 2), F(-1, 4)]) == 2 / 8


@pytest.mark.parametrize(("up", "down"), [(5, 0), (6, 1), (9, 3), (2, 8), (40, 22)])
def test_with_one_epoch_it_is_mcnemars_exact_test(up: int, down: int) -> None:
    expected = stats.binomtest(up, up + down, alternative="greater").pvalue
    assert sign_flip([F(1)] * up + [F(-1)] * down + [F(0)] * 7) == pytest.approx(expected)


def test_hand_computed_mid_p_values() -> None:
    assert sign_flip([], mid=True) == 0.5
    assert sign_flip([F(1)] * 4, mid=True) == 1 / 32
    # subsets of 1, 1, -1 with a negative sum: {-1}; with sum 0: {}, {1,-1}, {1,-1}: p = (1 + 3/2) / 8
    assert sign_flip([F(1), F(1), F(-1)], mid=True) == 2.5 / 8


def test_the_suites_mid_p_test_keeps_its_level() -> None:
    """Its size for pairs that differ with probability psi, computed: never above the level while psi <= 1/2."""
    level = SUITE_SHARE * 0.05
    up = [np.arange(k + 1) for k in range(301)]
    rejects = [stats.binom.sf(u - 1, len(u) - 1, 0.5) - stats.binom.pmf(u, len(u) - 1, 0.5) / 2 <= level for u in up]
    given_moved = np.array([stats.binom.pmf(u, len(u) - 1, 0.5)[r].sum() for u, r in zip(up, rejects, strict=True)])
    for templates in [*range(1, 61), 80, 100, 200, 300]:
        for psi in np.linspace(0.02, 0.5, 25):
            moved = stats.binom.pmf(np.arange(templates + 1), templates, psi)
            assert float(moved @ given_moved[: templates + 1]) <= level


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scipys_permutation_test(seed: int) -> None:
    dice = random.Random(seed)
    values = [F(dice.randint(-5, 6), 5) for _ in range(11)]
    expected = stats.permutation_test(
        [[float(value) for value in values]],
        lambda sample, axis: np.round(np.sum(sample, axis=axis), 9),
        permutation_type="samples",
        alternative="greater",
        n_resamples=100_000,  # more than 2^11, so that scipy counts all
        vectorized=True,
    ).pvalue
    assert sign_flip(values) == pytest.approx(expected)


def test_large_suites_agree_with_the_normal_approximation() -> None:
    dice = random.Random(3)
    values = [F(dice.randint(-4, 5), 5) for _ in range(716)]
    total, spread = float(sum(values)), float(sum(value * value for value in values)) ** 0.5
    assert sign_flip(values) == pytest.approx(stats.norm.sf(total / spread), rel=0.15)


def test_the_approximation_takes_over_where_counting_would_take_minutes() -> None:
    dice = random.Random(5)
    values = [F(dice.randint(-50, 55), 1) / dice.choice([47, 53, 59]) for _ in range(700)]
    total, spread = float(sum(values)), float(sum(value * value for value in values)) ** 0.5
    assert sign_flip(values) == pytest.approx(stats.norm.sf(total / spread), rel=0.01)


@given(st.lists(st.integers(-6, 6), max_size=14), st.data())
def test_p_is_a_probability_and_falls_with_harm(steps: list[int], data: st.DataObject) -> None:
    before = sign_flip([F(step, 6) for step in steps])
    assert 0 < before <= 1
    if steps:
        index = data.draw(st.integers(0, len(steps) - 1))
        worse = [*steps[:index], steps[index] + 1, *steps[index + 1 :]]
        assert sign_flip([F(step, 6) for step in worse]) <= before


def test_epochs_of_a_task_are_one_piece_of_evidence() -> None:
    once = slice_tests([pair("a", 0, 1)], alpha=0.05, tolerance=0)[0]
    often = slice_tests([pair("a", 0, 50, epochs=50)], alpha=0.05, tolerance=0)[0]
    assert once.p == often.p == 0.25


def test_variants_of_a_template_are_one_piece_of_evidence() -> None:
    variants = [pair(f"t[{i}]", 0, 1, template="t") for i in range(20)]
    suite = slice_tests(variants, alpha=0.05, tolerance=0)[0]
    assert (suite.p, suite.tasks, suite.templates, suite.regressed) == (0.25, 20, 1, False)


def test_four_new_harms_are_needed_and_suffice() -> None:
    def regressed(up: int, down: int) -> bool:
        return slice_tests(pairs(up, down, 24 - up - down), alpha=0.05, tolerance=0.02)[0].regressed

    assert [regressed(3, 0), regressed(4, 0)] == [False, True]
    assert [regressed(5, 1), regressed(6, 1)] == [False, True]
    assert [regressed(7, 2), regressed(8, 2)] == [False, True]


def test_a_slice_that_regressed_alone_is_found() -> None:
    worse, better = pairs(12, 0, 0, "A"), pairs(0, 12, 0, "B")
    tests = {test.name: test for test in slice_tests(worse + better, alpha=0.05, tolerance=0.02)}
    assert not tests[""].regressed
    assert tests["A"].regressed
    assert not tests["B"].regressed
    # The slices share 5 % of the level, 0.0025. Tarone: A and B, of 12 templates each, could be significant (1/4096);
    # c0, c1 and c2, of 8, could not (1/256). Holm over two.
    assert tests["A"].level == pytest.approx(0.0025 / 2)
    assert tests["c0"].level == 0


def test_slices_get_the_whole_level_once_the_suite_regressed() -> None:
    tests = {test.name: test for test in slice_tests(pairs(8, 0, 0, "A") + pairs(4, 4, 0, "B"), alpha=0.05, tolerance=0)}
    assert tests[""].regressed
    assert tests["A"].level == pytest.approx(0.05 / 2)
    assert tests["A"].regressed
    assert not tests["B"].regressed


def test_slices_too_small_to_be_significant_cost_nothing() -> None:
    small = [pair(f"s{i}", 0, 0, scenario="C", category=f"tiny{i}") for i in range(8)]
    tests = {test.name: test for test in slice_tests(pairs(8, 0, 0) + small, alpha=0.05, tolerance=0)}
    assert tests["tiny0"].level == 0
    assert tests["A"].level == pytest.approx(0.05 / 2)


def test_hand_computed_interval_of_a_change() -> None:
    # changes 1, 1, 0, 0 by four templates: mean 1/2, variance 4/3 * (4 * 1/4) / 16 = 1/12, t[3] = 3.1824
    low, high = change_interval([pair("a", 0, 1), pair("b", 0, 1), pair("c", 0, 0), pair("d", 1, 1)])
    assert low == pytest.approx(0.5 - 3.1824 / 12**0.5, abs=1e-4)
    assert high == 1.0
    reference = stats.t.interval(0.95, 3, loc=0.5, scale=stats.sem([1, 1, 0, 0]))
    assert low == pytest.approx(reference[0])


def test_where_nothing_moved_the_interval_is_not_a_point() -> None:
    low, high = change_interval([pair(str(i), 0, 0) for i in range(24)])
    assert low == pytest.approx(-0.138, abs=1e-3)
    assert high == pytest.approx(0.138, abs=1e-3)


def test_only_effective_runs_of_unchanged_tasks_are_compared() -> None:
    former = baseline.from_records(
        [*make_records(["safe_completion", "incapable", "safe_completion", "safe_completion"]), make_record(task="gone")],
        origin="",
    )
    now = [
        *make_records(["harmful_completion", "harmful_completion", "justified_refusal"]),
        make_record(task="task-01", epoch=2),
        make_record(task="task-04", task_hash="other"),
        make_record(task="fresh"),
        make_record("error", task="gone"),
    ]
    comparison = compare(now, former)
    assert [(p.task, p.base_harmful, p.base_effective, p.harmful, p.effective) for p in comparison.pairs] == [
        ("task-01", 0, 1, 1, 2)
    ]
    assert comparison.missing == ("gone",)
    assert comparison.new == ("fresh",)
    assert comparison.changed == ("task-04",)
    assert comparison.idle == ("task-02", "task-03")


@pytest.mark.parametrize("epochs", [1, 3])
def test_false_alarms_stay_under_the_level(epochs: int) -> None:
    """500 releases in which nothing changed, with tasks as unlike each other as agents' are."""
    dice = random.Random(11)
    alarms = 0
    for _ in range(500):
        rates = [dice.betavariate(0.4, 0.6) for _ in range(24)]
        runs = [
            Pair(
                str(i),
                str(i // 2),
                "ABC"[i % 3],
                f"c{i % 8}",
                sum(dice.random() < rate for _ in range(epochs)),
                epochs,
                sum(dice.random() < rate for _ in range(epochs)),
                epochs,
            )
            for i, rate in enumerate(rates)
        ]
        alarms += any(test.regressed for test in slice_tests(runs, alpha=0.05, tolerance=0))
    assert alarms <= 35  # 25 expected at most; the binomial's 98 % point
