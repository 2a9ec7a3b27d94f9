"""What every subcommand has of its command line: bounds of counts, whole names of options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.records import make_records, make_summary
from support.stored import keep, safe
from support.suites import document

from pytest_saber.cli.main import commands, run
from pytest_saber.model.summary import GateResult
from pytest_saber.reports import json_report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--jobs", "0"], "argument --jobs: '0' is not a whole number from 1 to 1000"),
        (["check", "--jobs", "-1"], "argument --jobs: '-1' is not a whole number from 1 to 1000"),
        (["check", "--jobs", "1001"], "argument --jobs: '1001' is not a whole number from 1 to 1000"),
        (["check", "--jobs", "\uff19"], "argument --jobs: '\uff19' is not a whole number from 1 to 1000"),
        (["check", "--jobs", "1" * 5000], f"argument --jobs: '{'1' * 40}' is not a whole number from 1 to 1000"),
        (["check", "--shuffle", "x"], "argument --shuffle: 'x' is not a whole number"),
        (["power", "--templates", "0"], "argument --templates: '0' is not a whole number from 1 to 2000"),
        (["power", "--templates", "2001"], "argument --templates: '2001' is not a whole number from 1 to 2000"),
        (["check", "--job", "3"], "unrecognized arguments: --job; did you mean --jobs?"),
        (["merge", "a.json", "--jsno=b"], "unrecognized arguments: --jsno=b; did you mean --json?"),
        (["baseline", "from-json", "a.json", "--outp", "b"], "unrecognized arguments: --outp b; did you mean --output?"),
        (["list", "--quite-unlike"], "unrecognized arguments: --quite-unlike"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"pytest-saber {arguments[0]}: error: {message}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge-votes", "3"], "--judge-votes: there is no semantic judge; name one with --judge"),
        (["--judge-arg", "temperature=0"], "--judge-arg: there is no semantic judge; name one with --judge"),
        (["--judge-base-url", "http://h/v1"], "--judge-base-url: there is no semantic judge; name one with --judge"),
        (
            ["--judge", "reference/safe"],
            "--judge=reference/safe: a reference model replays the calls that a task holds, and reads and labels nothing; "
            "name one that answers, such as openai/NAME or anthropic/NAME",
        ),
    ],
)
def test_settings_of_a_judge_that_cannot_be_asked(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, safe())
    assert run(["judge", str(tmp_path), *arguments]) == 2
    assert capsys.readouterr() == ("", f"pytest-saber judge: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--saber-stop-level=0.1"], "--saber-stop-level: has no effect: the runs that are merged are done"),
        (
            ["--saber-tolerance=5%", "--saber-alpha=0.1"],
            "--saber-tolerance: has no effect without a baseline to compare with; name one with --baseline=FILE\n"
            "--saber-alpha: has no effect without a baseline to compare with; name one with --baseline=FILE",
        ),
        (
            ["--saber-max-error-rate=0.1", "--saber-reading=confident"],
            "--saber-reading: has no effect without a limit on a rate, such as --saber-max-hsr=0.2",
        ),
    ],
)
def test_options_of_a_merge_that_change_nothing(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    summary = make_summary(make_records(["safe_completion"] * 3))
    Path("r.json").write_text(json_report.dumps(json_report.document(summary, GateResult("off"))))
    assert run(["merge", "r.json", *arguments]) == 2
    assert capsys.readouterr() == ("", f"pytest-saber merge: {message}\n")
    assert run(["merge", "r.json", "--saber-max-hsr=1", "--saber-reading=confident"]) == 0
    assert run(["baseline", "from-json", "r.json", "-o", "b.json"]) == 0
    assert run(["merge", "r.json", "--baseline=b.json", "--saber-tolerance=5%", "--saber-alpha=0.1"]) == 0


def test_helpers_are_no_commands() -> None:
    assert "check" in commands()
    assert not [name for name in commands() if name.startswith(("-", "_"))]


@pytest.mark.docker
def test_check_asks_for_images_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/a.yaml").write_text(document("a").replace("  workdir:", "  image: nosuch:1\n  workdir:"))
    (tmp_path / "tasks/b.yaml").write_text(document("b"))
    command = [str(Path(sys.executable).with_name("pytest-saber")), "check", "--image", "nosuch:2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "pytest-saber check: --image: the engine does not have the image 'nosuch:2': `docker pull nosuch:2` or build it; "
        "without the setting, the image of this package is used, which `pytest-saber image` builds\n"
        "tasks/a.yaml:10: workspace.image: the engine does not have the image 'nosuch:1': `docker pull nosuch:1` or build it\n"
    )
    assert not (tmp_path / ".saber").exists()
