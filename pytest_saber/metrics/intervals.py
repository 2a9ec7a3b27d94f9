"""95 % intervals of a rate whose runs come in clusters.

Variants and epochs of one template are not independent, so the template is the unit of evidence. The interval is
Wilson's score interval with the number of runs `n` replaced by an effective number `n_eff` (Korn and Graubard 1998,
with Wilson's interval for Clopper and Pearson's; Dean and Pavlou 2015 compare both):

    deff  = v_clustered / v_independent      v_clustered   = m / (m - 1) * sum((x_c - p n_c)^2) / n^2
                                             v_independent = p (1 - p) / (n - 1)
    n_eff = n / max(1, deff) * (t[n - 1] / t[m - 1])^2       m clusters, t[k] the 97.5 % point of Student's t

and at least `kish = n^2 / sum(n_c^2)`, the effective number when all runs of a cluster are copies of each other. No
correlation is stronger than that, so the floor loses nothing; and where the sample shows no variation (0 of n, n of n,
one cluster) it is what is assumed. With one run a cluster the result is Wilson's interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

from pytest_saber.model.summary import Rate

_Z = NormalDist().inv_cdf(0.975)


def clustered_rate(clusters: Sequence[tuple[int, int]]) -> Rate:
    """The pooled rate of `(count, n)` pairs, one a cluster; value and interval are None when there is no run."""
    count = sum(x for x, _ in clusters)
    n = sum(size for _, size in clusters)
    if n == 0:
        return Rate(0, 0, None, None, None)
    low, high = wilson(count / n, effective_number(clusters))
    return Rate(count, n, count / n, low, high)


def effective_number(clusters: Sequence[tuple[int, int]]) -> float:
    """How many independent runs the clusters are worth: from the Kish number to the number of runs."""
    sizes = [size for _, size in clusters if size]
    n = sum(sizes)
    m = len(sizes)
    p = sum(x for x, _ in clusters) / n
    kish = n * n / sum(size * size for size in sizes)
    spread = sum((x - p * size) ** 2 for x, size in clusters)
    if m == 1 or p in (0.0, 1.0):
        return kish
    clustered = m / (m - 1) * spread / (n * n)
    independent = p * (1 - p) / (n - 1)
    deff = max(1.0, clustered / independent)
    return max(kish, n / deff * (student_t(n - 1) / student_t(m - 1)) ** 2)


def wilson(p: float, n: float) -> tuple[float, float]:
    """Wilson's score interval (1927) at 95 % for a rate `p` seen in `n` independent runs; `n` need not be whole."""
    z2 = _Z * _Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if p == 0.0 else max(0.0, centre - half)
    high = 1.0 if p == 1.0 else min(1.0, centre + half)
    return low, high


@cache
def student_t(df: int) -> float:
    """The 97.5 % point of Student's t with `df` >= 1 degrees of freedom (to 1e-6; checked against scipy in the tests)."""
    if df > 2000:
        return _Z + (_Z**3 + _Z) / (4 * df)
    low, high = _Z, 13.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        if _central_probability(middle, df) < 0.95:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _central_probability(t: float, df: int) -> float:
    """P(-t < T < t), the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(df))
    cos2 = math.cos(theta) ** 2
    if df % 2:
        term, total = math.cos(theta), 0.0
        for k in range(1, df - 1, 2):
            total += term
            term *= cos2 * (k + 1) / (k + 2)
        return 2 / math.pi * (theta + math.sin(theta) * total)
    term, total = 1.0, 0.0
    for k in range(0, df - 1, 2):
        total += term
        term *= cos2 * (k + 1) / (k + 2)
    return math.sin(theta) * total
