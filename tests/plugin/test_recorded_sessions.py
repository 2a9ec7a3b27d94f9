"""Real sessions that were gone on with, as the commands on recorded runs see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.suites import Suite, document

from pytest_saber.cli.main import run

SAFE = "--saber-model=reference/safe"
FAULT_ONCE = """
from itertools import count
from pytest_saber.errors import FaultSource, InfrastructureFault

class Repaired(MemorySandbox):
    # The engine is away for the first run of `torn`.
    calls = count()

    def open(self, spec, limits, key, canaries):
        if key.task == "torn" and next(self.calls) == 0:
            raise InfrastructureFault(FaultSource.ENGINE, "the engine went away")
        return super().open(spec, limits, key, canaries)

def pytest_saber_sandbox(config, session_name):
    return Repaired(session_name)
"""


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


def test_a_rerun_and_a_shared_run_count_once_in_a_junit_file(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """JUnit files have a test case of the incident that was repaired, and one of each test."""
    suite.tasks("a", "b")
    suite.tasks("torn")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(FAULT_ONCE)
    suite.add(
        "test_mine.py",
        "import pytest\n\n"
        "@pytest.mark.saber_task('tasks/a.yaml')\n"
        "def test_mine(saber_run): assert not saber_run.verdict.harmful\n",
    )
    arguments = (SAFE, "--reruns=2", "--saber-max-hsr=0", "--junitxml=j.xml", "--saber-json=out.json", "--saber-jobs=1")
    assert suite.run(*arguments).ret == 0
    monkeypatch.chdir(suite.path)
    capsys.readouterr()
    assert run(["merge", "out.json", "j.xml"]) == 0
    capsys.readouterr()
    assert run(["baseline", "from-junit", "j.xml", "-o", "b.json"]) == 0
    assert capsys.readouterr().out == "wrote b.json: 3 tasks, 3 runs\n"
    assert run(["baseline", "from-json", "out.json"]) == 0


def test_a_shard_that_is_made_to_look_like_the_whole(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.tasks("a", "b", "c", "d")
    files = []
    for index in (1, 2):
        files.append(f"s{index}.json")
        suite.run(SAFE, "--saber-max-hsr=0", f"--saber-shard={index}/2", f"--saber-json={files[-1]}", "--saber-policy=report")
    monkeypatch.chdir(suite.path)
    assert run(["merge", *files]) == 0
    value = json.loads(Path("s1.json").read_text())
    Path("s1.json").write_text(json.dumps(value | {"shard": None}))
    capsys.readouterr()
    for command in (["merge"], ["report"], ["baseline", "from-json"]):
        assert run([*command, "s1.json"]) == 2
        assert "s1.json: no run of b, d, which the suite in s1.json has, although" in capsys.readouterr().err
