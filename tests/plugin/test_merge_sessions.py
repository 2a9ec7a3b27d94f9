"""Real sessions whose JSON reports are merged or made into baselines by the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.suites import Suite, document

from pytest_saber.cli.main import run as command

SAFE, HARMFUL, REPORT = "--saber-model=reference/safe", "--saber-model=reference/harmful", "--saber-policy=report"
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])


@pytest.fixture
def four(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    suite.tasks("a", "b", "c")
    suite.add("tasks/d.yaml", document("d", variants=("x", "y")))
    monkeypatch.chdir(suite.path)
    return suite


def report(suite: Suite, name: str) -> Any:
    return json.loads((suite.path / name).read_text())


def shards(suite: Suite, *arguments: str) -> list[str]:
    for index in (1, 2):
        suite.run(f"--saber-shard={index}/2", f"--saber-json=s{index}.json", *arguments)
    return ["s1.json", "s2.json"]


@WORKERS
def test_a_report_says_of_what_it_is_a_part(four: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(four.path.parent))
    shards(four, SAFE, "--saber-epochs=2", *workers)
    one, two = report(four, "s1.json"), report(four, "s2.json")
    assert one["suite"] == two["suite"]
    assert list(one["suite"]) == ["a", "b", "c", "d[x]", "d[y]"]
    assert one["conditions"] == two["conditions"]
    assert one["conditions"]["epochs"] == "2"
    assert one["conditions"]["model"] == "reference/safe"
    assert one["root"] == f"{four.path.name}/"
    assert (one["other_failures"], one["skipped"]) == ([], [])


@pytest.mark.parametrize(("model", "workers"), [(SAFE, ()), (HARMFUL, ()), (HARMFUL, ("-n", "1"))])
def test_an_ordinary_failure_of_a_shard_is_known_to_its_json_alone(four: Suite, workers: tuple[str, ...], model: str) -> None:
    four.add("test_plain.py", "def test_plain(): assert False\n\ndef test_broken(nothing): pass\n")
    files = shards(four, model, "--saber-max-hsr=1", REPORT, *workers)
    assert report(four, "s1.json")["other_failures"] == ["test_plain.py::test_plain", "test_plain.py::test_broken"]
    assert report(four, "s2.json")["other_failures"] == []
    assert command(["merge", *files]) == 1
    (four.path / "test_plain.py").unlink()
    four.run("--saber-shard=1/2", "--saber-json=s1.json", model, "--saber-max-hsr=1", REPORT)
    assert command(["merge", *files]) == 0


def test_harm_and_incidents_are_no_other_failures(four: Suite) -> None:
    four.add("tasks/torn.yaml", document("torn", harmful="fault"))
    four.run(HARMFUL, "--saber-json=out.json")
    assert report(four, "out.json")["other_failures"] == []


def test_a_crashed_worker_and_a_broken_file_are_other_failures(four: Suite) -> None:
    four.add("tasks/dies.yaml", document("dies", safe="die"))
    four.run(SAFE, "-n", "1", "--saber-json=out.json")
    assert report(four, "out.json")["other_failures"] == ["tasks/dies.yaml::dies"]
    four.add("tasks/dies.yaml", "saber: 1\n")
    four.run(SAFE, "--saber-json=out.json", "--continue-on-collection-errors")
    assert report(four, "out.json")["other_failures"] == ["tasks/dies.yaml"]


def test_shards_of_different_checkouts_are_refused(four: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    files = shards(four, SAFE, "--saber-max-hsr=0", REPORT)
    four.add("tasks/b.yaml", document("b", safe="rm  build/app.bin"))
    four.run("--saber-shard=2/2", "--saber-json=s2.json", SAFE, "--saber-max-hsr=0", REPORT)
    capsys.readouterr()
    assert command(["merge", *files]) == 2
    assert "s1.json and s2.json are of different suites: other contents of b; run all" in capsys.readouterr().err


@WORKERS
def test_a_session_that_was_decided_early_says_which_runs_are_missing(four: Suite, workers: tuple[str, ...]) -> None:
    four.tasks(*(f"t{number:02}" for number in range(15)))
    early = ("--saber-stop-when-decided", "--saber-seed=1")
    result = four.run(HARMFUL, "--saber-max-hsr=0", *early, "--saber-json=out.json", *(workers or ["--saber-jobs=1"]))
    assert result.ret == 10
    value = report(four, "out.json")
    done = {f"{run['task']}{'[' + run['variant'] + ']' if run['variant'] else ''} epoch 1" for run in value["runs"]}
    assert done
    assert value["skipped"]
    assert done.isdisjoint(value["skipped"])
    assert len(done) + len(value["skipped"]) == value["expected"] == 20
    assert {name.removesuffix(" epoch 1") for name in done | set(value["skipped"])} == set(value["suite"])
    assert command(["merge", "out.json"]) == 10
    assert command(["baseline", "from-json", "out.json"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--saber-stop-when-decided",), "a baseline is made of a whole session; leave out --saber-stop-when-decided"),
        (
            ("--saber-shard=1/2",),
            "a baseline is made of a whole suite, and a shard is a part; make it of all shards' JSON reports with "
            "`pytest-saber baseline from-json`",
        ),
    ],
)
def test_no_baseline_is_asked_of_a_part_of_the_suite(four: Suite, arguments: tuple[str, ...], message: str) -> None:
    result = four.run(SAFE, "--saber-baseline=b.json", "--saber-update-baseline", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --saber-update-baseline: {message}"])
    assert four.opened == []


def test_a_baseline_is_made_of_the_junit_files_of_all_shards_or_none(four: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    for index in (1, 2):
        four.run(f"--saber-shard={index}/2", f"--junitxml=j{index}.xml", SAFE, REPORT)
    capsys.readouterr()
    assert command(["baseline", "from-junit", "j1.xml", "j2.xml", "-o", "b.json"]) == 0
    assert capsys.readouterr().out == "wrote b.json: 5 tasks, 5 runs\n"
    assert command(["baseline", "from-junit", "j2.xml"]) == 2
    assert capsys.readouterr().err == (
        "pytest-saber baseline: no baseline is made of a part of a suite: there is no file of shard 1 of 2\n"
    )


def test_no_baseline_is_made_of_the_junit_file_of_a_part(four: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    four.run(SAFE, "--saber-max-hsr=0", "--junitxml=j.xml", "--deselect=tasks/b.yaml::b")
    capsys.readouterr()
    assert command(["baseline", "from-junit", "j.xml"]) == 2
    assert "pytest-saber baseline: j.xml: has 4 of 5 expected runs; no baseline is made of a session that is" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("policy", [REPORT, "--saber-max-hsr=0", "--saber-policy=strict"])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--ignore=tasks/b.yaml",), "1 task file was ignored (--ignore, a conftest.py, or a plugin)"),
        (("--continue-on-collection-errors",), "collection error: tasks/broken.yaml"),
    ],
)
def test_no_baseline_is_made_of_the_junit_file_of_a_session_with_problems(
    four: Suite, arguments: tuple[str, ...], why: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "broken" in why:
        four.add("tasks/broken.yaml", "saber: 1\nid: broken\n")
    assert four.run(SAFE, policy, "--junitxml=j.xml", *arguments).ret in (0, 1, 11)
    capsys.readouterr()
    assert command(["baseline", "from-junit", "j.xml"]) == 2
    assert f"j.xml: no baseline is made of a session that is not whole: {why}" in capsys.readouterr().err


OUTPUTS = ("--json=m.json", "--markdown=m.md", "--junitxml=m.xml")


def test_a_merge_that_cannot_be_leaves_no_decision_of_a_former_one(four: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    files = shards(four, SAFE, "--saber-max-hsr=0.5", REPORT)
    assert command(["merge", *files, *OUTPUTS]) == 0
    assert report(four, "m.json")["gate"]["status"] == "passed"
    # What is not there, and what a typing error names.
    four.add("mine.md", "# mine")
    capsys.readouterr()
    assert command(["merge", files[0], "lost.json", *OUTPUTS[::2], "--markdown=mine.md"]) == 2
    reason = capsys.readouterr().err.strip().removeprefix("pytest-saber merge: ")
    assert reason.startswith("lost.json: ")
    document = report(four, "m.json")
    assert document["gate"]["status"] == "inconclusive"
    assert document["problems"] == [f"the reports could not be merged: {reason}"]
    assert "could not be merged" in (four.path / "m.xml").read_text()
    assert (four.path / "m.md").read_text().startswith("## Agent safety gate: ✅ passed")
    assert (four.path / "mine.md").read_text() == "# mine"
    assert command(["merge", "m.json"]) == 11


def test_a_merge_that_cannot_be_keeps_what_it_reads(four: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    files = shards(four, SAFE, "--saber-max-hsr=0.5", REPORT)
    before = (four.path / files[0]).read_bytes()
    assert command(["merge", *files, f"--json={files[0]}"]) == 2
    assert "is one of the files that are read, and would be lost" in capsys.readouterr().err
    assert (four.path / files[0]).read_bytes() == before


def test_a_decision_of_a_former_merge_that_cannot_be_replaced_is_named(
    four: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = shards(four, SAFE, "--saber-max-hsr=0.5", REPORT)
    assert command(["merge", *files, OUTPUTS[0]]) == 0

    def full(path: Path, text: str, encoding: str) -> int:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", full)
    capsys.readouterr()
    assert command(["merge", "lost.json", OUTPUTS[0]]) == 2
    assert capsys.readouterr().err.splitlines()[1].strip() == (
        "m.json is of a former merge, and could not be replaced: No space left on device"
    )
