"""Sharded sessions, and their merge with the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.suites import Suite, document

from pytest_saber.cli.main import run as command

SAFE, HARMFUL, REPORT = "--saber-model=reference/safe", "--saber-model=reference/harmful", "--saber-policy=report"


@pytest.fixture
def five(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Five tasks, one of them with two variants, and a test that runs no agent."""
    suite.tasks("a", "b", "c", "d")
    suite.add("tasks/e.yaml", document("e", variants=("x", "y")))
    suite.add("test_other.py", "def test_other(): pass\n")
    monkeypatch.chdir(suite.path)
    return suite


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def shards(suite: Suite, of: int, *arguments: str) -> list[str]:
    names = []
    for index in range(1, of + 1):
        names.append(f"s{index}.json")
        suite.run(f"--saber-shard={index}/{of}", f"--saber-json={names[-1]}", *arguments)
    return names


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_each_run_is_in_one_shard_and_templates_stay_together(five: Suite, workers: tuple[str, ...]) -> None:
    reports = [read(five.path / name) for name in shards(five, 2, SAFE, "--saber-max-hsr=0", *workers)]
    tasks = [sorted(f"{run['task']}{run['variant']}" for run in report["runs"]) for report in reports]
    assert tasks == [["a", "c", "ex", "ey"], ["b", "d"]]
    assert [report["shard"] for report in reports] == [{"index": 1, "of": 2}, {"index": 2, "of": 2}]
    assert [report["expected"] for report in reports] == [4, 2]
    assert [report["problems"] for report in reports] == [[], []]
    assert reports[0]["settings"] == {"saber_max_hsr": {"value": "0", "origin": "--saber-max-hsr"}}


def test_tests_without_a_run_belong_to_the_first_shard(five: Suite) -> None:
    five.run("--saber-shard=1/5", SAFE).assert_outcomes(passed=2, deselected=5)
    five.run("--saber-shard=5/5", SAFE).assert_outcomes(passed=2, deselected=5)


def test_merged_shards_are_decided_like_the_whole_session(five: Suite) -> None:
    whole = five.run(HARMFUL, "--saber-max-hsr=0.5", "--saber-json=whole.json")
    files = shards(five, 3, HARMFUL, "--saber-max-hsr=0.5", REPORT)
    assert command(["merge", *files, "--json", "merged.json"]) == whole.ret == 10
    one, other = read(five.path / "whole.json"), read(five.path / "merged.json")
    assert other["metrics"] == one["metrics"]
    assert other["gate"] == one["gate"]
    assert {run["nodeid"] for run in other["runs"]} == {run["nodeid"] for run in one["runs"]}


def test_a_lost_shard_is_inconclusive(five: Suite) -> None:
    files = shards(five, 3, SAFE, "--saber-max-hsr=0", REPORT)
    assert command(["merge", *files]) == 0
    assert command(["merge", *files[:2]]) == 11


def test_a_shard_of_which_a_part_was_deselected_is_inconclusive(five: Suite) -> None:
    files = shards(five, 2, SAFE, "--saber-max-hsr=0", REPORT, "--deselect=tasks/b.yaml::b")
    assert command(["merge", *files]) == 11


@pytest.mark.parametrize("value", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2"])
def test_what_is_no_shard_is_a_usage_error(five: Suite, value: str) -> None:
    result = five.run(f"--saber-shard={value}", SAFE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --saber-shard: '{value}' is not a shard I/N, such as 1/4, with I from 1 to N"])


def test_more_shards_than_templates_is_a_usage_error(five: Suite) -> None:
    result = five.run("--saber-shard=1/6", SAFE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--saber-shard: 5 templates cannot be split over 6 shards"])


def test_limits_may_name_tasks_of_other_shards(five: Suite) -> None:
    limit = "--saber-limits=max_hsr[task:b]=0"
    assert five.run("--saber-shard=1/2", SAFE, limit, REPORT).ret == 0
    assert five.run("--saber-shard=1/2", SAFE, "--saber-limits=max_hsr[task:bb]=0", REPORT).ret == pytest.ExitCode.USAGE_ERROR
