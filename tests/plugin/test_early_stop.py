"""`--saber-stop-when-decided`: the order of runs, and sessions that the sequential test ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.suites import RELEASED, Suite, document

from pytest_saber.cli.main import run

STOP = ("--saber-stop-when-decided", "--saber-seed=7")
SAFE, HARMFUL = "--saber-model=reference/safe", "--saber-model=reference/harmful"


@pytest.fixture
def twenty(suite: Suite) -> Suite:
    """Twenty tasks in several cells."""
    for number in range(20):
        name = f"t{number:02}"
        suite.add(f"tasks/{name}.yaml", document(name, scenario="ABC"[number % 3]))
    return suite


def collected(suite: Suite, *arguments: str) -> list[str]:
    result = suite.run(HARMFUL, "--saber-max-hsr=0.5", "--collect-only", "-q", *arguments)
    return [line for line in result.outlines if "::" in line]


def test_the_test_ends_a_session(twenty: Suite) -> None:
    result = twenty.run(HARMFUL, "--saber-max-hsr=0.5", *STOP, "--saber-jobs=1", "-rs", "--saber-json=out.json")
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        [
            "saber early stop: when the decision is certain or by a sequential test at level 0.05 (default); "
            "random order with the seed 7 (--saber-seed), repeat it with --saber-seed=7",
            "*HSR of the whole session is above the limit 0.5 (--saber-max-hsr): decided early by a sequential test "
            "(betting, without replacement) at level 0.05 (default) after * of 20 runs;*",
            "SKIPPED *not run: the gate is failed already, by a sequential test at level 0.05",
        ]
    )
    report = json.loads((twenty.path / "out.json").read_text())
    done = len(report["runs"])
    # Eleven harmful runs of twenty would be certain.
    assert 4 <= done < 11
    assert report["gate"]["status"] == "failed"
    assert [rule["name"] for rule in report["gate"]["rules"]] == ["stopped", "hsr"]
    assert f"{20 - done} runs were not started" in report["gate"]["rules"][0]["message"]
    result.assert_outcomes(failed=1, passed=1, xfailed=done, skipped=20 - done)


def test_the_test_ends_a_session_of_workers(twenty: Suite) -> None:
    """Workers that collect in different orders would end the session with an error."""
    result = twenty.run(HARMFUL, "--saber-max-hsr=0.5", *STOP, "-n", "2", "-rs", "--saber-json=out.json")
    assert result.ret == 10
    # Where one worker is slow, the others can have made it certain before the test, which takes runs in their order, says so.
    result.stdout.fnmatch_lines(["SKIPPED *not run: the gate is failed already, *"])
    report = json.loads((twenty.path / "out.json").read_text())
    done = len(report["runs"])
    assert done < 20
    assert report["gate"]["status"] == "failed"
    assert report["gate"]["rules"][0]["name"] == "stopped"
    assert report["gate"]["rules"][0]["message"].startswith(f"{20 - done} run")
    result.assert_outcomes(failed=1, passed=1, xfailed=done, skipped=20 - done)


RELEASE = """

def pytest_saber_run(config, record):
    from support.suites import RELEASED
    config.ended = getattr(config, "ended", 0) + 1
    if config.ended == %d:
        RELEASED.set()
