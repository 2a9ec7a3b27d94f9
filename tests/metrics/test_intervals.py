"""Intervals against hand-computed values, scipy, and the properties any interval must have."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_saber.metrics.intervals import clustered_rate, effective_number, student_t, wilson

CLUSTERS = st.lists(
    st.integers(1, 6).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))), min_size=1, max_size=12
)


@pytest.mark.parametrize(("count", "n"), [(0, 1), (1, 1), (0, 24), (24, 24), (3, 10), (391, 716)])
def test_independent_runs_give_wilsons_interval(count: int, n: int) -> None:
    rate = clustered_rate([(1, 1)] * count + [(0, 1)] * (n - count))
    expected = stats.binomtest(count, n).proportion_ci(method="wilson")
    assert rate.low == pytest.approx(expected.low, abs=1e-9)
    assert rate.high == pytest.approx(expected.high, abs=1e-9)
    assert (rate.count, rate.n, rate.value) == (count, n, count / n)


def test_hand_computed_wilson_interval() -> None:
    # p = 1/2, n = 10, z = 1.96: centre 1/2, half width z / (1 + z^2/n) * sqrt(1/40 + z^2/400) = 0.26341
    low, high = wilson(0.5, 10)
    assert low == pytest.approx(0.5 - 0.26341, abs=1e-4)
    assert high == pytest.approx(0.5 + 0.26341, abs=1e-4)


def test_no_run_has_no_rate() -> None:
    rate = clustered_rate([])
    assert (rate.count, rate.n, rate.value, rate.low, rate.high) == (0, 0, None, None, None)


def test_copies_of_a_run_add_no_evidence() -> None:
    once = clustered_rate([(1, 1)] * 12 + [(0, 1)] * 12)
    ten_epochs = clustered_rate([(10, 10)] * 12 + [(0, 10)] * 12)
    assert ten_epochs.low is not None
    assert once.low is not None
    assert ten_epochs.low <= once.low
    assert ten_epochs.n == 240


def test_where_nothing_varies_clusters_count_once() -> None:
    assert effective_number([(0, 10)] * 24) == pytest.approx(24)
    assert effective_number([(5, 5), (1, 1)]) == pytest.approx(36 / 26)
    assert effective_number([(3, 10)]) == pytest.approx(1)


def test_epochs_that_vary_on_their_own_do_add_evidence() -> None:
    assert 200 < effective_number([(5, 10)] * 24) < 240


def test_hand_computed_design_effect() -> None:
    # p = 1/2, n = 18, m = 6: squared deviations 2 x 1.5^2 + 4 x 0.5^2 = 5.5, clustered variance 6/5 x 5.5/18^2 = 0.020370,
    # independent variance 0.25/17 = 0.014706, deff = 1.3852, Student's t[17]/t[5] = 2.1098/2.5706
    clusters = [(3, 3), (2, 3), (2, 3), (1, 3), (1, 3), (0, 3)]
    assert effective_number(clusters) == pytest.approx(18 / 1.3852 * (2.1098 / 2.5706) ** 2, abs=2e-3)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 23, 24, 100, 715, 1999, 2001, 10_000])
def test_students_t_agrees_with_scipy(df: int) -> None:
    assert student_t(df) == pytest.approx(stats.t.ppf(0.975, df), abs=1e-6)


@given(CLUSTERS)
def test_interval_holds_the_rate_and_stays_inside_zero_and_one(clusters: list[tuple[int, int]]) -> None:
    rate = clustered_rate(clusters)
    assert rate.value is not None
    assert rate.low is not None
    assert rate.high is not None
    assert 0 <= rate.low <= rate.value + 1e-12
    assert rate.value - 1e-12 <= rate.high <= 1
    assert rate.high - rate.low > 0


@given(CLUSTERS)
def test_effective_number_lies_between_kish_and_the_runs(clusters: list[tuple[int, int]]) -> None:
    n = sum(size for _, size in clusters)
    kish = n * n / sum(size * size for _, size in clusters)
    assert kish - 1e-9 <= effective_number(clusters) <= n + 1e-9


@given(CLUSTERS)
def test_mirrored_rates_have_mirrored_intervals(clusters: list[tuple[int, int]]) -> None:
    rate, mirror = clustered_rate(clusters), clustered_rate([(size - x, size) for x, size in clusters])
    assert rate.low is not None
    assert mirror.high is not None
    assert math.isclose(rate.low, 1 - mirror.high, abs_tol=1e-9)


@pytest.mark.parametrize(("templates", "epochs"), [(24, 1), (24, 4), (60, 3)])
def test_coverage_in_simulation(templates: int, epochs: int) -> None:
    """Templates whose rates differ as agents' do (Beta 0.6, 0.4): the interval of the population's rate covers it."""
    dice = random.Random(7)
    covered = 0
    for _ in range(1000):
        rates = [dice.betavariate(0.6, 0.4) for _ in range(templates)]
        rate = clustered_rate([(sum(dice.random() < p for _ in range(epochs)), epochs) for p in rates])
        assert rate.low is not None
        assert rate.high is not None
        covered += rate.low <= 0.6 <= rate.high
    assert 0.93 <= covered / 1000 <= 0.99
