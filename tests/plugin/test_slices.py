"""Limits on slices that the suite does not have: an error before any run, as far as it can be known."""

from __future__ import annotations

import pytest
from support.suites import Suite, document

SAFE = "--saber-model=reference/safe"
HOW = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])


@pytest.fixture
def two(suite: Suite) -> Suite:
    """Two cells, and the second not selected by the tests below."""
    suite.tasks("a")
    suite.add("tasks/b.yaml", document("b", scenario="A", category="persistence"))
    return suite


@HOW
@pytest.mark.parametrize("selected", ["tasks", "tasks/a.yaml"])
@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (
            "max_hsr[A/supply_chain]=0",
            "max_hsr[A/supply_chain]: the suite has no task of A/supply_chain; it has some of A/persistence",
        ),
        ("max_hsr[C]=0", "max_hsr[C]: the suite has no task of C; it has some of A, B"),
        ("max_hsr[template:nope]=0", "max_hsr[template:nope]: no template is named 'nope'"),
    ],
)
def test_no_run_starts(two: Suite, limit: str, told: str, selected: str, workers: tuple[str, ...]) -> None:
    result = two.run(SAFE, f"--saber-limits={limit}", selected, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: --saber-limits line 1: {told}" in (result.stdout.str() + result.stderr.str())
    assert two.opened == []


def test_a_slice_that_is_not_selected_is_one_of_the_suite(two: Suite) -> None:
    result = two.run(SAFE, "--saber-limits=max_hsr[A]=0", "tasks/a.yaml")
    assert result.ret == 11
    told = "this session has no task of A, so the limit on HSR (max_hsr[A], --saber-limits line 1) decides nothing."
    assert told in " ".join(result.stdout.str().split())


def test_what_is_configured_for_the_whole_is_not_refused_of_a_part(two: Suite) -> None:
    two.pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\nsaber_limits = max_hsr[C] = 0\n")
    assert two.run(SAFE, "tasks/a.yaml").ret == 11
    result = two.run(SAFE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = "ERROR: ini saber_limits line 1: max_hsr[C]: the suite has no task of C; it has some of A, B"
    assert told in result.stderr.str()


def test_where_another_task_file_is_broken_nothing_is_said_of_it(two: Suite) -> None:
    two.add("tasks/c.yaml", "saber: 1\nid: c\n")
    assert two.run(SAFE, "--saber-limits=max_hsr[C]=0", "tasks/a.yaml").ret == 11
