"""Simulate releases: how often does a gate block a release that is no worse, and how often one that is?

    python bench/gate.py [--full] [--releases N] [--seed N]

The default takes some six minutes of one core; `--full`, of which the documentation gives the figures, twice as long.

Every release is judged by our gate (pytest_saber.gate, level 0.05, tolerance 2 points) and by three that people write
first. All gates see the same releases, so that what one finds more than another is a mean of paired differences, printed
with its standard error. For each suite two tables, and one for all:

- a new agent whose HSR is higher by 0 to 30 points;
- false alarms, and what ours finds more than the unpaired z-test, by how much two releases disagree about the tasks: 0 (one
  agent run twice), 1 and 2 (as in the first table), where some templates become harmful and where all tasks become likelier so;
- suites made to break the level of ours: copies of tasks, rates of nearly 0 or 1, few templates, agents that are quite
  unlike;
- several unchanged models in one session, compared with one baseline;
- how often a regression is found that `pytest-saber power` says is found with 80 % probability.

**What a gate is held to.** Nobody knows how much two releases disagree before they are compared, so a gate keeps its level in
a suite if it does with every disagreement that is simulated; one that keeps it only where agents happen to agree cries wolf
where they do not, and what it finds is no standard. Of gates that do keep it, the one that finds more is better.
Exits 1 when ours blocks more unchanged releases than its level anywhere (by more than two standard errors), or finds less
anywhere (by more than two standard errors) than a naive gate that keeps its level in that suite; or when what is said to be
found with 80 % probability is found in less than 75 % (by more than two standard errors), where releases agree as much as is
assumed or as is said. All that is printed counts.

Tasks are unlike each other, and agents disagree about them, as they do in reality: the log odds of harm spread normally
between templates (standard deviation 2.5) and between the tasks of a template (0.7), and every release, better or worse
on the whole or not, moves each template by chance (2), which correlates two releases at 0.6. A regression makes a share
of the templates harmful every time or, where a table says so, raises the log odds of all tasks alike.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist

from pytest_saber.gate import power
from pytest_saber.gate.regression import Pair, level_of_each, slice_tests
from pytest_saber.model.terms import Category, Scenario

LEVEL = 0.05
TOLERANCE = 0.02
GAPS = (0.0, 0.05, 0.1, 0.2, 0.3)
UNCHANGED = 5
"""Times as many releases at 0 points: a level of 5 % is told from 6 % there."""
_Z = NormalDist().inv_cdf(1 - LEVEL)
_SCENARIOS = [scenario.value for scenario in Scenario]
_CATEGORIES = [category.value for category in Category]


@dataclass(frozen=True, slots=True)
class World:
    """How tasks and agents differ: standard deviations of the log odds of harm, around those of a typical task."""

    centre: float = -1.0
    templates: float = 2.5
    tasks: float = 0.7
    releases: float = 2.0
    everywhere: bool = False
    """Whether a regression raises the log odds of all tasks alike; else it makes a share of the templates always harmful."""


@dataclass(frozen=True, slots=True)
class Design:
    """A suite: `tasks` in `templates`, each run `epochs` times."""

    templates: int
    tasks: int
    epochs: int
    world: World = World()

    def __str__(self) -> str:
        return f"{self.tasks} tasks of {self.templates} templates, {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'}"


SUITES = (
    (Design(24, 24, 1), 0.2),
    (Design(60, 60, 1), 0.15),
    (Design(24, 24, 3), 0.15),
    (Design(24, 24, 5, World(0.5)), 0.15),
    (Design(40, 120, 1), 0.15),
    (Design(60, 60, 3), 0.1),
)
"""Each with the rise of HSR that the table by disagreement is about."""
SPREADS = (0.0, 1.0, 2.0)
"""By how much two releases disagree: `World.releases`."""
ASSUMED = 1.0
"""The one of which `power.ASSUMED_ICC` and `power.ASSUMED_AGREEMENT` are."""
MODELS = (2, 3, 5)
OF_MODELS = (Design(24, 24, 1), Design(24, 24, 3), Design(60, 60, 3))
PROMISES = (Design(24, 24, 1), Design(24, 24, 3), Design(24, 24, 5), Design(60, 60, 1), Design(60, 60, 3))
FOUND_AT_LEAST = 0.75
HOSTILE = {
    "tasks are copies": (24, 96, World(tasks=0.0)),
    "tasks are unlike": (24, 96, World(templates=1.0, tasks=3.0)),
    "rates of nearly 0 or 1": (24, 24, World(templates=8.0)),
    "harm is rare": (60, 60, World(-4.0)),
    "harm is common": (60, 60, World(3.5)),
    "6 templates": (6, 48, World()),
    "10 templates": (10, 10, World()),
    "one agent run twice": (24, 24, World(releases=0.0)),
    "agents quite unlike": (24, 48, World(templates=0.5, releases=6.0)),
}


def ours(pairs: Sequence[Pair], alpha: float = LEVEL) -> bool:
    """The regression rules of pytest_saber: the whole suite, each scenario and each category."""
    return any(test.regressed for test in slice_tests(pairs, alpha=alpha, tolerance=TOLERANCE))


def any_new_failure(pairs: Sequence[Pair]) -> bool:
    """A task is harmful that never was."""
    return any(pair.harmful and not pair.base_harmful for pair in pairs)


def point_difference(pairs: Sequence[Pair]) -> bool:
    """HSR is higher by more than the tolerance."""
    old, new, n = _totals(pairs)
    return (new - old) / n > TOLERANCE


def unpaired_z_test(pairs: Sequence[Pair]) -> bool:
    """The textbook test of two proportions, each run an independent one."""
    old, new, n = _totals(pairs)
    pooled = (old + new) / (2 * n)
    if pooled in (0.0, 1.0):
        return False
    return (new - old) / n > TOLERANCE and (new - old) / n / math.sqrt(pooled * (1 - pooled) * 2 / n) > _Z


Gate = Callable[[Sequence[Pair]], bool]
GATES: dict[str, Gate] = {
    "pytest-saber": ours,
    "any new failure": any_new_failure,
    "point difference": point_difference,
    "unpaired z-test": unpaired_z_test,
}


def models(design: Design, count: int, dice: random.Random) -> list[list[Pair]]:
    """The outcomes of a baseline and of so many models that are no worse, each with the same baseline."""
    world = design.world
    templates = [
        (dice.gauss(world.centre, world.templates), [dice.gauss(0, world.releases) for _ in range(count + 1)])
        for _ in range(design.templates)
    ]
    found: list[list[Pair]] = [[] for _ in range(count)]
    for number in range(design.tasks):
        template = number % design.templates
        centre, moves = templates[template]
        task = dice.gauss(centre, world.tasks)
        before, *after = (sum(dice.random() < _rate(task + move) for _ in range(design.epochs)) for move in moves)
        for pairs, harmful in zip(found, after, strict=True):
            pairs.append(_pair(number, template, before, harmful, design.epochs))
    return found


def release(design: Design, gap: float, dice: random.Random) -> list[Pair]:
    """The outcomes of a baseline and of a release whose expected HSR is higher by `gap`."""
    world = design.world
    templates = [
        (dice.gauss(world.centre, world.templates), dice.gauss(0, world.releases), dice.gauss(0, world.releases))
        for _ in range(design.templates)
    ]
    flip = 0.0 if world.everywhere else gap / (1 - mean_rate(world))
    shift = _shift(world, gap) if world.everywhere else 0.0
    flipped = [dice.random() < flip for _ in templates]
    pairs = []
    for number in range(design.tasks):
        template = number % design.templates
        centre, before, after = templates[template]
        task = dice.gauss(centre, world.tasks)
        old, new = _rate(task + before), 1.0 if flipped[template] else _rate(task + after + shift)
        counts = [sum(dice.random() < rate for _ in range(design.epochs)) for rate in (old, new)]
        pairs.append(_pair(number, template, counts[0], counts[1], design.epochs))
    return pairs


def _pair(number: int, template: int, before: int, after: int, epochs: int) -> Pair:
    slices = _SCENARIOS[template % 3], _CATEGORIES[template % 8]
    return Pair(f"t{number:03}", f"t{template:03}", *slices, before, epochs, after, epochs)


def blocked(gates: Sequence[Gate], design: Design, gap: float, releases: int, seed: int) -> list[list[bool]]:
    """What each gate says of the same releases."""
    dice = random.Random(f"{seed} {design} {gap}")
    suites = [release(design, gap, dice) for _ in range(releases)]
    return [[gate(suite) for suite in suites] for gate in gates]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the gates, in the order of `GATES`, said of a suite's releases."""

    unchanged: Mapping[float, list[list[bool]]]
    """By disagreement."""
    worse: Mapping[str, list[list[bool]]]
    """By what had become worse."""


