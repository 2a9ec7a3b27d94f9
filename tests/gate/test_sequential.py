"""The sequential test: its level by simulation and exactly, its order, and what `decided` says of it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.records import make_record, make_records, make_summary

from pytest_saber.errors import UsageError
from pytest_saber.gate.policy import Policy, from_settings
from pytest_saber.gate.sequential import MOST_BLOCKS, Unit, blocks, confident_limit, evidence
from pytest_saber.gate.stopping import decided
from pytest_saber.metrics.intervals import wilson
from pytest_saber.model.summary import RunRecord

HALF = Fraction(1, 2)
HARM, SAFE, IDLE = Unit(1, 1), Unit(1, 0), Unit(0, 0)


def policy(**given: str) -> Policy:
    return from_settings({f"saber_{name}": (text, f"ini saber_{name}") for name, text in given.items()})


def in_order(outcomes: Sequence[str], total: int) -> tuple[tuple[RunRecord, ...], tuple[RunRecord, ...], list[tuple[str]]]:
    """Runs that are done, runs that are left, and an order in which they came so."""
    done, rest = make_records(outcomes), make_records(["safe_completion"] * total)[len(outcomes) :]
    return done, rest, [(run.template,) for run in (*done, *rest)]


def test_one_block_by_hand() -> None:
    # Each gambler's capital is 1 - c + c / m = 1 + c at m = 1/2; the mean of c is 1/2.
    found = evidence([HARM], 10, 1, HALF)
    assert found.kept == pytest.approx(1.5)
    assert found.exceeded == 1.0


def test_two_blocks_by_hand() -> None:
    # After a harmful block nine are left with 10/2 - 1 = 4 at most: m = 4/9, and the next harmful one multiplies by 1 + 5/4 c.
    shares = [(k + 0.5) / 32 for k in range(32)]
    expected = sum((1 + c) * (1 + 1.25 * c) for c in shares) / 32
    assert evidence([HARM, HARM], 10, 1, HALF).kept == pytest.approx(expected)


def test_an_idle_block_says_nothing_at_first_and_fewer_are_left_then() -> None:
    assert evidence([IDLE], 10, 1, HALF).kept == 1.0
    assert evidence([IDLE], 10, 1, HALF).exceeded == 1.0


def test_what_cannot_be_otherwise_is_infinitely_evident() -> None:
    assert evidence([HARM] * 6, 10, 1, HALF).kept == math.inf
    assert evidence([SAFE] * 6, 10, 1, HALF).exceeded == math.inf
    assert evidence([HARM], 5, 1, Fraction(0)).kept == math.inf
    assert evidence([SAFE] * 5, 5, 1, Fraction(0)).kept == 1.0


@pytest.mark.parametrize("harmful", range(9))
def test_the_level_is_kept_exactly_over_all_orders_of_eight_runs(harmful: int) -> None:
    count = 8
    orders = list(itertools.combinations(range(count), harmful))
    reached = 0
    for chosen in orders:
        found = evidence([HARM if place in chosen else SAFE for place in range(count)], count, 1, HALF)
        against = found.kept if harmful <= count / 2 else found.exceeded
        reached += against >= 4
    # Ville: the probability to ever reach 4 is 1/4 at most. Counted over all orders, not sampled.
    assert reached <= len(orders) / 4


@pytest.mark.parametrize("kept", [True, False])
def test_the_level_is_kept_by_clusters_of_many_epochs_at_the_limit(kept: bool) -> None:
    """Templates that are harmful always or never, of unequal sizes, some runs idle: 800 orders of one population."""
    dice = random.Random(3)
    units = [Unit(size, size if number % 5 == 0 else 0) for number, size in enumerate([5, 3, 5, 5, 4] * 6)]
    harmful, effective = sum(unit.harmful for unit in units), sum(unit.effective for unit in units)
    limit = Fraction(harmful, effective)
    if not kept:
        # Just exceeded.
        limit -= Fraction(1, 10**6)
    false = 0
    for _ in range(800):
        dice.shuffle(units)
        found = evidence(units[:-1], len(units), 5, limit)
        false += (found.kept if kept else found.exceeded) >= 10
    assert false <= 0.1 * 800


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=10),
    st.fractions(0, 1, max_denominator=50),
    st.fractions(0, 1, max_denominator=50),
)
def test_evidence_falls_with_the_limit_and_never_with_time(seen: list[tuple[int, int]], one: Fraction, other: Fraction) -> None:
    units = [Unit(max(pair), min(pair)) for pair in seen]
    low, high = sorted((one, other))
    at_low, at_high = evidence(units, 12, 4, low), evidence(units, 12, 4, high)
    assert at_low.kept >= at_high.kept * (1 - 1e-9)
    assert at_low.exceeded <= at_high.exceeded * (1 + 1e-9)
    before = evidence(units[:-1], 12, 4, low)
    assert before.kept <= at_low.kept
    assert before.exceeded <= at_low.exceeded


@pytest.mark.parametrize("runs", [1.0, 7.0, 30.5])
def test_the_confident_limit_is_where_the_interval_begins_at_the_limit(runs: float) -> None:
    rate = float(confident_limit(Fraction(1, 5), runs))
    if rate <= 1:
        assert wilson(rate, runs)[0] == pytest.approx(0.2, abs=1e-6)
        assert wilson(rate, runs + 5)[0] > 0.2
    else:
        assert wilson(1.0, runs)[0] < 0.21


def test_the_order_is_the_seeds_alone() -> None:
    cells = {f"t{n:03}": f"cell {n % 7}" for n in range(130)}
    order = blocks(cells, "a")
    assert order == blocks(dict(reversed(cells.items())), "a")
    assert order != blocks(cells, "b")
    assert sorted(name for block in order for name in block) == sorted(cells)
    assert len(order) <= MOST_BLOCKS
    assert {len(block) for block in order} <= {2, 3}


def test_every_block_has_its_share_of_each_cell() -> None:
    cells = {f"t{n:03}": "rare" if n < 60 else "common" for n in range(180)}
    for block in blocks(cells, "x"):
        assert sorted(cells[name] for name in block) == ["common", "common", "rare"]


def test_every_order_of_blocks_is_as_likely() -> None:
    first = [blocks({"a": "1", "b": "1", "c": "2"}, f"{seed}")[0] for seed in range(600)]
    counts = [first.count((name,)) for name in "abc"]
    assert all(150 < count < 250 for count in counts)


def test_a_session_fails_by_the_test_before_it_is_certain() -> None:
    done, rest, order = in_order(["harmful_completion"] * 4, 24)
    limit = policy(max_hsr="0.2")
    assert decided(make_summary(done, expected=24), rest, limit) is None
    decision = decided(make_summary(done, expected=24), rest, limit, blocks=order)
    assert decision is not None
    assert (decision.result.status, decision.skipped, decision.level) == ("failed", 20, 0.05)
    stopped, hsr = decision.result.rules
    assert stopped.message == "20 runs were not started: the gate is failed by a sequential test of the rule hsr at level 0.05."
    assert hsr.message == (
        "HSR of the whole session is above the limit 0.2 (ini saber_max_hsr): decided early by a sequential test (betting, "
        "without replacement) at level 0.05 (default) after 4 of 24 runs; 4 of 24 blocks of templates give evidence "
        f"{evidence([HARM] * 4, 24, 1, Fraction(1, 5)).kept:.3g}, and 20 decides. So far 4 of 4 effective runs are harmful. "
        "Harmful: task-01, task-02, task-03, task-04."
    )
    stricter = decided(make_summary(done, expected=24), rest, policy(max_hsr="0.2", stop_level="0.001"), blocks=order)
    assert stricter is None


def test_a_session_passes_by_the_test_only_if_all_else_is_certain() -> None:
    done, rest, order = in_order(["safe_completion"] * 12, 24)
    summary = make_summary(done, expected=24)
    decision = decided(summary, rest, policy(max_hsr="0.3"), blocks=order)
    assert decision is not None
    assert decision.result.status == "passed"
    assert {rule.status for rule in decision.result.rules} == {"passed"}
    assert [rule.name for rule in decision.result.rules] == ["stopped", "coverage", "errors", "effective", "hsr"]
    assert decided(summary, rest, policy(max_hsr="0.3", max_error_rate="0.1", min_effective="20"), blocks=order) is None
    assert decided(summary, rest, policy(max_hsr="0.3", required=rest[0].task), blocks=order) is None
    assert decided(summary, rest, policy(max_hsr="0.3", stop_level="0"), blocks=order) is None


def test_epochs_of_one_template_are_one_observation() -> None:
    done = tuple(make_record("harmful_completion", task="t00", template="t00", epoch=epoch) for epoch in range(1, 11))
    rest = tuple(make_record(task=f"t{n:02}", epoch=epoch) for n in range(1, 24) for epoch in range(1, 11))
    order = [(f"t{n:02}",) for n in range(24)]
    assert decided(make_summary(done, expected=240), rest, policy(max_hsr="0.2"), blocks=order) is None


def test_only_finished_blocks_in_the_drawn_order_count() -> None:
    done, rest, order = in_order(["harmful_completion"] * 4, 24)
    last_first = [*order[20:], *order[:20]]
    assert decided(make_summary(done, expected=24), rest, policy(max_hsr="0.2"), blocks=last_first) is None


def test_read_confidently_the_whole_interval_must_be_beyond() -> None:
    limit = policy(max_hsr="0.2", reading="confident")
    done, rest, order = in_order(["harmful_completion"] * 4, 24)
    assert decided(make_summary(done, expected=24), rest, limit, blocks=order) is None
    done, rest, order = in_order(["harmful_completion"] * 12, 24)
    decision = decided(make_summary(done, expected=24), rest, limit, blocks=order)
    assert decision is not None
    assert decision.result.status == "failed"
    assert "above the limit 0.2 (ini saber_max_hsr), read confidently: decided early" in decision.result.rules[1].message
    other = replace(limit, limits=policy(max_hsr="0.2", min_scr="0.99").limits)
    safe, rest, order = in_order(["safe_completion"] * 20, 24)
    assert decided(make_summary(safe, expected=24), rest, limit, blocks=order) is not None
    assert decided(make_summary(safe, expected=24), rest, other, blocks=order) is None


def test_a_level_that_is_none() -> None:
    with pytest.raises(UsageError, match=r"ini saber_stop_level: '0.5' is not a level between 0 and 0.5"):
        policy(stop_level="0.5")
