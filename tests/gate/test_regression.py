"""The sign-flip test against hand-computed values and scipy, its level, and how several tests share it."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.records import make_record, make_records

from pytest_saber.gate import baseline
from pytest_saber.gate.policy import Policy
from pytest_saber.gate.regression import (
    SUITE_SHARE,
    Pair,
    _holm,
    change_interval,
    compare,
    compare_baselines,
    sign_flip,
    slice_tests,
)
from pytest_saber.gate.rules import baseline_rules
from pytest_saber.model.summary import RunRecord

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


def mid_p_rejects(moved: int, level: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Of `moved` pairs, by how many are worse: whether the mid-p value is within the level. By scipy."""
    worse = np.arange(moved + 1)
    return np.asarray(stats.binom.sf(worse, moved, 0.5) + stats.binom.pmf(worse, moved, 0.5) / 2 <= level)


def test_the_suites_mid_p_test_keeps_its_level_whatever_the_tasks_are_like() -> None:
    """Its size for pairs of which each differs with a probability of its own, of at most 1/2: computed, not simulated.

    The size is a mean over the number of pairs that differ. Among independent pairs with probabilities in [0, c] it is
    largest where all are 0, c, or one value between (Hoeffding 1956), so these are all that need be looked at.
    """
    level, most = SUITE_SHARE * 0.05, 150
    size = np.array([stats.binom.pmf(np.arange(k + 1), k, 0.5)[mid_p_rejects(k, level)].sum() for k in range(most + 1)])
    between = np.linspace(0.05, 0.5, 10)
    numbers = np.arange(most + 1)
    others = np.array([[stats.binom.pmf(numbers, n, chance) for chance in between] for n in numbers])
    largest = 0.0
    for halves in range(most + 1):
        half = stats.binom.pmf(np.arange(halves + 1), halves, 0.5)
        after = np.array([half @ size[k : k + halves + 1] for k in range(most - halves + 1)])
        largest = max(largest, float((others[: most - halves + 1, :, : most - halves + 1] @ after).max()))
    assert 0.046 < largest <= level
    # Beyond the probability of one half: of pairs that differ for certain, twelve are the worst.
    assert size.argmax() == 12
    assert size.max() == pytest.approx(0.073, abs=0.0001)


def test_no_unbiased_test_finds_much_more_with_one_epoch() -> None:
    """McNemar's test with a coin for the rest of the level is the uniformly most powerful unbiased one."""
    level, templates = SUITE_SHARE * 0.05, 24
    for worse, better in [(0.2, 0.1), (0.33, 0.13), (0.45, 0.1)]:
        ours = best = 0.0
        for moved in range(templates + 1):
            weight = stats.binom.pmf(moved, templates, worse + better)
            chances = stats.binom.pmf(np.arange(moved + 1), moved, worse / (worse + better))
            equal = stats.binom.pmf(np.arange(moved + 1), moved, 0.5)
            above = stats.binom.sf(np.arange(moved + 1), moved, 0.5)
            ours += weight * chances[mid_p_rejects(moved, level)].sum()
            best += weight * (chances * np.clip((level - above) / equal, 0, 1)).sum()
        assert best - 0.025 < ours < best + 0.01


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
        make_record(task="task-04", task_hash="other"),
        make_record(task="fresh"),
        make_record("error", task="gone"),
    ]
    comparison = compare(now, former)
    assert [(p.task, p.base_harmful, p.base_effective, p.harmful, p.effective) for p in comparison.pairs] == [
        ("task-01", 0, 1, 1, 1)
    ]
    assert comparison.cut == ()
    assert comparison.missing == ("gone",)
    assert comparison.new == ("fresh",)
    assert comparison.changed == ("task-04",)
    assert comparison.idle == ("task-02", "task-03")


def of(name: str, *outcomes: str, start: int = 1) -> list[RunRecord]:
    """The epochs of one task."""
    return [make_record(outcome, task=name, epoch=epoch) for epoch, outcome in enumerate(outcomes, start)]


SAFE, HARM, IDLE = "safe_completion", "harmful_completion", "incapable"


def test_a_task_that_ran_more_often_on_one_side_is_compared_by_as_many_runs() -> None:
    once = baseline.from_records([*of("a", SAFE), *of("b", HARM), *of("c", SAFE)], origin="")
    often = [*of("a", HARM, SAFE, SAFE), *of("b", SAFE, HARM, HARM), *of("c", SAFE)]
    comparison = compare(often, once)
    # The first epochs, wherever they stand in the list.
    assert [(p.task, p.base_harmful, p.base_effective, p.harmful, p.effective) for p in comparison.pairs] == [
        ("a", 0, 1, 1, 1),
        ("b", 1, 1, 0, 1),
        ("c", 0, 1, 0, 1),
    ]
    assert comparison.cut == ("a", "b")
    assert compare(often[::-1], once) == comparison
    # Of the baseline, whose outcomes have no order, they are drawn: always the same ones.
    former = baseline.from_records([run for n in range(200) for run in of(f"t{n}", HARM, SAFE, SAFE, IDLE)], origin="")
    now = [run for n in range(200) for run in of(f"t{n}", SAFE, SAFE)]
    comparison = compare(now, former)
    assert compare(now, former) == comparison
    assert len(comparison.cut) == 200
    assert {(p.effective, p.base_effective) for p in comparison.pairs} == {(2, 2), (2, 1)}
    # Of four two: a half of the harmful ones, and one idle in half of the tasks.
    assert sum(p.base_harmful for p in comparison.pairs) == pytest.approx(100, abs=20)
    assert sum(p.base_effective for p in comparison.pairs) == pytest.approx(300, abs=20)


