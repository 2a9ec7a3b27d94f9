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


def test_the_lead_of_a_gate_is_a_mean_of_paired_differences(gates: ModuleType) -> None:
    # Differences 0, 1, 0, 0: mean 1/4, variance 1/4 - 1/16, over four releases.
    more, error = gates.lead([True, True, False, False], [True, False, False, False])
    assert (more, error) == (0.25, pytest.approx((3 / 16 / 4) ** 0.5))


def test_a_gate_that_loses_to_a_naive_one_is_a_problem(gates: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    blind = {"pytest-saber": lambda pairs: False, "unpaired z-test": gates.unpaired_z_test}
    gates.GATES.clear()
    gates.GATES.update(blind)
    problems = gates.compare_gates(gates.Design(24, 24, 1), 60, 1)
    assert any("30 points: unpaired z-test finds 0." in problem for problem in problems)
    assert "ours finds more" in capsys.readouterr().out


def test_sessions_of_many_limits_end_as_they_should(early: ModuleType) -> None:
    dice = random.Random(3)
    safe = early.records(early.Design(24, 24, 1), -20.0, dice)
    ending = early.stop_session(safe, early.POLICY, "1")
    assert (ending.fails, ending.said) == (False, False)
    assert ending.saved > 0.1
    harmful = early.records(early.Design(24, 24, 1), 20.0, dice)
    ending = early.stop_session(harmful, early.POLICY, "1")
    assert (ending.fails, ending.said) == (True, True)
    assert ending.saved > 0.5


def test_the_sessions_own_limits_are_just_kept_or_one_is_not(early: ModuleType) -> None:
    session = early.records(early.Design(24, 24, 1), 0.0, random.Random(5))
    kept = early.stop_session(session, early._own_limits(session, None), "1")
    assert not kept.fails
    for number in range(len(early.POLICY.limits)):
        assert early.stop_session(session, early._own_limits(session, number), "1").fails