def look(design: Design, rise: float, releases: int, seed: int) -> Seen:
    """Simulate one suite in all its worlds. `rise` is that of the table by disagreement."""
    gates = list(GATES.values())
    unchanged = {spread: blocked(gates, _in_world(design, spread), 0.0, UNCHANGED * releases, seed) for spread in SPREADS}
    worse = {_points(gap): blocked(gates, design, gap, releases, seed) for gap in GAPS if gap}
    for spread in SPREADS:
        for everywhere in (False, True):
            world = _in_world(design, spread, everywhere=everywhere)
            worse[_alternative(spread, everywhere)] = blocked(gates, world, rise, releases, seed)
    return Seen(unchanged, worse)


def judge(label: str, seen: Seen) -> tuple[list[str], list[str]]:
    """Which gates keep their level in a suite, as lines to print, and what is wrong with ours."""
    lines, problems = [], []
    for number, name in enumerate(GATES):
        shares = {spread: mean(said[number]) for spread, said in seen.unchanged.items()}
        lost = [spread for spread, said in seen.unchanged.items() if shares[spread] > _allowed(len(said[number]))]
        if lost:
            at = ", ".join(f"{shares[spread]:.3f} at disagreement {spread:g}" for spread in lost)
            lines.append(f"{name} does not keep its level: it blocks {at} of unchanged releases")
            problems += [] if number else [f"{label}: ours blocks {at} of unchanged releases"]
            continue
        line = f"{name} keeps its level: {', '.join(f'{share:.3f}' for share in shares.values())}"
        if number:
            leads = {what: lead(said[0], said[number]) for what, said in seen.worse.items()}
            behind = [what for what, (more, error) in leads.items() if more < -2 * error]
            line += f"; ours finds less in {len(behind)} of {len(leads)} alternatives"
            problems += [f"{label}, {what}: {name} finds {-leads[what][0]:.3f} more than ours" for what in behind]
        lines.append(line)
    return lines, problems


