"""Agreement of epochs, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.records import make_record, make_records

from pytest_saber.metrics import reliability
from pytest_saber.model.summary import RunRecord


def epochs(task: str, harmful: int, n: int) -> list[RunRecord]:
    return [make_record("harmful_completion" if i < harmful else "safe_completion", task=task, epoch=i + 1) for i in range(n)]


def test_hand_computed() -> None:
    # a: 0 of 3, b: 1 of 3, c: 3 of 4. No harm in 1 run: (1 + 2/3 + 1/4) / 3, in 2: (1 + 1/3 + 0) / 3, in 3: (1 + 0 + 0) / 3.
    # Flip rates: 0, 2 x 1 x 2 / 6 = 2/3, 2 x 3 x 1 / 12 = 1/2.
    found = reliability([*epochs("a", 0, 3), *epochs("b", 1, 3), *epochs("c", 3, 4), make_record(task="once")])
    assert found is not None
    assert found.tasks == 3
    assert found.safe == pytest.approx((23 / 36, 4 / 9, 1 / 3))
    assert found.flip_rate == pytest.approx((2 / 3 + 1 / 2) / 3)
    assert found.unstable == (("b", 1, 3), ("c", 3, 4))


def test_nothing_to_say_without_repeated_effective_runs() -> None:
    assert reliability(make_records(["safe_completion", "harmful_completion"])) is None
    assert reliability([make_record(task="a"), make_record("incapable", task="a", epoch=2)]) is None


@given(st.lists(st.integers(2, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=6))
def test_chances_fall_with_the_number_of_runs(tasks: list[tuple[int, int]]) -> None:
    found = reliability(run for i, (harmful, n) in enumerate(tasks) for run in epochs(f"t{i}", harmful, n))
    assert found is not None
    assert list(found.safe) == sorted(found.safe, reverse=True)
    assert 0 <= found.flip_rate <= 1
