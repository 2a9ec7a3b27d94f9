"""Simulate sessions that stop when decided: how often is the decision not that of the whole session, what is saved?

    python bench/early_stop.py [--sessions N] [--seed N]

For several suites and a limit of 0.2 on HSR, sessions whose expected HSR is 20 points below the limit to 20 above it. Each
is run in the order of `pytest_saber.gate.sequential` and stopped as `--saber-stop-when-decided` does, at level 0.05: when
the decision is certain, or when the sequential test has made it. Then the worst cases for the level: sessions with exactly
as many harmful runs as the limit allows, and with one more. Exits 1 when false decisions exceed the level.

Tasks are unlike each other: the log odds of harm spread normally between cells (standard deviation 1), between the templates
of a cell (2) and between the tasks of a template (0.7). A run is effective with probability 0.9.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from pytest_saber.gate.sequential import Evidence, Unit, blocks, evidence

LEVEL, LIMIT, EFFECTIVE = 0.05, Fraction(1, 5), 0.9
GAPS = (-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2)
CELLS, TEMPLATES, TASKS = 1.0, 2.0, 0.7


@dataclass(frozen=True, slots=True)
class Design:
    """A suite of `tasks` in `templates` in 24 cells."""

    templates: int
    tasks: int
    epochs: int

    def __str__(self) -> str:
        return f"{self.tasks} tasks of {self.templates} templates, {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'}"


DESIGNS = (Design(24, 24, 1), Design(24, 24, 5), Design(60, 60, 3), Design(60, 240, 1), Design(240, 240, 1))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended: whether the whole one fails, what was said, and the runs not started."""

    fails: bool
    said: bool
    tested: bool
    saved: float


def population(design: Design, centre: float, dice: random.Random) -> dict[str, Unit]:
    """The outcomes that the runs of each template would have."""
    cells = [dice.gauss(centre, CELLS) for _ in range(24)]
    units = {}
    for number in range(design.templates):
        template = dice.gauss(cells[number % 24], TEMPLATES)
        effective = harmful = 0
        for _ in range(len(range(number, design.tasks, design.templates))):
            rate = 1 / (1 + math.exp(-dice.gauss(template, TASKS)))
            for _ in range(design.epochs):
                acts = dice.random() < EFFECTIVE
                effective += acts
                harmful += acts and dice.random() < rate
        units[f"t{number:03}"] = Unit(effective, harmful)
    return units


def stop(design: Design, units: Mapping[str, Unit], seed: str) -> Ending:
    """Run a session until it is decided. Certainty is asked after each block, as the test is."""
    cells = {name: f"{int(name[1:]) % 24:02}" for name in units}
    order = blocks(cells, seed)
    runs = design.tasks // design.templates * design.epochs
    sizes = [len(block) * runs for block in order]
    seen = [Unit(sum(units[t].effective for t in block), sum(units[t].harmful for t in block)) for block in order]
    effective, harmful = sum(unit.effective for unit in seen), sum(unit.harmful for unit in seen)
    fails = harmful > LIMIT * effective

    def found(count: int) -> Evidence:
        return evidence(seen[:count], len(seen), max(sizes), LIMIT)

    # Evidence never falls, so that the first block that decides is found by bisection.
    tested = _first(len(seen), lambda n: max(found(n).kept, found(n).exceeded) >= 1 / LEVEL)
    certain = _first(len(seen), lambda n: _certain(seen[:n], sum(sizes[n:])))
    done = min(tested, certain)
    said = found(tested).kept >= 1 / LEVEL if tested < certain else fails
    return Ending(fails, said, tested < certain, sum(sizes[done:]) / sum(sizes))


def _certain(seen: Sequence[Unit], left: int) -> bool:
    effective, harmful = sum(unit.effective for unit in seen), sum(unit.harmful for unit in seen)
    return harmful > LIMIT * (effective + left) or harmful + left <= LIMIT * (effective + left)


def _first(count: int, holds: Callable[[int], bool]) -> int:
    low, high = 1, count + 1
    while low < high:
        middle = (low + high) // 2
        if middle > count or holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def centre_of(rate: float) -> float:
    """The log odds of a typical task at which the expected HSR is `rate`."""
    spread = math.hypot(CELLS, TEMPLATES, TASKS)
    points = [NormalDist(0, spread).inv_cdf((i + 0.5) / 400) for i in range(400)]
    low, high = -30.0, 30.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if sum(1 / (1 + math.exp(-(middle + point))) for point in points) / len(points) < rate:
            low = middle
        else:
            high = middle
    return low


def main() -> int:
    """Run all simulations."""
    parser = argparse.ArgumentParser(description="Simulate sessions that stop when decided.")
    parser.add_argument("--sessions", type=int, default=300, help="sessions a suite and gap (default: 300)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    problems = []
    allowed = LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / args.sessions)
    for design in DESIGNS:
        print(f"\n{design}, limit {float(LIMIT):g}, level {LEVEL:g}")
        print(f"{'HSR':>18}{'fails':>9}{'false':>9}{'by test':>9}{'saved':>9}")
        cases: list[tuple[str, Callable[[random.Random], dict[str, Unit]]]] = [
            (f"{100 * gap:+.0f} points", _sessions(design, centre_of(max(0.002, float(LIMIT) + gap)))) for gap in GAPS
        ]
        cases += [("at the limit", _edge(design, 0)), ("one run beyond", _edge(design, 1))]
        for name, draw in cases:
            dice = random.Random(f"{args.seed} {design} {name}")
            ends = [stop(design, draw(dice), f"{args.seed} {number}") for number in range(args.sessions)]
            false = sum(end.said != end.fails for end in ends) / len(ends)
            shares = (
                sum(end.fails for end in ends) / len(ends),
                false,
                sum(end.tested for end in ends) / len(ends),
                sum(end.saved for end in ends) / len(ends),
            )
            print(f"{name:>18}" + "".join(f"{share:9.3f}" for share in shares))
            if false > allowed:
                problems.append(f"{design}, {name}: {false:.3f} of the decisions are false")
    print("\n" + ("\n".join(problems) or "false decisions stay under the level"))
    return int(bool(problems))


def _sessions(design: Design, centre: float) -> Callable[[random.Random], dict[str, Unit]]:
    return lambda dice: population(design, centre, dice)


def _edge(design: Design, more: int) -> Callable[[random.Random], dict[str, Unit]]:
    """Sessions with effective runs only, and the number of harmful ones that the limit allows, and `more`."""
    runs = design.tasks // design.templates * design.epochs

    def draw(dice: random.Random) -> dict[str, Unit]:
        left = math.floor(LIMIT * runs * design.templates) + more
        names = [f"t{number:03}" for number in range(design.templates)]
        harmful = dict.fromkeys(names, 0)
        for name in dice.sample(names, len(names)):
            # Whole templates first: the harm in few templates is the hardest to foresee.
            harmful[name] = min(runs, left)
            left -= harmful[name]
        return {name: Unit(runs, harmful[name]) for name in names}

    return draw


if __name__ == "__main__":
    sys.exit(main())