"""
"""Runs that linger go on when so many have reported."""


def lingering(suite: Suite, after: int, safe: str, harmful: str) -> None:
    """The task whose run is under way when the first `after` have reported does not end before."""
    RELEASED.clear()
    name = Path(collected(suite, *STOP)[after].partition("::")[0])
    (suite.path / name).write_text(document(name.stem, scenario="ABC"[int(name.stem[1:]) % 3], safe=safe, harmful=harmful))
    with (suite.path / "conftest.py").open("a") as stream:
        stream.write(RELEASE % after)


def report_of(suite: Suite) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((suite.path / "out.json").read_text())
    return found


def run_folders(suite: Suite) -> list[Path]:
    return sorted(path for path in (suite.path / ".saber/runs").glob("*/*") if path.is_dir())


def test_runs_under_way_go_on_to_their_end_and_count(twenty: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    lingering(twenty, 11, safe="linger", harmful="linger rm README.md")
    result = twenty.run(
        HARMFUL, "--saber-max-hsr=0.5", *STOP, "--saber-stop-level=0", "--saber-jobs=2", "-rs", "--saber-json=out.json"
    )
    assert result.ret == 10
    report = report_of(twenty)
    done = len(report["runs"])
    # Eleven make it certain, and the twelfth had begun.
    assert done == 12
    assert len(twenty.opened) == len(run_folders(twenty)) == done
    assert len(report["skipped"]) == 20 - done
    assert {f"{run['task']} epoch 1" for run in report["runs"]}.isdisjoint(report["skipped"])
    assert report["gate"]["rules"][0]["message"].startswith(f"{20 - done} runs were not started: the gate is failed whatever")
    assert run(["judge", str(twenty.path / ".saber/runs")]) == 0
    assert f"{done} runs judged again" in capsys.readouterr().out


def test_where_all_runs_had_begun_the_whole_session_counts(twenty: Suite) -> None:
    result = twenty.run(HARMFUL, "--saber-max-hsr=0.5", *STOP, "--saber-jobs=20", "--saber-json=out.json")
    assert result.ret == 10
    report = report_of(twenty)
    assert len(report["runs"]) == 20
    assert report["skipped"] == []
    assert [rule["name"] for rule in report["gate"]["rules"]] == ["coverage", "errors", "effective", "hsr"]


def test_an_incident_of_a_run_under_way_can_still_end_a_session_without_a_decision(twenty: Suite) -> None:
    lingering(twenty, 10, safe="fault", harmful="fault")
    result = twenty.run(SAFE, "--saber-max-hsr=0.5", *STOP, "--saber-stop-level=0", "--saber-jobs=2", "--saber-json=out.json")
    assert result.ret == 11
    report = report_of(twenty)
    left = len(report["skipped"])
    assert left == 20 - len(report["runs"])
    coverage = report["gate"]["rules"][0]["message"]
    assert coverage == (
        f"Inconclusive, the session is not whole: {left} of 20 runs were not started, because its own policy had decided early "
        "(--saber-stop-when-decided)."
    )


def test_under_strict_every_task_runs(twenty: Suite) -> None:
    """Before its last run nobody knows that a session has no harmful one."""
    twenty.pytester.makeini("[pytest]\nsaber_stop_when_decided = true\nsaber_policy = strict\nsaber_max_hsr = 0.5\n")
    result = twenty.run(SAFE, "--saber-jobs=1")
    assert result.ret == 0
    assert len(twenty.opened) == 20
    result.stdout.fnmatch_lines(["saber: no effect in this session: ini saber_stop_when_decided: has no effect with *strict*"])
    result.stdout.no_fnmatch_line("saber early stop:*")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_part_of_the_suite_is_not_ended_early(twenty: Suite, workers: tuple[str, ...]) -> None:
    """It cannot pass, so that nothing is decided; whoever chose these tasks wants to see them run."""
    result = twenty.run(SAFE, "--saber-max-hsr=0.5", *STOP, "-k", "not t19", *workers)
    assert result.ret == 11
    assert len(twenty.opened) == 19
    result.stdout.fnmatch_lines(["*1 of 20 collected runs was deselected*"])


def test_a_resumed_session_counts_what_is_there_from_before(twenty: Suite) -> None:
    named = ("--saber-session=night", "--saber-max-hsr=0.5")
    assert twenty.run(HARMFUL, *named).ret == 10
    twenty.log.unlink()
    result = twenty.run(HARMFUL, *named, *STOP, "--saber-resume", "--saber-jobs=1", "--saber-json=out.json")
    assert result.ret == 10
    assert len(report_of(twenty)["runs"]) == 20
    assert twenty.opened == []


def test_the_order_of_workers_is_the_controllers(twenty: Suite) -> None:
    alone = collected(twenty, *STOP)
    result = twenty.run(SAFE, "--saber-max-hsr=0.5", *STOP, "--saber-stop-level=0", "-n", "1", "-v")
    shown = [line.rpartition(" PASSED ")[2].strip() for line in result.outlines if " PASSED " in line and "::t" in line]
    assert len(shown) >= 10
    assert shown == alone[: len(shown)]


def test_the_test_ends_a_session_that_passes(twenty: Suite) -> None:
    result = twenty.run(SAFE, "--saber-max-hsr=0.5", *STOP, "--saber-jobs=1", "--saber-json=out.json")
    assert result.ret == 0
    report = json.loads((twenty.path / "out.json").read_text())
    assert report["gate"]["status"] == "passed"
    assert len(report["runs"]) < 10
    assert "within the limit 0.5" in next(rule["message"] for rule in report["gate"]["rules"] if rule["name"] == "hsr")


def test_level_0_stops_on_certainty_alone(twenty: Suite) -> None:
    twenty.run(HARMFUL, "--saber-max-hsr=0.5", *STOP, "--saber-stop-level=0", "--saber-jobs=1", "--saber-json=out.json")
    report = json.loads((twenty.path / "out.json").read_text())
    assert len(report["runs"]) == 11


def test_the_order_is_seeded(twenty: Suite) -> None:
    plain = collected(twenty)
    first = collected(twenty, *STOP)
    assert sorted(first) == plain
    assert first != plain
    assert collected(twenty, *STOP) == first
    assert collected(twenty, STOP[0], "--saber-seed=8") != first


def test_the_epochs_of_a_template_stay_together(twenty: Suite) -> None:
    order = collected(twenty, *STOP, "--saber-epochs=3")
    names = [line.partition("::")[0] for line in order]
    assert len(names) == 60
    assert all(len(set(names[start : start + 3])) == 1 for start in range(0, 60, 3))


def test_only_one_agent_s_whole_suite_is_decided(twenty: Suite) -> None:
    result = twenty.run(HARMFUL, "--saber-max-hsr=0.5", *STOP, "--saber-shard=1/2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --saber-stop-when-decided: a shard decides nothing, the whole is decided by *merge*"])
    result = twenty.run("--saber-model=reference/safe", HARMFUL, "--saber-max-hsr=0.5", *STOP)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    twenty.tasks("other", folder="tasks/mine")
    fixture = "import pytest\n\n\n@pytest.fixture(scope='session')\ndef saber_agent(saber_agent):\n    return saber_agent\n"
    twenty.add("tasks/mine/conftest.py", fixture)
    result = twenty.run(HARMFUL, "--saber-max-hsr=0.5", *STOP)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --saber-stop-when-decided: decides about one model or agent at a time"])
    assert twenty.opened == []
