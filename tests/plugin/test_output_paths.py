"""Files and folders that cannot be written are a usage error before the first run, however the session runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.suites import Suite

from pytest_saber.pytest_glue import outputs

SAFE = "--saber-model=reference/safe"

WRONG = [
    (["--saber-runs-dir=file"], "--saber-runs-dir: {0}/file is a file where a folder is needed"),
    (["--saber-runs-dir=file/runs"], "--saber-runs-dir: {0}/file is a file, so there can be nothing in it"),
    (["--saber-runs-dir=/proc/runs"], "--saber-runs-dir: /proc/runs cannot be written: No such file or directory"),
    (["--saber-json=folder"], "--saber-json: {0}/folder is a folder; name a file in it"),
    (["--saber-json=file/out.json"], "--saber-json: {0}/file is a file, so there can be nothing in it"),
    (["--saber-markdown=folder"], "--saber-markdown: {0}/folder is a folder; name a file in it"),
    (["--saber-baseline=folder", "--saber-update-baseline"], "--saber-baseline: {0}/folder is a folder; name a file in it"),
    (["--junitxml=file/junit.xml"], "--junitxml: {0}/file is a file, so there can be nothing in it"),
    (["--saber-json=queue"], "--saber-json: {0}/queue is a named pipe; name a file"),
    (["--saber-baseline=queue", "--saber-update-baseline"], "--saber-baseline: {0}/queue is a named pipe; name a file"),
    (
        ["--saber-json=out", "--saber-markdown=./out"],
        "--saber-markdown: {0}/out is the file of --saber-json too, and one would replace the other",
    ),
    (
        ["--saber-json=out", "--junitxml=out"],
        "--junitxml: {0}/out is the file of --saber-json too, and one would replace the other",
    ),
    (["-o", "saber_json=folder"], "ini saber_json: {0}/folder is a folder; name a file in it"),
]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: value[0] if isinstance(value, list) else "")
def test_a_path_that_cannot_be_written_is_refused_before_any_run(
    suite: Suite, arguments: list[str], message: str, workers: tuple[str, ...]
) -> None:
    suite.tasks("a")
    suite.add("file", "mine")
    (suite.path / "folder").mkdir()
    os.mkfifo(suite.path / "queue")
    result = suite.run(SAFE, *arguments, *workers, fresh=bool(workers))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}".format(suite.path)])
    assert suite.opened == []
    assert (suite.path / "file").read_text() == "mine"
    assert list((suite.path / "folder").iterdir()) == []


def test_every_wrong_path_is_named_at_once_and_python_tests_do_not_care(suite: Suite) -> None:
    (suite.path / "folder").mkdir()
    arguments = [SAFE, "--saber-json=folder", "--saber-markdown=folder"]
    suite.add("test_mine.py", "def test_mine(): pass")
    ini = "[pytest]\naddopts = " + " ".join(arguments) + "\n"
    (suite.path / "pytest.ini").write_text(ini)
    assert suite.run().ret == 0
    (suite.path / "pytest.ini").unlink()
    suite.tasks("a")
    result = suite.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --saber-json: *", "*--saber-markdown: *"])


def test_paths_that_do_not_exist_yet_are_made(suite: Suite) -> None:
    suite.tasks("a")
    paths = ["--saber-runs-dir=new/runs", "--saber-json=new/deep/out.json", "--saber-markdown=new/out.md"]
    assert suite.run(SAFE, *paths).ret == 0
    assert (suite.path / "new/deep/out.json").stat().st_size > 0
    assert (suite.path / "new/out.md").stat().st_size > 0
    assert len(list((suite.path / "new/runs").glob("*/a.e1"))) == 1


def test_a_junit_file_that_cannot_be_written_in_the_end_costs_nothing_else(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPORTS", "./new/../reports")
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            """
def pytest_saber_run(config, record):
    (config.rootpath / "reports/junit.xml").unlink()
    (config.rootpath / "reports/junit.xml").mkdir()
"""
        )
    result = suite.run(SAFE, "--junitxml=$REPORTS/junit.xml", "--saber-max-hsr=0")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["gate: passed", "the JUnit file was NOT written: *Is a directory: *junit.xml'"])


def test_another_plugins_error_is_not_blamed_on_the_junit_file(suite: Suite) -> None:
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write("\n\ndef pytest_sessionfinish(): open('/nowhere/of-mine')\n")
    result = suite.run(SAFE, "--junitxml=junit.xml", "--saber-max-hsr=0")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    assert "/nowhere/of-mine" in f"{result.stdout}{result.stderr}"
    result.stdout.no_fnmatch_line("*NOT written*")


def test_what_rights_forbid_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine"
    mine.touch()
    # Root may write everything, so the system's answer has to be given here.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert outputs.file_problem(mine) == f"{mine} cannot be written: Permission denied"
    assert (
        outputs.file_problem(tmp_path / ("x" * 300) / "y")
        == f"{tmp_path / ('x' * 300) / 'y'} cannot be written: File name too long"
    )
    assert outputs.file_problem(Path("/dev/null")).startswith("/dev/null cannot")
    version = Path("/proc/version")
    assert outputs.file_problem(version, replaced=True) == f"{version} cannot be written: No such file or directory"
