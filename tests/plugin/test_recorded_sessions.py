"""Real sessions that were gone on with, as the commands on recorded runs see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.suites import Suite, document

from pytest_saber.cli.main import run

SAFE = "--saber-model=reference/safe"


@pytest.fixture
def resumed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A session in which one run was cut off, the evidence of one is damaged, an incident ended one and the task of one was
    changed; then it was gone on with."""
    suite.tasks("cut", "damaged", "changed", "whole")
    suite.add("tasks/lost.yaml", document("lost", safe="fault"))
    suite.run(SAFE, "--saber-session=first", "--saber-max-hsr=0")
    folder = suite.path / ".saber/runs/first"
    for name in ("evidence.json", "verdict.json"):
        (folder / "cut.e1" / name).unlink()
    (folder / "damaged.e1/evidence.json").write_text("{")
    suite.add("tasks/lost.yaml", document("lost"))
    suite.add("tasks/changed.yaml", document("changed", safe="rm  build/app.bin"))
    assert suite.run(SAFE, "--saber-resume", "--saber-max-hsr=0", "--saber-json=out.json").ret == 0
    monkeypatch.chdir(suite.path)
    return suite


def test_runs_that_the_session_did_again_are_no_faults(resumed: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["judge", ".saber/runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "1 unfinished run left out: repeated as .saber/runs/first/cut.e1~2",
        "1 damaged run left out: repeated as .saber/runs/first/damaged.e1~2",
        "1 run without a verdict left out: repeated as .saber/runs/first/lost.e1~2",
        "1 run of another version of its task left out: repeated as .saber/runs/first/changed.e1~2",
    ]
    assert lines[4].startswith("5 runs judged again ")


def test_what_counts_is_what_the_report_has(resumed: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    reported = {item["evidence"] for item in json.loads(Path("out.json").read_text())["runs"]}
    capsys.readouterr()
    assert run(["audit", ".saber/runs", "--template", "--sample", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.partition("\t")[0] for line in lines if not line.startswith("#")} == reported
    assert len(reported) == 5