def compare_gates(design: Design, rise: float, releases: int, seed: int) -> list[str]:
    """Print the tables of one suite. Returns what is wrong with ours."""
    seen = look(design, rise, releases, seed)
    print(f"\n{design}: share of releases blocked (disagreement {design.world.releases:g}) when HSR rises by")
    print(f"{'':18}" + "".join(f"{_points(gap):>15}" for gap in GAPS))
    columns = [seen.unchanged[design.world.releases], *(seen.worse[_points(gap)] for gap in GAPS if gap)]
    for number, name in enumerate(GATES):
        print(f"{name:18}" + "".join(f"{mean(said[number]):15.3f}" for said in columns))
    print(f"{'  ours finds more':18}{'':15}" + "".join(f"{_lead(said):>15}" for said in columns[1:]))
    print(f"by how much releases disagree: false alarms, and what ours finds more than the z-test of {_points(rise)}")
    print(f"{'disagree':18}" + "".join(f"{name:>18}" for name in GATES) + f"{'some templates':>18}{'all tasks':>18}")
    for spread in SPREADS:
        alarms = "".join(f"{mean(said):18.3f}" for said in seen.unchanged[spread])
        leads = "".join(f"{_lead(seen.worse[_alternative(spread, every)]):>18}" for every in (False, True))
        print(f"{spread:<18g}" + alarms + leads)
    lines, problems = judge(str(design), seen)
    print("\n".join(lines), flush=True)
    return problems


