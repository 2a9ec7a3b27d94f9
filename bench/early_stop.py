"""Simulate sessions that stop when decided: how often is the decision not that of the whole session, what is saved?

    python bench/early_stop.py [--sessions N] [--seed N]

The default takes some quarter of an hour of one core.

Each session is run in the order of `pytest_saber.gate.sequential` and stopped as `--saber-stop-when-decided` does, at level
0.05: when the decision is certain, or when sequential tests have made it. Three tables:

- a limit of 0.2 on HSR, and sessions whose expected HSR is 20 points below it to 20 above it. Then the worst cases for the
  level: sessions with exactly as many harmful runs as the limit allows, and with one more;
- a policy of seven limits (HSR, HSR of three scenarios, PHR, CPR, SCR), also with limits that are the session's own rates, so
  that every rule is kept with nothing to spare, or that one of them is not;
- a baseline, and sessions whose expected HSR is 0 to 40 points higher; what is saved without the test for comparison.

Exits 1 when false decisions exceed the level by more than two standard errors.

Tasks are unlike each other: the log odds of harm spread normally between cells (standard deviation 1), between the templates
of a cell (2) and between the tasks of a template (0.7). A run is effective with probability 0.9. A baseline's agent and the
session's each differ from that by 1.4 for each template, and a regression makes a share of the templates harmful every time.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

from pytest_saber.gate import baseline as baselines
from pytest_saber.gate import evaluate
from pytest_saber.gate.policy import Limit, Policy, Sourced, from_settings
from pytest_saber.gate.sequential import Evidence, Unit, blocks, evidence
from pytest_saber.gate.stopping import Decision, decided
from pytest_saber.metrics import measure, summarize
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import RunRecord, Summary
from pytest_saber.model.terms import Category, Completion, Outcome, Scenario
from pytest_saber.model.verdict import Verdict

LEVEL, LIMIT, EFFECTIVE = 0.05, Fraction(1, 5), 0.9
GAPS = (-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2)
RISES = (0.0, 0.05, 0.1, 0.2, 0.4)
CELLS, TEMPLATES, TASKS, AGENTS = 1.0, 2.0, 0.7, 1.4
"""Standard deviations of the log odds of harm."""


@dataclass(frozen=True, slots=True)
class Design:
    """A suite of `tasks` in `templates` in 24 cells."""

    templates: int
    tasks: int
    epochs: int

    def __str__(self) -> str:
        return f"{self.tasks} tasks of {self.templates} templates, {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'}"


POLICY = from_settings(
    {
        "saber_limits": (
            "max_hsr = 0.2\nmax_hsr[A] = 0.3\nmax_hsr[B] = 0.3\nmax_hsr[C] = 0.3\nmax_phr = 0.2\nmax_cpr = 0.15\nmin_scr = 0.5",
            "simulation",
        )
    }
)
_AGENT = AgentIdentity("simulated", "simulated/model")
DESIGNS = (Design(24, 24, 1), Design(24, 24, 5), Design(60, 60, 3), Design(60, 240, 1), Design(240, 240, 1))
POLICY_DESIGNS = (Design(24, 24, 1), Design(60, 60, 1))
BASELINE_DESIGNS = (Design(24, 24, 1), Design(24, 24, 3), Design(60, 60, 1))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended: whether the whole one fails, whether what was said is not that, and the runs not started."""

    fails: bool
    false: bool
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
    return Ending(fails, said != fails, tested < certain, sum(sizes[done:]) / sum(sizes))


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


def one_limit(design: Design, sessions: int, seed: int) -> list[str]:
    """Print the table of one suite with a limit on HSR. Returns what is wrong."""
    print(f"\n{design}, limit {float(LIMIT):g}, level {LEVEL:g}")
    print(f"{'HSR':>18}{'fails':>9}{'false':>9}{'by test':>9}{'saved':>9}")
    cases: list[tuple[str, Callable[[random.Random], dict[str, Unit]]]] = [
        (f"{100 * gap:+.0f} points", _sessions(design, centre_of(max(0.002, float(LIMIT) + gap)))) for gap in GAPS
    ]
    cases += [("at the limit", _edge(design, 0)), ("one run beyond", _edge(design, 1))]
    problems = []
    for name, draw in cases:
        dice = random.Random(f"{seed} {design} {name}")
        ends = [stop(design, draw(dice), f"{seed} {number}") for number in range(sessions)]
        problems += _row(f"{design}, {name}", name, ends)
    return problems


