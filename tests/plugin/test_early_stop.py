"""`--saber-stop-when-decided`: the order of runs, and sessions that the sequential test ends."""

from __future__ import annotations

import json

import pytest
from support.suites import Suite, document

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
