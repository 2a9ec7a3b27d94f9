"""What the regression test of a whole session can still say when only some of its templates are finished.

The test looks at T, the sum of all templates' changes: its p value is P(A + B >= T), where A adds up the sizes of the
finished templates' changes under random signs, and B those of the others (see `regression`). A is known; of B only that it
is symmetric, and how large each of its parts can be. That bounds p from both sides, whatever the others do:

- `least_total`, below which T cannot be significant: P(A + B >= T) is a mean of
  `h(b) = (P(A >= T - b) + P(A >= T + b)) / 2` over the sizes b of B, so it is at least the smallest h.
- `enough_total`, above which T must be: a convex function above h has its largest mean when each part of B is as large as
  it can be, as signs are random and a larger part is a mean-preserving spread. The best of some hinge functions is taken.

Where T lies, the sequential test says (`session_tests`). Changes are counted in steps of which all possible ones are
multiples; where those are too many (epochs with many divisors), in coarser ones, and the rounding is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

_MOST_STEPS = 4000
"""From no change at all to a change of every task."""
_HINGES = 16


class _Signs:
    """The sum of `steps` under random signs; with `mid`, a sum that equals a bound counts half as beyond it."""

    def __init__(self, steps: Sequence[int], *, mid: bool = False) -> None:
        self.total = sum(steps)
        # As in `regression.sign_flip`: counts of subsets by their sum, as digits of one long integer.
        width = len(steps) // 8 + 1
        product = 1
        for step in steps:
            product += product << (8 * width * step)
        digits = product.to_bytes(width * (self.total + 1), "little")
        counts = [int.from_bytes(digits[start : start + width], "little") for start in range(0, len(digits), width)]
        self._patterns = 1 << len(steps)
        self._equal = [count / self._patterns for count in counts]
        self._upto = [count / self._patterns for count in accumulate(counts)]
        self._mid = mid

    def beyond(self, bound: int) -> float:
        """The probability of `bound` or more."""
        # The sum is the total less twice that of those with a minus.
        minus, odd = divmod(self.total - bound, 2)
        if minus < 0:
            return 0.0
        if minus > self.total:
            return 1.0
        return self._upto[minus] - (self._equal[minus] / 2 if self._mid and not odd else 0.0)

    def excess(self, hinge: int) -> float:
        """The mean of what the sum's size exceeds `hinge` by."""
        return math.fsum(p * max(0, abs(self.total - 2 * minus) - hinge) for minus, p in enumerate(self._equal))


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bounds on one sign-flip test. Made by `forecast`."""

    step: Fraction
    slack: int
    """Steps that rounding may have moved a sum by, and two for what lies between steps; 0 where all are exact."""
    signs: _Signs
    others: tuple[int, ...]
    """The largest changes that the templates to come can have, in steps."""

    def least_total(self, level: float) -> Fraction:
        """No total below this is significant at `level`."""
        return min(self._least_of(parity, level) for parity in (0, 1)) * self.step

    def enough_total(self, level: float) -> Fraction | None:
        """Every total above this is significant at `level`; None where none is for certain."""
        reach = sum(self.others)
        hinges = sorted({reach * k // _HINGES for k in range(_HINGES)})
        signs = _Signs(self.others)
        spreads = [signs.excess(hinge) for hinge in hinges]
        top = self.signs.total + reach + 2 * self.slack + 1
        found = _first(top, lambda total: self._largest(total, hinges, spreads) <= level)
        if found == top:
            return None
        return (found if self.slack else found - 1) * self.step

    def _least_of(self, parity: int, level: float) -> int:
        # Among totals of one parity p falls: they can have the same sizes of B.
        top = self.signs.total + sum(self.others) + 2
        return 2 * _first(top // 2 + 1, lambda half: self._smallest(2 * half + parity) <= level) + parity

    def _smallest(self, total: int) -> float:
        signs, slack = self.signs, self.slack
        start, stride = (0, 1) if slack else ((total - signs.total) % 2, 2)
        # For larger sizes P(A >= T - b) is 1, and nothing smaller can follow.
        stop = min(sum(self.others), total + signs.total + slack)
        sizes = range(start, stop + 1, stride)
        return min((signs.beyond(total - b + slack) + signs.beyond(total + b + slack) for b in sizes), default=1.0) / 2

    def _largest(self, total: int, hinges: Sequence[int], spreads: Sequence[float]) -> float:
        signs, slack, reach = self.signs, self.slack, sum(self.others)
        h = [(signs.beyond(total - b - slack) + signs.beyond(total + b - slack)) / 2 for b in range(reach + 1)]
        best = 1.0
        for hinge, spread in zip(hinges, spreads, strict=True):
            base = max(h[: hinge + 1])
            slope = max((max(0.0, h[b] - base) / (b - hinge) for b in range(hinge + 1, reach + 1)), default=0.0)
            best = min(best, base + slope * spread)
        return best


def forecast(finished: Sequence[Fraction], others: Sequence[int], step: Fraction, *, mid: bool) -> Forecast:
    """The forecast of a test.

    Args:
        finished: changes of the finished templates, each the sum of its tasks' changes.
        others: the number of tasks of each other template; each can change by one at most, either way.
        step: the largest number of which every possible change is a multiple.
        mid: whether the test takes the mid-p value.
    """
    sizes = [abs(change) for change in finished if change]
    whole = sum(sizes, Fraction(sum(others)))
    slack = 0
    if whole > _MOST_STEPS * step:
        step, slack = whole / _MOST_STEPS, math.ceil(len(sizes) / 2) + 2
    signs = _Signs([round(size / step) for size in sizes], mid=mid)
    return Forecast(step, slack, signs, tuple(math.ceil(tasks / step) for tasks in others))


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The first of 0 to `count` - 1 that holds, as all later ones do; else `count`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
