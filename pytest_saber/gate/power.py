"""Which regression a suite can detect.

The assumption is simple enough to be argued with. A share `icc` of the tasks always ends the same way, harmful in a share
`rate` of them; the others are harmful by chance, each run with probability `rate` (so that `rate` is the suite's HSR and
`icc` the correlation of two epochs of a task). A regression of `change` turns safe tasks of the first kind harmful, and
raises the chance of the others, until the suite's HSR is `rate + change`. Tasks of a template are taken to be copies.

With one epoch the power is that of McNemar's mid-p test, computed exactly; otherwise, and beyond 120 templates, by the
normal approximation of the sign-flip test. `tests/gate/test_power.py` compares both with simulations of the real test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import Policy
from pytest_saber.gate.regression import SUITE_SHARE

TARGET = 0.8
ASSUMED_ICC = 0.7
ASSUMED_RATE = 0.5
"""HSR where no baseline says it: near the average of the agents in the paper, and what can be detected hardly depends on it."""
MAX_EPOCHS = 100
_NEAR = 2
"""Times the tolerance. One that equals it is accepted by half of all sessions however large the suite: what is observed must
be beyond it."""
_EXACT_TEMPLATES = 120
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Design:
    """A suite as the power calculation sees it."""

    templates: int
    epochs: int
    rate: float
    """HSR of the former agent."""
    icc: float = ASSUMED_ICC
    icc_known: bool = False
    """Estimated from the baseline's epochs, not assumed."""
    rate_known: bool = True
    """Of a baseline, or given; not assumed."""


def assumed(templates: int, epochs: int) -> Design:
    """The design of a suite that has no baseline yet."""
    return Design(templates, epochs, ASSUMED_RATE, rate_known=False)


def design_of(baseline: Baseline, epochs: int) -> Design:
    """The design of a comparison with `baseline` at `epochs` runs a task."""
    tasks = [task for task in baseline.tasks if task.effective]
    harmful, effective = sum(task.harmful for task in tasks), sum(task.effective for task in tasks)
    icc = _icc([(task.harmful, task.effective) for task in tasks])
    return Design(
        templates=len({task.template for task in tasks}),
        epochs=epochs,
        rate=harmful / effective if effective else 0.0,
        icc=ASSUMED_ICC if icc is None else icc,
        icc_known=icc is not None,
    )


def power(design: Design, change: float, *, alpha: float, tolerance: float) -> float:
    """The chance that the suite's test finds a regression by `change` (from 0 to 1 - rate)."""
    if not design.templates:
        return 0.0
    if design.epochs == 1 and design.templates <= _EXACT_TEMPLATES:
        return _exact(design, change, SUITE_SHARE * alpha, tolerance)
    return _approximate(design, change, SUITE_SHARE * alpha, tolerance)


def detectable(design: Design, *, alpha: float, tolerance: float) -> float | None:
    """The smallest regression found with 80 % probability, to a tenth of a point; None when there is none."""
    low, high = 0, math.floor((1 - design.rate) * 1000)
    if high <= 0 or power(design, high / 1000, alpha=alpha, tolerance=tolerance) < TARGET:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if power(design, middle / 1000, alpha=alpha, tolerance=tolerance) < TARGET:
            low = middle
        else:
            high = middle
    return high / 1000


def epochs_needed(design: Design, change: float, *, alpha: float, tolerance: float) -> int | None:
    """The fewest epochs with which a regression by `change` is found with 80 % probability; None beyond 100."""
    for epochs in range(1, MAX_EPOCHS + 1):
        if power(replace(design, epochs=epochs), change, alpha=alpha, tolerance=tolerance) >= TARGET:
            return epochs
    return None


def sentence(design: Design, policy: Policy) -> str:
    """What the header says."""
    alpha, tolerance = policy.alpha.value, policy.tolerance.value
    found = detectable(design, alpha=alpha, tolerance=tolerance)
    source = "from the baseline" if design.icc_known else "assumed"
    basis = (
        f"{design.templates} templates, epochs {design.epochs}, "
        f"HSR {design.rate:.2f}{'' if design.rate_known else ' assumed'}, "
        f"correlation of epochs {design.icc:.2f} {source}"
    )
    against = "against the baseline" if design.rate_known else "against a baseline of this suite"
    if found is None:
        return (
            f"no regression {against} is detected with 80 % probability ({basis}): this gate cannot detect its own tolerance "
            f"of {100 * tolerance:g} points, or any other regression"
        )
    text = f"a regression of {100 * found:.1f} points or more {against} is detected with 80 % probability ({basis})"
    if found > _NEAR * tolerance:
        text += (
            f"; this gate cannot detect its own tolerance of {100 * tolerance:g} points: smaller regressions can pass unseen, "
            "`pytest-saber power` says how many epochs they need"
        )
    return text


def _exact(design: Design, change: float, level: float, tolerance: float) -> float:
    m, rate, icc = design.templates, design.rate, design.icc
    now = min(1.0, rate + change)
    up = icc * change + (1 - icc) * now * (1 - rate)
    down = (1 - icc) * rate * (1 - now)
    moved = up + down
    if moved <= 0:
        return 0.0
    total = 0.0
    for k in range(1, m + 1):
        weight = _binomial(m, k, min(1.0, moved))
        needed = max(_critical(k, level), math.floor((k + tolerance * m) / 2 + 1e-9) + 1)
        total += weight * sum(_binomial(k, u, up / moved) for u in range(needed, k + 1))
    return total


def _critical(k: int, level: float) -> int:
    """The fewest of `k` moved tasks that must have become worse for a mid-p value within the level; k + 1 for none."""
    above = 0.0
    for u in range(k, -1, -1):
        equal = _binomial(k, u, 0.5)
        if above + equal / 2 > level:
            return u + 1
        above += equal
    return 0


def _approximate(design: Design, change: float, level: float, tolerance: float) -> float:
    m, rate, icc = design.templates, design.rate, design.icc
    now = min(1.0, rate + change)
    chance = (now * (1 - now) + rate * (1 - rate)) / design.epochs
    square = icc * change + (1 - icc) * (chance + change * change)
    if square <= 0 or 0.5 ** (m + 1) > level:
        return 0.0
    spread = math.sqrt(max(square - change * change, 1e-12))
    significant = (change * math.sqrt(m) - _NORMAL.inv_cdf(1 - level) * math.sqrt(square)) / spread
    beyond = (change - tolerance) * math.sqrt(m) / spread
    return _NORMAL.cdf(min(significant, beyond))


def _binomial(n: int, k: int, p: float) -> float:
    if p in (0.0, 1.0):
        return float(k == n * p)
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
    return math.exp(log)


def _icc(tasks: Sequence[tuple[int, int]]) -> float | None:
    """The one-way ANOVA estimate of the correlation of two epochs of a task; None without repeated, varying runs."""
    n = sum(size for _, size in tasks)
    k = len(tasks)
    if k < 2 or n <= k:
        return None
    mean = sum(x for x, _ in tasks) / n
    between = sum(size * (x / size - mean) ** 2 for x, size in tasks) / (k - 1)
    within = sum(x * (size - x) / size for x, size in tasks) / (n - k)
    size = (n - sum(size * size for _, size in tasks) / n) / (k - 1)
    total = between + (size - 1) * within
    return None if total == 0 else min(1.0, max(0.0, (between - within) / total))
