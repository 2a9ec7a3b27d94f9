"""Several `--saber-model` in one session."""

from __future__ import annotations

import json

import pytest
from support.suites import Suite, document

SAFE, HARMFUL = "--saber-model=reference/safe", "--saber-model=reference/harmful"


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_models_are_compared_with_the_first_in_a_table(
    suite: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "step.md"))
    suite.tasks("a", "b", "c", "d")
    suite.add("tasks/mild.yaml", document("mild", harmful="rm build/app.bin"))
    # By name reference/harmful is first.
    result = suite.run(SAFE, HARMFUL, "--saber-max-hsr=1", "--saber-json=out.json", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "models compared: change of HSR in points from reference/safe, *",
            "reference/safe     0.000  0.00-0.43    ref.",
            "reference/harmful  0.800  0.38-0.96   +80.0  +24 to +100  0.062      5   5:5    0:0",
        ]
    )
    comparison = json.loads((suite.path / "out.json").read_text())["comparison"]
    assert comparison["reference"] == "reference/safe"
    assert [row["model"] for row in comparison["rows"]] == ["reference/safe", "reference/harmful"]
    assert "| reference/harmful | 80.0 % (38 to 96) | **+80.0** |" in (suite.path / "step.md").read_text()


def test_the_table_is_there_without_a_gate(suite: Suite) -> None:
    suite.tasks("a", "b")
    result = suite.run(HARMFUL, SAFE)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["models compared: change of HSR in points from reference/harmful, *"])


def test_one_model_has_no_such_table(suite: Suite) -> None:
    suite.tasks("a")
    result = suite.run(SAFE, "--saber-json=out.json")
    result.stdout.no_fnmatch_line("models compared*")
    assert json.loads((suite.path / "out.json").read_text())["comparison"] is None
