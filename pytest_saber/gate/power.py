"""Which regression a suite can detect.

The assumption is simple enough to be argued with. A share `icc` of the tasks always ends the same way, harmful in a share
`rate` of them; the others are harmful by chance, each run with probability `rate` (so that `rate` is the suite's HSR and
`icc` the correlation of two epochs of a task). Two releases also differ where neither is worse: of the tasks that always end
the same way a share 1 - `agreement` ends another release's runs as it falls, harmful in a share `rate` again (so that
`agreement` is the correlation of two releases' rates of a task). A regression of `change` makes a share of all tasks harmful
every time, so that the suite's HSR is `rate + change`; one that makes all tasks likelier harmful is found more often. Tasks of
a template are taken to be copies.

Nobody knows how much two releases agree before they are compared. The default is what `bench/gate.py` computes for the middle
one of its worlds, where the log odds of a template move by a standard deviation of 1 with each release; so is the correlation
of epochs where no baseline says it. That program also counts how often the regressions that are named here are found.

With one epoch the power is that of McNemar's mid-p test, computed exactly. Otherwise, and beyond 120 templates, it is summed
over how many templates end by chance, and how many of the others regress; for each such case the sum of the changes is taken
for normal, and its standard error for what it is on average in the direction of the sum (the delta method). `tests/gate/
test_power.py` compares both with simulations of the real test: where 80 % is said, 76 to 84 % are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import Policy
from pytest_saber.gate.regression import SUITE_SHARE, level_of_each
from pytest_saber.model.words import counted

TARGET = 0.8
ASSUMED_ICC = 0.5
ASSUMED_AGREEMENT = 0.84
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
    """A suite, and the agents that run it, as the power calculation sees them."""

    templates: int
    epochs: int
    rate: float
    """HSR of the former agent."""
    icc: float = ASSUMED_ICC
    icc_known: bool = False
    """Estimated from the baseline's epochs, not assumed."""
    rate_known: bool = True
    """Of a baseline, or given; not assumed."""
    agreement: float = ASSUMED_AGREEMENT
    """The correlation of two releases' harmful rates of a task, where neither is worse on the whole; 1: one agent run twice."""


def assumed(templates: int, epochs: int) -> Design:
    """The design of a suite that has no baseline yet."""
    return Design(templates, epochs, ASSUMED_RATE, rate_known=False)


def design_of(baseline: Baseline, epochs: int) -> Design:
    """The design of a comparison with `baseline` at `epochs` runs a task on both sides."""
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


def sentence(design: Design, policy: Policy, *, models: int = 1) -> str:
    """What the header says of a session of so many models, which share the level."""
    alpha, tolerance = level_of_each(policy.alpha.value, models), policy.tolerance.value
    found = detectable(design, alpha=alpha, tolerance=tolerance)
    source = "from the baseline" if design.icc_known else "assumed"
    basis = (
        f"{counted(design.templates, 'template')}, epochs {design.epochs}, "
        f"HSR {design.rate:.2f}{'' if design.rate_known else ' assumed'}, "
        f"correlation of epochs {design.icc:.2f} {source}, agreement of releases {design.agreement:.2f} assumed"
        f"{f', level {alpha:.3g} for each of {models} models' if models > 1 else ''}"
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
    m, rate, kept = design.templates, design.rate, design.icc * design.agreement
    now = min(1.0, rate + change)
    up = kept * change + (1 - kept) * now * (1 - rate)
    down = (1 - kept) * rate * (1 - now)
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
    m = design.templates
    z = _NORMAL.inv_cdf(1 - level)
    rate, kept = design.rate, design.icc * design.agreement
    flipped = min(1.0, change / (1 - rate)) if rate < 1 else 0.0
    # Of the templates that are not kept, those that always end the same way differ as single runs do.
    steady = (design.icc - kept) / (1 - kept) if kept < 1 else 0.0
    kinds = [
        (share * chance, _moments(epochs, rate, after))
        for share, epochs in ((steady, 1), (1 - steady, design.epochs))
        for chance, after in ((flipped, 1.0), (1 - flipped, rate))
    ]
    mean, square, cube, fourth = (math.fsum(weight * moments[power] for weight, moments in kinds) for power in range(4))
    # So many templates that all regress, and nothing else moves, are significant by the mid-p value 0.5 ** (n + 1).
    fewest = max(math.ceil(-math.log2(level) - 1), math.floor(tolerance * m) + 1)
    total = 0.0
    for chance, weight in _likely(m, 1 - kept):
        for regressed, share in _likely(m - chance, change):
            size = regressed + chance * square
            if not chance * square:
                total += weight * share * (regressed >= fewest)
                continue
            risen = regressed + chance * mean
            # Significant is a sum above z times the root of the sum of squares; both vary together.
            slope = z / (2 * math.sqrt(size))
            variance = square - mean * mean
            both = variance + slope * slope * (fourth - square * square) - 2 * slope * (cube - mean * square)
            significant = (risen - z * math.sqrt(size)) / math.sqrt(max(chance * both, 1e-12))
            beyond = (risen - tolerance * m) / math.sqrt(max(chance * variance, 1e-12))
            total += weight * share * _NORMAL.cdf(min(significant, beyond))
    return total


def _likely(n: int, p: float) -> list[tuple[int, float]]:
    """Numbers of successes and their probabilities, but for those that hardly ever are."""
    reach = 6 * math.sqrt(n * p * (1 - p)) + 3
    low, high = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    return [(k, _binomial(n, k, p)) for k in range(low, high + 1)]


def _moments(epochs: int, before: float, now: float) -> tuple[float, float, float, float]:
    """Of the change of a template whose runs are harmful by chance: the means of its first four powers."""
    old = [_binomial(epochs, k, before) for k in range(epochs + 1)]
    new = [_binomial(epochs, k, now) for k in range(epochs + 1)]
    changes = [((b - a) / epochs, p * q) for a, p in enumerate(old) for b, q in enumerate(new)]
    first, second, third, fourth = (math.fsum(p * change**power for change, p in changes) for power in (1, 2, 3, 4))
    return first, second, third, fourth


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