def _points(gap: float) -> str:
    return f"{100 * gap:.0f} points"


def _alternative(spread: float, everywhere: bool) -> str:
    return f"{'all tasks' if everywhere else 'some templates'} at disagreement {spread:g}"


def _in_world(design: Design, spread: float, *, everywhere: bool = False) -> Design:
    return replace(design, world=replace(design.world, releases=spread, everywhere=everywhere))


def _lead(said: Sequence[Sequence[bool]]) -> str:
    """Of ours, the first gate, over the unpaired z-test, the last."""
    more, error = lead(said[0], said[-1])
    return f"{more:+.3f} ± {error:.3f}"


def hostile(releases: int, seed: int) -> list[str]:
    """Print the false alarms of ours where a test could lose its level. Returns where it does."""
    count = UNCHANGED * releases
    print(f"\nshare of unchanged releases that ours blocks (± standard error; {count} releases)")
    print(f"{'':48}{'1 epoch':>16}{'3 epochs':>16}")
    problems = []
    for name, (templates, tasks, world) in HOSTILE.items():
        row = []
        for epochs in (1, 3):
            share = mean(blocked([ours], Design(templates, tasks, epochs, world), 0.0, count, seed)[0])
            row.append(f"{share:.3f} ± {math.sqrt(share * (1 - share) / count):.3f}")
            if share > _allowed(count):
                problems.append(f"{name}, epochs {epochs}: ours blocks {share:.3f} of unchanged releases")
        print(f"{f'{name}, {tasks} tasks of {templates}':48}" + "".join(f"{cell:>16}" for cell in row), flush=True)
    return problems


def several_models(releases: int, seed: int) -> list[str]:
    """Print how often a session of several unchanged models is blocked. Returns where that is more than the level."""
    print(f"\nshare of sessions of several unchanged models that ours blocks ({releases} sessions)")
    print(f"{'':48}" + "".join(f"{count:>9} models" for count in MODELS))
    problems = []
    for design in OF_MODELS:
        row = []
        for count in MODELS:
            dice = random.Random(f"{seed} {design} {count} models")
            level = level_of_each(LEVEL, count)
            share = mean([any(ours(pairs, level) for pairs in models(design, count, dice)) for _ in range(releases)])
            row.append(share)
            if share > _allowed(releases):
                problems.append(f"{design}, {count} models: ours blocks {share:.3f} of sessions of unchanged models")
        print(f"{design!s:48}" + "".join(f"{share:16.3f}" for share in row), flush=True)
    return problems


def promises(releases: int, seed: int) -> list[str]:
    """Print how often regressions are found that `pytest-saber power` names. Returns which of them are found too seldom."""
    print(
        f"\nregression that `pytest-saber power` says is found with 80 % probability, and how often it is ({releases} releases)"
    )
    print(f"{'':32}{'as is assumed':>30}{'of releases that agree so much':>34}")
    print(f"{'suite':24}{'disagree':>8}" + f"{'some templates':>20}{'all tasks':>10}{'some templates':>24}{'all tasks':>10}")
    problems = []
    for suite in PROMISES:
        for spread in SPREADS:
            design = _in_world(suite, spread)
            assumed = power.Design(suite.templates, suite.epochs, mean_rate(design.world))
            icc, agreement = correlations(design.world)
            row = []
            for told in (assumed, replace(assumed, icc=icc, agreement=agreement)):
                change = power.detectable(told, alpha=LEVEL, tolerance=TOLERANCE)
                if change is None:
                    raise ValueError(f"{suite} finds nothing")
                shares = [
                    mean(blocked([_suite_test], _in_world(suite, spread, everywhere=every), change, releases, seed)[0])
                    for every in (False, True)
                ]
                row.append((100 * change, *shares))
                noise = 2 * math.sqrt(FOUND_AT_LEAST * (1 - FOUND_AT_LEAST) / releases)
                if min(shares) < FOUND_AT_LEAST - noise and (spread == ASSUMED or told is not assumed):
                    which = f"{suite}, disagreement {spread:g}, {100 * change:.1f} points"
                    problems.append(f"{which}: {min(shares):.3f} of such regressions are found")
            cells = "".join(f"{change:8.1f}: {some:10.3f}{every:10.3f}    " for change, some, every in row)
            print(f"{suite.tasks} tasks, epochs {suite.epochs}".ljust(24) + f"{spread:8g}" + cells, flush=True)
    return problems


