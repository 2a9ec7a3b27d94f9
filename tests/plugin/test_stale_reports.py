"""A session that ends with a usage error leaves no report of a former one that could be taken for its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.suites import CONFTEST, Suite

from pytest_saber.cli.main import run as command
from pytest_saber.pytest_glue import stale

SAFE = "--saber-model=reference/safe"
REPORTS = ("--saber-json=out.json", "--saber-markdown=out.md", "--junitxml=out.xml")
CONFIGURED = "\n[pytest]\nsaber_json = out.json\nsaber_markdown = out.md\n"


def passed(suite: Suite, *arguments: str) -> None:
    """A session of the day before."""
    suite.tasks("a")
    assert suite.run(SAFE, "--saber-max-hsr=0", *(arguments or REPORTS)).ret == 0
    assert json.loads((suite.path / "out.json").read_text())["gate"]["status"] == "passed"


def problems(suite: Suite) -> list[str]:
    document = json.loads((suite.path / "out.json").read_text())
    assert document["gate"]["status"] == ("inconclusive" if document["problems"] else "passed")
    found: list[str] = document["problems"]
    return found


EARLY = {
    "--saber-max-hrs=1": "--saber-max-hrs: there is no such option; did you mean '--saber-max-hsr'?",
    "--saber-zzz": "--saber-zzz: there is no such option",
    "--typo": "--typo: there is no such option",
    "--saber-epochs=0": "--saber-epochs: '0' is not a whole number from 1 to 1000",
    "--saber-seed=1": "--saber-seed: has no effect without --saber-stop-when-decided: it is the seed of its order",
}
LATE = {
    "--saber-max-hsr=2": "--saber-max-hsr: '2' is not a limit (max_hsr) from 0 to 1 (or 0% to 100%); did you mean 2%?",
    "tasks/none.yaml": "file or directory not found: tasks/none.yaml",
    "--saber-baseline=none.json": "{0}/none.json: there is no such baseline; make one with --saber-update-baseline",
}


@pytest.mark.parametrize(("argument", "reason"), (EARLY | LATE).items())
def test_a_usage_error_replaces_reports(suite: Suite, argument: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    passed(suite)
    result = suite.run(SAFE, *REPORTS, argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    expected = f"the session did not begin: {reason.format(suite.path)}"
    assert problems(suite) == [expected]
    page = (suite.path / "out.md").read_text()
    assert page.startswith("## Agent safety gate: ⚠️ inconclusive\n")
    assert "the session did not begin: " in page
    xml = (suite.path / "out.xml").read_text()
    # Once there is a session, pytest writes its own file, without a test.
    assert ('failures="1"' if argument in EARLY else 'tests="0"') in xml
    capsys.readouterr()
    assert command(["merge", str(suite.path / "out.json")]) == 11
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(("argument", "reason"), [(a, r) for a, r in EARLY.items() if a.startswith("--saber-")])
def test_an_option_that_is_none_is_told_with_what_was_meant(suite: Suite, argument: str, reason: str) -> None:
    result = suite.run(SAFE, argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {reason}" in result.stderr.lines


def test_an_option_of_somebody_else_is_refused_by_pytest(suite: Suite) -> None:
    result = suite.run("--saber", "--typo", "tasks")
    result.stderr.fnmatch_lines(["*error: unrecognized arguments: --saber --typo"])


def test_workers_replace_them_too(suite: Suite) -> None:
    passed(suite)
    assert suite.run(SAFE, *REPORTS, "-n", "1", "--saber-limits=max_hsr[task:b]=0", fresh=True).ret == 4
    assert problems(suite) == ["the session did not begin: --saber-limits line 1: max_hsr[task:b]: no task is named 'b'"]


def test_a_conftest_that_cannot_be_read_replaces_them(suite: Suite) -> None:
    passed(suite)
    (suite.path / "conftest.py").write_text("1 / 0\n")
    assert suite.run(SAFE, *REPORTS, fresh=True).ret == 4
    assert problems(suite) == ["the session did not begin: ConftestImportFailure while pytest read its configuration"]


def test_a_session_that_an_agent_ends_as_one_that_cannot_be_done(suite: Suite) -> None:
    passed(suite)
    (suite.path / "conftest.py").write_text(f"{CONFTEST}\ndef pytest_runtestloop(session): pytest.exit('no', returncode=4)\n")
    assert suite.run(SAFE, *REPORTS).ret == 4
    assert problems(suite) == ["the session was ended as one that cannot be done"]


@pytest.mark.parametrize("name", ["out.json", "out.md", "out.xml", "folder"])
def test_only_reports_of_ours_are_replaced(suite: Suite, name: str) -> None:
    """The path is a typing error, too."""
    suite.tasks("a")
    (suite.path / "folder").mkdir()
    mine = suite.add("mine", '{\n "schema": 1, "tasks": []}')
    for option in ("--saber-json", "--saber-markdown", "--junitxml"):
        assert suite.run(SAFE, f"{option}=mine", "--saber-epochs=0").ret == 4
        assert mine.read_text() == '{\n "schema": 1, "tasks": []}'
        assert suite.run(SAFE, f"{option}={name}", "--saber-epochs=0").ret == 4
    assert sorted(path.name for path in suite.path.iterdir() if path.name.startswith(("out", "fol"))) == ["folder"]


def test_a_report_that_cannot_be_replaced_is_named(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passed(suite)

    def full(path: Path, text: str, encoding: str) -> int:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", full)
    result = suite.run(SAFE, "--saber-json=out.json", "--saber-epochs=0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --saber-epochs: '0' is not a whole number from 1 to 1000",
            f"*{suite.path}/out.json is of a former session, and could not be replaced: No space left on device",
        ]
    )


def test_reports_that_only_a_file_names_are_left_to_sessions_with_tasks(suite: Suite) -> None:
    (suite.path / "pytest.ini").write_text(CONFIGURED)
    passed(suite, "-v")
    (suite.path / "tests").mkdir()
    for arguments in (["tests/none.py"], ["--typo"], ["tests", "--collect-only", "none.py"]):
        assert suite.run(*arguments).ret == 4
        assert problems(suite) == []
    assert suite.run("tests/none.py", "--saber-jobs=2").ret == 4
    assert problems(suite) == ["the session did not begin: file or directory not found: tests/none.py"]


def test_a_wrong_value_in_a_file_concerns_every_session(suite: Suite) -> None:
    (suite.path / "pytest.ini").write_text(CONFIGURED)
    passed(suite, "-v")
    (suite.path / "pytest.ini").write_text(f"{CONFIGURED}saber_jobs = 0\n")
    assert suite.run().ret == 4
    assert problems(suite) == ["the session did not begin: ini saber_jobs: '0' is not a whole number from 1 to 1000"]


def test_the_environment_names_reports_too(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    passed(suite)
    monkeypatch.setenv("SABER_JSON", "out.json")
    assert suite.run("none.py").ret == 4
    assert problems(suite) == ["the session did not begin: file or directory not found: none.py"]


def test_what_ended_a_session_in_words() -> None:
    begun = "the session did not begin: "
    assert stale.in_words(pytest.UsageError("--x: wrong.\nusage: ...", "more")) == f"{begun}--x: wrong"
    assert stale.in_words(SystemExit(0)) == f"{begun}SystemExit while pytest read its configuration"
    assert stale.in_words(pytest.UsageError()) == f"{begun}UsageError while pytest read its configuration"


NO_TASK = "no task was selected in this session"


def test_a_session_without_a_task_leaves_no_report_that_was_asked_for(suite: Suite) -> None:
    """Under the policy `report` nothing is decided, and it ends with exit code 0 or 5."""
    passed(suite)
    suite.add("test_plain.py", "def test_plain(): pass\n")
    assert suite.run(SAFE, *REPORTS, "--saber-policy=report", "test_plain.py").ret == 0
    assert problems(suite) == [NO_TASK]
    assert (suite.path / "out.md").read_text().startswith("## Agent safety gate: ⚠️ inconclusive\n")
    assert "saber" not in (suite.path / "out.xml").read_text()
    passed(suite)
    assert suite.run(SAFE, *REPORTS, "--saber-policy=report", "-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert problems(suite) == [NO_TASK]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_reports_that_only_a_file_names_are_left_by_other_tests(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "pytest.ini").write_text(CONFIGURED)
    passed(suite, "-v")
    suite.add("test_plain.py", "def test_plain(): pass\n")
    assert suite.run("test_plain.py", *workers).ret == 0
    assert problems(suite) == []


def test_reports_that_only_a_file_names_are_replaced_where_all_tasks_were_deselected(suite: Suite) -> None:
    (suite.path / "pytest.ini").write_text(f"{CONFIGURED}saber_model = reference/safe\n")
    passed(suite, "-v")
    assert suite.run("-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert problems(suite) == [NO_TASK]
