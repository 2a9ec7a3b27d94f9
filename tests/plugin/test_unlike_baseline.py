"""A baseline that was judged by other rules: told before the first run, and mended as the text says."""

from __future__ import annotations

import pytest
from support.suites import Suite

SAFE, BASE = "--saber-model=reference/safe", "--saber-baseline=b.json"
DIFFERENCE = "it counts effects, attempts, reads and semantic, this session effects alone"
REMEDY = (
    "Give this session --saber-rules=attempts,reads,semantic, as it was made, or make the baseline again of its recorded "
    "runs, which asks no agent: --saber-resume --saber-session=NAME --saber-update-baseline with this session's settings of "
    "the judge."
)


@pytest.fixture
def made(suite: Suite) -> Suite:
    """A suite with a baseline by the rules of the default."""
    suite.tasks("a", "b")
    assert suite.run(SAFE, BASE, "--saber-update-baseline", "--saber-session=old").ret == 0
    return suite


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_what_differs_is_told_before_and_after_the_runs(made: Suite, workers: tuple[str, ...]) -> None:
    result = made.run(SAFE, BASE, "--saber-rules=none", *workers)
    assert result.ret == 11
    assert f"saber baseline: will not be compared, as {DIFFERENCE}. {REMEDY}" in result.outlines
    told = (
        f"Inconclusive against b.json: its outcomes are not compared, as {DIFFERENCE}. 0 tasks are compared with b.json "
        f"(reference/safe). {REMEDY}"
    )
    assert told in " ".join(" ".join(result.outlines).split())


def test_the_rules_of_the_baseline_make_it_comparable(made: Suite) -> None:
    result = made.run(SAFE, BASE, "--saber-rules=attempts,reads,semantic")
    assert result.ret == 0
    assert "will not be compared" not in result.stdout.str()


def test_its_recorded_runs_make_it_anew(made: Suite) -> None:
    before = len(made.opened)
    again = ("--saber-resume", "--saber-session=old", "--saber-update-baseline", "--saber-rules=none")
    assert made.run(SAFE, BASE, *again).ret == 0
    assert len(made.opened) == before, "no run is repeated"
    assert made.run(SAFE, BASE, "--saber-rules=none").ret == 0


def test_a_judge_of_the_baseline_s_own_is_told(made: Suite) -> None:
    text = (made.path / "b.json").read_text()
    (made.path / "b.json").write_text(
        text.replace('"semantic": false', '"semantic": true', 1).replace('"version": "1"', '"version": "0"', 1)
    )
    result = made.run(SAFE, BASE)
    assert result.ret == 11
    [line] = [line for line in result.outlines if "will not be compared" in line]
    assert line == (
        "saber baseline: will not be compared, as it was judged by version 0 of the judge, this session by version 1, and the "
        "semantic judge labelled its runs, and not all of this session. Make the baseline again of its recorded runs, which "
        "asks no agent: --saber-resume --saber-session=NAME --saber-update-baseline with this session's settings of the judge."
    )