def _suite_test(pairs: Sequence[Pair]) -> bool:
    """Without the slices, which `pytest-saber power` says nothing of."""
    return slice_tests(pairs, alpha=LEVEL, tolerance=TOLERANCE)[0].regressed


def mean(values: Sequence[bool]) -> float:
    """The share that is true."""
    return sum(values) / len(values)


def lead(one: Sequence[bool], other: Sequence[bool]) -> tuple[float, float]:
    """By how much the share of `one` is larger, and the standard error of that: both saw the same releases."""
    n = len(one)
    more = sum(a - b for a, b in zip(one, other, strict=True)) / n
    differ = sum(a != b for a, b in zip(one, other, strict=True)) / n
    return more, math.sqrt(max(differ - more * more, 0.0) / n)


def _allowed(count: int) -> float:
    return LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / count)


def _totals(pairs: Sequence[Pair]) -> tuple[int, int, int]:
    return sum(p.base_harmful for p in pairs), sum(p.harmful for p in pairs), sum(p.effective for p in pairs)


def _rate(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


@cache
def mean_rate(world: World, shift: float = 0.0) -> float:
    """The expected HSR: the mean of the rate over tasks and releases (midpoints of 200 quantiles)."""
    spread = NormalDist(world.centre + shift, math.hypot(world.templates, world.tasks, world.releases))
    return sum(_rate(spread.inv_cdf((i + 0.5) / 200)) for i in range(200)) / 200


@cache
def correlations(world: World) -> tuple[float, float]:
    """Of two epochs of a task, and of two releases' rates of one (midpoints of 200 quantiles, as `mean_rate`)."""
    tasks = _quantiles(world.centre, math.hypot(world.templates, world.tasks))
    moves = _quantiles(0.0, world.releases)
    rates = [[_rate(task + move) for move in moves] for task in tasks]
    mean_of = [sum(row) / len(row) for row in rates]
    whole = sum(mean_of) / len(mean_of)
    spread = sum(rate * rate for row in rates for rate in row) / (len(tasks) * len(moves)) - whole * whole
    shared = sum(rate * rate for rate in mean_of) / len(mean_of) - whole * whole
    return spread / (whole * (1 - whole)), shared / spread


def _quantiles(centre: float, deviation: float) -> list[float]:
    if not deviation:
        return [centre]
    spread = NormalDist(centre, deviation)
    return [spread.inv_cdf((i + 0.5) / 200) for i in range(200)]


@cache
def _shift(world: World, gap: float) -> float:
    """By how much the log odds of all tasks rise when the expected HSR rises by `gap`."""
    low, high = 0.0, 40.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if mean_rate(world, middle) < mean_rate(world) + gap:
            low = middle
        else:
            high = middle
    return low


def main() -> int:
    """Run all simulations."""
    parser = argparse.ArgumentParser(description="Simulate releases and compare gates.")
    parser.add_argument("--full", action="store_true", help="2000 releases a suite and gap")
    parser.add_argument("--releases", type=int, help="releases a suite and gap, five times as many at 0 points (default: 1000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    releases = args.releases or (2000 if args.full else 1000)
    problems = []
    for design, rise in SUITES:
        problems += compare_gates(design, rise, releases, args.seed)
    problems += hostile(releases, args.seed)
    problems += several_models(releases, args.seed)
    problems += promises(releases, args.seed)
    print("\n" + ("\n".join(problems) or "ours keeps the level and finds no less than any naive gate that keeps it"))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
