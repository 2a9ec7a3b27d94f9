"""What the suite can detect, said before its runs also where there is no baseline."""

from __future__ import annotations

import pytest
from support.suites import Suite, document

from pytest_saber.gate.header import power_line
from pytest_saber.gate.policy import from_settings

SAFE = "--saber-model=reference/safe"
LINE = (
    "saber power: a regression of [34]?.? points or more against a baseline of this suite is detected with 80 % probability "
    "(10 templates, epochs 3, HSR 0.50 assumed, *"
)


@pytest.fixture
def ten(suite: Suite) -> Suite:
    """Ten tasks of one template each, one with variants."""
    suite.tasks(*(f"t{number}" for number in range(9)))
    suite.add("tasks/v.yaml", document("v", variants=("npm", "pip")))
    return suite


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_it_is_said_once_before_the_runs(ten: Suite, workers: tuple[str, ...]) -> None:
    result = ten.run(SAFE, "--saber-max-hsr=0.5", "--saber-epochs=3", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines([LINE, "*[[]100%]"])
    assert sum(line.startswith("saber power: ") for line in result.outlines) == 1


def test_it_is_part_of_collect_only(ten: Suite) -> None:
    result = ten.run(SAFE, "--saber-max-hsr=0.5", "--saber-epochs=3", "--collect-only")
    result.stdout.fnmatch_lines(["collected 33 items", LINE])
    assert ten.opened == []


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("--saber-max-hsr=2", "--saber-max-hsr: '2' is not a limit (max_hsr) from 0 to 1 (or 0% to 100%); did you mean 2%?"),
        ("--saber-baseline=no.json", "*no.json: there is no such baseline; make one with --saber-update-baseline"),
    ],
)
def test_collect_only_says_that_no_run_would_start(ten: Suite, argument: str, why: str) -> None:
    result = ten.run(SAFE, argument, "--collect-only")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["collected 11 items", f"saber gate: no run would start: {why}"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_models_share_the_level(ten: Suite, workers: tuple[str, ...]) -> None:
    assert ten.run(SAFE, "--saber-baseline=b.json", "--saber-update-baseline").ret == 0
    both = (SAFE, "--saber-model=reference/none")
    level = "*, level 0.025 for each of 2 models)*"
    ten.run(*both, "--saber-max-hsr=0.5", *workers).stdout.fnmatch_lines([f"saber power: {level}"])
    ten.run(*both, "--saber-baseline=b.json", *workers).stdout.fnmatch_lines([f"saber power: {level}"])


@pytest.mark.parametrize(
    "arguments",
    [(), ("--saber-max-hsr=1", "-q"), ("--saber-max-hsr=1", "--no-header"), ("--saber-max-hsr=1", "--saber-shard=1/2")],
)
def test_it_is_not_said_where_nothing_is_gated_or_no_header_is_wanted(ten: Suite, arguments: tuple[str, ...]) -> None:
    ten.run(SAFE, *arguments).stdout.no_fnmatch_line("saber power:*")


def test_a_session_that_makes_a_baseline_says_so(ten: Suite) -> None:
    result = ten.run(SAFE, "--saber-baseline=b.json", "--saber-update-baseline")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["saber policy: gate (because of the baseline)*", "saber baseline: b.json is made of this session"]
    )
    again = ten.run(SAFE, "--saber-baseline=b.json")
    again.stdout.fnmatch_lines(["saber power: a regression of * points or more against the baseline is detected *"])
    assert sum(line.startswith("saber power: ") for line in again.outlines) == 1


def test_it_never_takes_long() -> None:
    policy = from_settings({"saber_max_hsr": ("0.2", "test")})
    assert power_line(policy, templates=401, epochs=3) == (
        "saber power: `pytest-saber power --templates 401 --hsr 0.50` says what so many templates detect, which takes seconds"
    )


def test_a_suite_that_detects_nothing_says_so(suite: Suite) -> None:
    suite.tasks("a", "b")
    result = suite.run(SAFE, "--saber-max-hsr=0")
    result.stdout.fnmatch_lines(
        [
            "saber power: no regression against a baseline of this suite is detected with 80 % probability (2 templates, *): "
            "this gate cannot detect its own tolerance of 2 points, or any other regression"
        ]
    )