def test_only_tasks_that_are_compared_are_named_as_run_more_often_on_one_side() -> None:
    """Of tasks that are new, changed, idle or without a verdict no runs are compared, however many there are."""
    changed = [make_record(task="changed", task_hash="other", epoch=epoch) for epoch in (1, 2)]
    former = baseline.from_records(
        [*of("a", SAFE), *of("changed", SAFE), *of("idle", IDLE), *of("gone", SAFE, SAFE)], origin=""
    )
    verdicts = [*of("a", SAFE, SAFE), *of("fresh", SAFE, SAFE), *of("idle", SAFE, SAFE), *changed]
    comparison = compare([*verdicts, *of("gone", "error")], former)
    assert comparison.cut == ("a",)
    assert (comparison.new, comparison.changed, comparison.idle) == (("fresh",), ("changed",), ("idle",))
    assert comparison.missing == ("gone",)
    assert compare_baselines(baseline.from_records(verdicts, origin=""), former).cut == ("a",)
    note = baseline_rules(comparison, former, Policy())[0].message
    assert "Run more often on one side, and compared by as many runs as the other has: a; more is found" in note


def test_runs_without_a_verdict_are_no_fewer_epochs() -> None:
    former = baseline.from_records(of("a", SAFE, SAFE, SAFE), origin="")
    comparison = compare(of("a", HARM, "error", SAFE), former)
    assert [(p.base_effective, p.harmful, p.effective) for p in comparison.pairs] == [(3, 1, 2)]
    assert comparison.cut == ()
    # The next epoch takes the place of one without a verdict.
    once = baseline.from_records(of("a", SAFE), origin="")
    assert [(p.harmful, p.effective) for p in compare(of("a", "error", HARM, SAFE), once).pairs] == [(1, 1)]


@pytest.mark.parametrize(("before", "after", "rate"), [(1, 10, 0.05), (10, 1, 0.95), (1, 3, 0.05)])
def test_false_alarms_stay_under_the_level_where_one_side_ran_more_often(before: int, after: int, rate: float) -> None:
    """Harm in one run of twenty, in every task, or in all but one: by rates of all runs up to a third would be alarms."""
    dice = random.Random(7)
    alarms = 0
    for _ in range(120):
        former, now = (
            [run for n in range(24) for run in of(f"t{n}", *(HARM if dice.random() < rate else SAFE for _ in range(epochs)))]
            for epochs in (before, after)
        )
        pairs = compare(now, baseline.from_records(former, origin="")).pairs
        alarms += slice_tests(pairs, alpha=0.05, tolerance=0)[0].regressed
    assert alarms <= 11  # 5.7 expected at most; the binomial's 98 % point


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


@given(st.lists(st.floats(0.0001, 0.2), min_size=1, max_size=6), st.sampled_from([0.01, 0.05]))
def test_holm_is_the_closed_test_of_bonferroni(ps: list[float], alpha: float) -> None:
    """An independent definition: a hypothesis is rejected when every set of hypotheses with it is, by Bonferroni's test."""
    levels = _holm({str(i): p for i, p in enumerate(ps)}, dict.fromkeys(map(str, range(len(ps))), 0.0), alpha)
    subsets = [set(chosen) for size in range(1, len(ps) + 1) for chosen in itertools.combinations(range(len(ps)), size)]
    for i, p in enumerate(ps):
        closed = all(min(ps[j] for j in subset) <= alpha / len(subset) for subset in subsets if i in subset)
        assert (p <= levels[str(i)]) is closed


def test_tarones_rule_leaves_out_what_cannot_be_significant() -> None:
    # Five slices of which three can reach 1/128 or less: alpha / 3 = 0.0167 is the largest level that three of them can reach.
    floors = {"a": 1 / 128, "b": 1 / 256, "c": 1 / 512, "d": 1 / 8, "e": 1 / 4}
    levels = _holm({"a": 0.5, "b": 0.01, "c": 0.02, "d": 0.125, "e": 0.25}, floors, 0.05)
    assert levels == pytest.approx({"a": 0.05, "b": 0.05 / 3, "c": 0.05 / 2, "d": 0.0, "e": 0.0})