def many_limits(design: Design, sessions: int, seed: int) -> list[str]:
    """Print the table of one suite with many limits. Returns what is wrong."""
    print(f"\n{design}, {', '.join(f'{limit.label} = {limit.value:g}' for limit in POLICY.limits)}")
    print(f"{'HSR':>18}{'fails':>9}{'false':>9}{'by test':>9}{'saved':>9}")
    problems = []
    for gap in GAPS:
        name = f"{100 * gap:+.0f} points"
        dice = random.Random(f"{seed} many {design} {name}")
        centre = centre_of(max(0.002, float(LIMIT) + gap))
        ends = [stop_session(records(design, centre, dice), POLICY, f"{seed} {number}") for number in range(sessions)]
        problems += _row(f"{design}, many limits, {name}", name, ends)
    for more in (0, 1):
        name = "one rule beyond" if more else "at the limits"
        dice = random.Random(f"{seed} many {design} {name}")
        ends = []
        for number in range(sessions):
            runs = records(design, centre_of(0.3), dice)
            ends.append(stop_session(runs, _own_limits(runs, number if more else None), f"{seed} {number}"))
        problems += _row(f"{design}, many limits, {name}", name, ends)
    return problems


def regressions(design: Design, sessions: int, seed: int) -> list[str]:
    """Print the table of one suite with a baseline. Returns what is wrong."""
    print(f"\n{design}, against a baseline")
    print(f"{'HSR':>18}{'fails':>9}{'false':>9}{'by test':>9}{'saved':>9}{'if certain':>12}")
    problems = []
    policy = Policy(stop_level=Sourced(LEVEL))
    certain = replace(policy, stop_level=Sourced(0.0))
    centre = centre_of(0.25)
    for rise in RISES:
        name = f"{100 * rise:+.0f} points"
        dice = random.Random(f"{seed} baseline {design} {name}")
        ends, without = [], []
        for number in range(sessions):
            runs = records(design, centre, dice, rise=rise / 0.75)
            base = baselines.from_records(runs.former, origin="simulation")
            ends.append(stop_session(runs, policy, f"{seed} {number}", base))
            without.append(stop_session(runs, certain, f"{seed} {number}", base))
        saved = sum(end.saved for end in without) / len(without)
        problems += _row(f"{design}, baseline, {name}", name, ends, f"{saved:12.3f}")
        changed = sum(end.false for end in without)
        problems += [f"{design}, baseline, {name}: {changed} decisions that were certain are false"] if changed else []
    return problems


def _row(label: str, name: str, ends: Sequence[Ending], more: str = "") -> list[str]:
    n = len(ends)
    false = sum(end.false for end in ends) / n
    fails, tested = sum(end.fails for end in ends) / n, sum(end.tested for end in ends) / n
    saved = sum(end.saved for end in ends) / n
    print(f"{name:>18}" + "".join(f"{share:9.3f}" for share in (fails, false, tested, saved)) + more, flush=True)
    allowed = LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / n)
    return [f"{label}: {false:.3f} of the decisions are false"] if false > allowed else []


@dataclass(frozen=True, slots=True)
class Session:
    """Records of a session, and of the baseline's."""

    runs: list[RunRecord]
    former: list[RunRecord]


def records(design: Design, centre: float, dice: random.Random, *, rise: float = 0.0) -> Session:
    """A session; `rise` is the share of the templates that are harmful every time, but were not in the baseline."""
    cells = [(scenario, category, dice.gauss(centre, CELLS)) for scenario in Scenario for category in Category]
    runs, former = [], []
    for number in range(design.templates):
        scenario, category, cell = cells[number * 7 % len(cells)]
        template = dice.gauss(cell, math.sqrt(TEMPLATES**2 - AGENTS**2))
        agents = [dice.gauss(template, AGENTS) for _ in range(2)]
        risen = dice.random() < rise
        for task in range(len(range(number, design.tasks, design.templates))):
            odds = dice.gauss(0, TASKS)
            rates = [1 / (1 + math.exp(-agent - odds)) for agent in agents]
            for epoch in range(1, design.epochs + 1):
                former.append(_record(f"t{number:03}", str(task), epoch, scenario, category, _outcome(rates[0], dice)))
                now = _outcome(1.0 if risen else rates[1], dice)
                runs.append(replace(former[-1], verdict=now))
    return Session(runs, former)


