"""A test of the whole session's HSR that may be looked at after every run (`--saber-stop-when-decided`).

What is random is the order. Each run of the session has the outcome that it has or would have, however those depend on
each other; the suite is a finite population, and the session draws from it without replacement. So nothing is assumed
of agents or tasks, but that a run's outcome does not depend on its place in the order.

**Order** (`blocks`). Templates are shuffled within their cell (scenario x category), the cells shuffled and laid end to
end, and the templates dealt in turn to blocks, so that each block has its share of every cell; then the blocks are
shuffled. A whole block is one observation: all epochs and variants of its templates, which are dependent. Blocks of any
make come in uniformly random order, so the test is valid however the templates were dealt. Taking one template of each
cell in turn would not do: cells of few templates would come too early, and what is seen first would not be like the rest.

**Test** (`evidence`). For a limit L, a block with h harmful of e effective runs is `x = h + L (w - e)`, where w is the
number of runs of the largest block; x lies in [0, w], and the mean of all M blocks is at most `L w` exactly when the
HSR of the session (all its harmful over all its effective runs) is at most L. A gambler bets a share c of the capital
against it, at odds that are fair at best:

    capital_t = product over i <= t of (1 - c + c x_i / m_i)        m_i = (M L w - sum of x_j, j < i) / (M - i + 1)

where m_i is the greatest mean that the blocks still to come can have if the limit is kept. If it is kept, capital_t is
a non-negative supermartingale of mean 1 at most (Waudby-Smith and Ramdas 2020, "Confidence sequences for sampling
without replacement"; 2024, "Estimating means of bounded random variables by betting", section 5), and so is the mean over
many c, which spares choosing one. By Ville's inequality it ever reaches 1 / level with a probability of at most `level`. For
a pass the same is done with `w - x`. A session keeps its limit or does not, so only one of both can err.

The capital falls as L rises, whatever was seen: each `x_i / m_i` does. So those L that are rejected are all below one
bound, and L may be chosen after seeing the data, as the `confident` reading needs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

_SHARES = tuple((k + 0.5) / 32 for k in range(32))
_Z = NormalDist().inv_cdf(0.975)
MOST_BLOCKS = 60
"""Larger suites have blocks of several templates."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What is counted of the runs of a finished block."""

    effective: int
    harmful: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Against that the limit is kept, and against that it is exceeded: the largest capital so far, from a stake of 1."""

    kept: float
    exceeded: float


def blocks(cells: Mapping[str, str], seed: str) -> tuple[tuple[str, ...], ...]:
    """Templates in a random order: blocks of templates, stratified by cell. `cells` is template to cell.

    The same `cells` and `seed` give the same order in every process.
    """
    dice = random.Random(f"order {seed}")  # noqa: S311 - repeatable on purpose
    strata: dict[str, list[str]] = {}
    for template in sorted(cells):
        strata.setdefault(cells[template], []).append(template)
    names = sorted(strata)
    dice.shuffle(names)
    for name in names:
        dice.shuffle(strata[name])
    row = [template for name in names for template in strata[name]]
    # Blocks of one size, or nearly: a block counts for as much as the largest could.
    size = max(1, math.ceil(len(row) / MOST_BLOCKS))
    count = math.ceil(len(row) / size)
    dealt = [tuple(row[start::count]) for start in range(count)]
    dice.shuffle(dealt)
    return tuple(dealt)


def evidence(units: Sequence[Unit], count: int, most: int, limit: Fraction) -> Evidence:
    """The evidence of the first blocks. `count` blocks make the session, the largest has `most` runs."""
    values = [unit.harmful + limit * (most - unit.effective) for unit in units]
    kept = against(values, count, count * limit * most)
    exceeded = against([most - value for value in values], count, count * (most - limit * most))
    return Evidence(kept, exceeded)


def against(values: Sequence[Fraction], count: int, total: Fraction) -> float:
    """The largest capital so far of a gambler who bets that `count` values add up to more than `total`.

    `values` are the first of them, in random order; none of all is below 0. If they add up to `total` at most, the capital
    ever reaches 1 / level with a probability of at most `level`.
    """
    capital, largest, left = [1.0] * len(_SHARES), 1.0, total
    for number, value in enumerate(values):
        _bet(capital, value, left / (count - number))
        left -= value
        largest = max(largest, math.fsum(capital) / len(capital))
    return largest


def _bet(capital: list[float], x: Fraction, mean: Fraction) -> None:
    """One bet of each gambler that a block is beyond the greatest mean it can have."""
    if mean <= 0:
        # The blocks to come would have to be 0, or less: nothing else can be bet on.
        if x > mean:
            capital[:] = [math.inf] * len(capital)
        return
    odds = float(x / mean)
    capital[:] = [former * (1 - share + share * odds) for former, share in zip(capital, _SHARES, strict=True)]


def confident_limit(limit: Fraction, runs: float) -> Fraction:
    """The rate whose 95 % interval of Wilson, in `runs` independent runs, begins at `limit`; may be above 1.

    The interval of a session begins above the limit when its HSR is above this, if its effective number of runs is at
    least `runs`: the interval begins higher the more runs there are.
    """
    value = float(limit)
    # Rounded up: a bound may err on that side only.
    return Fraction(value + _Z * math.sqrt(value * (1 - value) / runs)) + Fraction(1, 10**9)
