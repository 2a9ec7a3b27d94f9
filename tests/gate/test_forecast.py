"""Bounds on the regression test of a whole session: no completion may contradict them."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest
from scipy import stats

from pytest_saber.gate.forecast import forecast
from pytest_saber.gate.regression import sign_flip

F = Fraction


def test_by_hand() -> None:
    # Three templates have changed by 1, one is to come. A is 3, 1, -1, -3 with probabilities 1/8, 3/8, 3/8, 1/8.
    # T = 2 needs a B of size 1: h(1) = (P(A >= 1) + P(A >= 3)) / 2 = (1/2 + 1/8) / 2 = 5/16.
    # T = 3 needs B = 0: h(0) = P(A >= 3) = 1/8. T = 4: h(1) = (P(A >= 3) + P(A >= 5)) / 2 = 1/16.
    bounds = forecast([F(1)] * 3, [1], F(1), mid=False)
    assert bounds.least_total(5 / 16) == 2
    assert bounds.least_total(1 / 8) == 3
    assert bounds.least_total(1 / 16) == 4
    # Convex from 0 to 1, so that the larger B decides: T = 3 and |B| = 1 give (P(A >= 2) + P(A >= 4)) / 2 = 1/16 at most,
    # B = 0 gives 1/8.
    assert bounds.enough_total(1 / 8) == 2  # every total above 2
    assert bounds.enough_total(1 / 20) is None


def test_where_all_is_finished_both_bounds_meet() -> None:
    changes = [F(1)] * 12 + [F(-1)] * 3
    bounds = forecast(changes, [], F(1), mid=True)
    least, enough = bounds.least_total(0.0475), bounds.enough_total(0.0475)
    # scipy: the fewest of 15 that must be positive.
    up = next(k for k in range(16) if stats.binom.sf(k - 1, 15, 0.5) - stats.binom.pmf(k, 15, 0.5) / 2 <= 0.0475)
    assert least == 2 * up - 15
    assert enough == least - 1 or enough == least - 2
    assert sign_flip(changes, mid=True) <= 0.0475


@pytest.mark.parametrize("epochs", [1, 2])
def test_no_completion_contradicts_a_bound(epochs: int) -> None:
    """All completions of some beginnings, counted out."""
    dice = random.Random(epochs)
    for _ in range(8):
        finished = [F(dice.randint(-epochs, epochs), epochs) for _ in range(dice.randint(1, 5))]
        others = [dice.choice([1, 1, 2]) for _ in range(2)]
        mid, level = dice.random() < 0.5, dice.choice([0.05, 0.1, 0.2])
        bounds = forecast(finished, others, F(1, epochs), mid=mid)
        least, enough = bounds.least_total(level), bounds.enough_total(level)
        for changes in itertools.product(*([F(k, epochs) for k in range(-n * epochs, n * epochs + 1)] for n in others)):
            p, total = sign_flip([*finished, *changes], mid=mid), sum(finished) + sum(changes)
            assert p > level or total >= least
            assert p <= level or enough is None or total <= enough


def test_coarse_steps_are_on_the_careful_side() -> None:
    """Up to ten effective epochs have 2520 steps a task: sums are counted in coarser ones."""
    dice = random.Random(4)
    for _ in range(8):
        m, done = 10, dice.randint(5, 9)

        def change() -> Fraction:
            return F(dice.randint(0, 10) - dice.randint(0, 10), 10)

        finished = [change() for _ in range(done)]
        bounds = forecast(finished, [1] * (m - done), F(1, 2520), mid=True)
        least, enough = bounds.least_total(0.1), bounds.enough_total(0.1)
        for _ in range(25):
            changes = [dice.choice([change(), F(1), F(-1), F(0)]) for _ in range(m - done)]
            p, total = sign_flip([*finished, *changes], mid=True), sum(finished) + sum(changes)
            assert p > 0.1 or total >= least
            assert p <= 0.1 or enough is None or total <= enough


def test_bounds_close_in_as_templates_finish() -> None:
    dice = random.Random(1)
    changes = [F(dice.choice([-1, 0, 0, 0, 1, 1])) for _ in range(60)]
    widths = []
    for done in (20, 40, 55, 60):
        bounds = forecast(changes[:done], [1] * (60 - done), F(1), mid=True)
        enough = bounds.enough_total(0.0475)
        assert enough is not None
        widths.append(enough - bounds.least_total(0.0475))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0 < widths[0]
