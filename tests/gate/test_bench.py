"""The simulations of the documentation: what they draw is what they say, and their standard errors are right."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def load(name: str) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


@pytest.fixture
def gates() -> Iterator[ModuleType]:
    yield from load("gate")


@pytest.fixture
def early() -> Iterator[ModuleType]:
    yield from load("early_stop")


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_release_is_worse_by_the_gap(gates: ModuleType, everywhere: bool) -> None:
    dice = random.Random(1)
    design = gates.Design(40, 40, 2, gates.World(releases=1.0, everywhere=everywhere))
    pairs = [pair for _ in range(250) for pair in gates.release(design, 0.2, dice)]
    old, new, n = (sum(values) for values in zip(*((p.base_harmful, p.harmful, p.effective) for p in pairs), strict=True))
    assert old / n == pytest.approx(gates.mean_rate(design.world), abs=0.015)
    assert (new - old) / n == pytest.approx(0.2, abs=0.015)


def test_what_power_assumes_is_what_the_middle_world_has(gates: ModuleType) -> None:
    icc, agreement = gates.correlations(gates.World(releases=gates.ASSUMED))
    assert icc == pytest.approx(gates.power.ASSUMED_ICC, abs=0.01)
    assert agreement == pytest.approx(gates.power.ASSUMED_AGREEMENT, abs=0.005)
    assert gates.correlations(gates.World(releases=0.0))[1] == pytest.approx(1)


def test_a_regression_that_power_names_is_found_as_often(
    gates: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "PROMISES", (gates.Design(24, 24, 3),))
    monkeypatch.setattr(gates, "SPREADS", (1.0,))
    assert gates.promises(300, 1) == []
    assert capsys.readouterr().out.splitlines()[-1].startswith("24 tasks, epochs 3             1    25.")
    monkeypatch.setattr(gates, "FOUND_AT_LEAST", 0.95)
    assert [text.partition(", 25.")[0] for text in gates.promises(100, 1)] == [
        "24 tasks of 24 templates, 3 epochs, disagreement 1"
    ] * 2


def test_models_of_one_session_share_a_baseline_and_the_level(gates: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = gates.models(gates.Design(24, 48, 3), 2, random.Random(1))
    assert [pair.base_harmful for pair in one] == [pair.base_harmful for pair in other]
    assert [pair.harmful for pair in one] != [pair.harmful for pair in other]
    monkeypatch.setattr(gates, "MODELS", (3,))
    monkeypatch.setattr(gates, "OF_MODELS", (gates.Design(24, 24, 1),))
    assert gates.several_models(200, 1) == []
    monkeypatch.setattr(gates, "level_of_each", lambda alpha, models: models * alpha)
    assert any("3 models: ours blocks 0." in text for text in gates.several_models(200, 1))


def test_the_lead_of_a_gate_is_a_mean_of_paired_differences(gates: ModuleType) -> None:
    # Differences 0, 1, 0, 0: mean 1/4, variance 1/4 - 1/16, over four releases.
    more, error = gates.lead([True, True, False, False], [True, False, False, False])
    assert (more, error) == (0.25, pytest.approx((3 / 16 / 4) ** 0.5))


def test_a_gate_that_loses_to_a_naive_one_is_a_problem(gates: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    blind = {"pytest-saber": lambda pairs: False, "unpaired z-test": gates.unpaired_z_test}
    gates.GATES.clear()
    gates.GATES.update(blind)
    problems = gates.compare_gates(gates.Design(24, 24, 1), 0.2, 60, 1)
    found = [problem for problem in problems if "unpaired z-test finds 0." in problem]
    assert any("1 epoch, 30 points: " in problem for problem in found)
    assert any("1 epoch, all tasks at disagreement 0: " in problem for problem in found)
    out = capsys.readouterr().out
    assert "ours finds more" in out
    assert "unpaired z-test keeps its level: 0." in out
    assert "; ours finds less in 9 of 10 alternatives" in out


def seen(gates: ModuleType, alarms: dict[float, tuple[int, int]], found: dict[str, tuple[int, int]]) -> object:
    """What two gates said of 1000 releases each: how many they blocked, the first ones."""
    gates.GATES.clear()
    gates.GATES.update({"pytest-saber": lambda pairs: False, "naive": lambda pairs: False})

    def said(counts: tuple[int, int]) -> list[list[bool]]:
        return [[number < count for number in range(1000)] for count in counts]

    unchanged = {spread: said(counts) for spread, counts in alarms.items()}
    return gates.Seen(unchanged, {what: said(counts) for what, counts in found.items()})


def test_a_naive_gate_is_no_standard_where_it_loses_its_level_in_any_world(gates: ModuleType) -> None:
    better = {"some templates at disagreement 0": (300, 400)}
    lines, problems = gates.judge("suite", seen(gates, {0.0: (20, 10), 2.0: (50, 70)}, better))
    assert lines == [
        "pytest-saber keeps its level: 0.020, 0.050",
        "naive does not keep its level: it blocks 0.070 at disagreement 2 of unchanged releases",
    ]
    assert problems == []


def test_a_naive_gate_that_keeps_its_level_must_nowhere_find_more(gates: ModuleType) -> None:
    found = {"5 points": (100, 100), "all tasks at disagreement 1": (300, 400)}
    lines, problems = gates.judge("suite", seen(gates, {0.0: (20, 10), 2.0: (50, 60)}, found))
    assert lines[1] == "naive keeps its level: 0.010, 0.060; ours finds less in 1 of 2 alternatives"
    assert problems == ["suite, all tasks at disagreement 1: naive finds 0.100 more than ours"]


def test_ours_must_keep_its_level_in_every_world(gates: ModuleType) -> None:
    _, problems = gates.judge("suite", seen(gates, {0.0: (80, 80), 2.0: (50, 80)}, {"5 points": (100, 900)}))
    assert problems == ["suite: ours blocks 0.080 at disagreement 0 of unchanged releases"]


def test_sessions_of_many_limits_end_as_they_should(early: ModuleType) -> None:
    dice = random.Random(3)
    safe = early.records(early.Design(24, 24, 1), -20.0, dice)
    ending = early.stop_session(safe, early.POLICY, "1")
    assert (ending.fails, ending.false) == (False, False)
    assert ending.saved > 0.1
    harmful = early.records(early.Design(24, 24, 1), 20.0, dice)
    ending = early.stop_session(harmful, early.POLICY, "1")
    assert (ending.fails, ending.false) == (True, False)
    assert ending.saved > 0.5


@pytest.mark.parametrize(("false", "wrong"), [(10, 0), (11, 1)])
def test_more_false_decisions_than_the_level_are_a_problem(
    early: ModuleType, capsys: pytest.CaptureFixture[str], false: int, wrong: int
) -> None:
    # Of 120 decisions 6 may be false, and by chance two standard errors more: 6 + 2 * (120 * 0.05 * 0.95) ** 0.5 = 10.8.
    ends = [early.Ending(False, number < false, True, 0.25) for number in range(120)]
    assert len(early._row("suite, +0 points", "+0 points", ends)) == wrong
    assert capsys.readouterr().out.split() == ["+0", "points", "0.000", f"{false / 120:.3f}", "1.000", "0.250"]


def test_the_sessions_own_limits_are_just_kept_or_one_is_not(early: ModuleType) -> None:
    session = early.records(early.Design(24, 24, 1), 0.0, random.Random(5))
    kept = early.stop_session(session, early._own_limits(session, None), "1")
    assert not kept.fails
    for number in range(len(early.POLICY.limits)):
        assert early.stop_session(session, early._own_limits(session, number), "1").fails