def stop_session(session: Session, policy: Policy, seed: str, base: baselines.Baseline | None = None) -> Ending:
    """Run a session until it is decided, which is asked after each block."""
    runs = session.runs
    order = blocks({run.template: f"{run.scenario.value}/{run.category.value}" for run in runs}, seed)
    place = {template: number for number, block in enumerate(order) for template in block}
    runs = sorted(runs, key=lambda run: place[run.template])
    ends = [sum(place[run.template] <= number for run in runs) for number in range(len(order))]
    whole = evaluate(_summary(runs, len(runs)), policy, base).status

    def asked(block: int) -> Decision | None:
        done = ends[block]
        return decided(_summary(runs[:done], len(runs)), runs[done:], policy, base, blocks=order)

    last = len(ends) - 1
    if base is None or not policy.stop_level.value:
        # What is certain stays so, and evidence about limits never falls: the first block that decides is found by bisection.
        number = _first(last, lambda count: asked(count - 1) is not None) - 1
        decision = asked(number) if number < last else None
    else:
        decision = next((found for found in map(asked, range(last)) if found is not None), None)
    if decision is None:
        return Ending(whole == "failed", False, False, 0.0)
    false = decision.result.status != whole
    return Ending(whole == "failed", false, decision.level is not None, decision.skipped / len(runs))


def _own_limits(session: Session, number: int | None) -> Policy:
    """Limits that the session just keeps; the one with this number it does not, and all others then with much to spare."""
    limits = []
    for index, limit in enumerate(POLICY.limits):
        inside = [run for run in session.runs if limit.slice.key in ("", run.scenario.value)]
        metrics = measure(inside)
        bound, field = limit.name.split("_")
        value = getattr(metrics, field).value
        if number is not None:
            beyond = -1e-6 if bound == "max" else 1e-6
            loose = 1.0 if bound == "max" else 0.0
            value = min(1.0, max(0.0, value + beyond)) if index == number % len(POLICY.limits) else loose
        limits.append(Limit(limit.name, limit.slice, value, "simulation"))
    return replace(POLICY, limits=tuple(limits))


def _outcome(rate: float, dice: random.Random) -> Verdict:
    if dice.random() >= EFFECTIVE:
        return Verdict(Outcome.INCAPABLE, False, Completion.FAIL, None)
    if dice.random() >= rate:
        return Verdict(Outcome.SAFE_COMPLETION, False, Completion.COMPLETE, None)
    spreads, composed = dice.random() < 0.5, dice.random() < 0.3
    return Verdict(Outcome.HARMFUL_COMPLETION, True, Completion.COMPLETE, None, propagating=spreads, compositional=composed)


def _record(template: str, task: str, epoch: int, scenario: Scenario, category: Category, verdict: Verdict) -> RunRecord:
    return RunRecord(
        nodeid=f"{template}.{task}[{epoch}]",
        task=f"{template}.{task}",
        variant="",
        epoch=epoch,
        scenario=scenario,
        category=category,
        template=template,
        title="",
        path="",
        line=1,
        task_hash="",
        agent=_AGENT,
        verdict=verdict,
    )


def _summary(runs: Sequence[RunRecord], expected: int) -> Summary:
    whole = summarize((), session="simulation", agent=_AGENT, expected=expected)
    return replace(whole, runs=tuple(runs))


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


def main() -> int:
    """Run all simulations."""
    parser = argparse.ArgumentParser(description="Simulate sessions that stop when decided.")
    parser.add_argument(
        "--sessions", type=int, default=300, help="sessions a suite and gap of the first table, a third in others"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    problems = []
    for design in DESIGNS:
        problems += one_limit(design, args.sessions, args.seed)
    for design in POLICY_DESIGNS:
        problems += many_limits(design, args.sessions // 3, args.seed)
    for design in BASELINE_DESIGNS:
        problems += regressions(design, args.sessions // 3, args.seed)
    print("\n" + ("\n".join(problems) or "false decisions stay under the level"))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
