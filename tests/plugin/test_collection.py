"""Task documents as pytest items."""

from __future__ import annotations

import pytest
from support.suites import Suite, document

BROKEN = document("broken").replace("scenario: B", "scenario: D")


def collected(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_a_folder_becomes_items_with_ids_of_task_and_variant(suite: Suite) -> None:
    suite.add("tasks/B/one.yaml", document("one"))
    suite.add("tasks/B/two.yml", document("two", variants=("npm", "pip")))
    result = suite.run("--collect-only", "-q")
    assert collected(result) == ["tasks/B/one.yaml::one", "tasks/B/two.yml::two[npm]", "tasks/B/two.yml::two[pip]"]
    assert result.ret == 0


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("tasks/two.yaml", ["two[npm]", "two[pip]"]),
        ("tasks/two.yaml::two", ["two[npm]", "two[pip]"]),
        ("tasks/two.yaml::two[pip]", ["two[pip]"]),
        ("tasks", ["one", "two[npm]", "two[pip]"]),
    ],
)
def test_what_is_named_is_collected(suite: Suite, argument: str, expected: list[str]) -> None:
    suite.tasks("one")
    suite.add("tasks/two.yaml", document("two", variants=("npm", "pip")))
    result = suite.run("--collect-only", "-q", argument)
    assert [line.partition("::")[2] for line in collected(result)] == expected


def test_foreign_yaml_and_folders_that_nobody_named_are_left_alone(suite: Suite) -> None:
    suite.add("tasks/compose.yaml", "services: {}\n")
    suite.tasks("stray", folder="elsewhere")
    assert suite.run("--collect-only", "-q").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    named = suite.run("--collect-only", "-q", "elsewhere/stray.yaml")
    assert collected(named) == ["elsewhere/stray.yaml::stray"]


def test_the_ini_value_says_where_tasks_are(suite: Suite) -> None:
    suite.tasks("one", folder="evals/safety")
    suite.tasks("two")
    (suite.path / "docs").mkdir()
    result = suite.run("--collect-only", "-q", "-o", "saber_tasks=evals docs")
    assert collected(result) == ["evals/safety/one.yaml::one"]


def test_epochs_are_parametrised_items(suite: Suite) -> None:
    suite.tasks("one")
    suite.add("tasks/two.yaml", document("two", variants=("npm",)))
    result = suite.run("--collect-only", "-q", "--saber-epochs=2")
    assert [line.partition("::")[2] for line in collected(result)] == ["one[e1]", "one[e2]", "two[npm-e1]", "two[npm-e2]"]


def test_keywords_and_marks_select(suite: Suite) -> None:
    suite.add("tasks/a.yaml", document("a", scenario="A", category="persistence"))
    suite.add("tasks/b.yaml", document("b", scenario="B", category="persistence"))
    suite.add("tasks/c.yaml", document("c", scenario="B", variants=("npm", "pip")))
    suite.add("test_plain.py", "def test_plain(): pass\n")

    def selected(*arguments: str) -> list[str]:
        return [line.partition("::")[2] for line in collected(suite.run("--collect-only", "-q", *arguments))]

    assert selected("-m", "saber_A and persistence") == ["a"]
    assert selected("-m", "persistence") == ["a", "b"]
    assert selected("-m", "not saber") == ["test_plain"]
    assert selected("-k", "npm") == ["c[npm]"]
    assert selected("--strict-markers", "-m", "saber_B", "--deselect", "tasks/c.yaml::c[npm]") == ["b", "c[pip]"]


def test_every_location_leads_to_the_document(suite: Suite) -> None:
    suite.add("tasks/one.yaml", "# a comment first\n" + document("one"))
    suite.add(
        "conftest.py",
        "def pytest_collection_finish(session):\n    for item in session.items:\n        print('LOCATION', item.location)\n",
    )
    result = suite.run("--collect-only", "-q", "-s")
    line = next(line for line in result.outlines if line.startswith("LOCATION"))
    assert line == "LOCATION ('tasks/one.yaml', 2, 'one')"


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_broken_document_stops_the_session_with_its_problems(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("one")
    suite.add("tasks/broken.yaml", BROKEN)
    result = suite.run("--saber-model=reference/safe", "--saber-max-hsr=0.5", *workers)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ERROR collecting tasks/broken.yaml*", "*tasks/broken.yaml:4:*'D'*"])
    result.stdout.fnmatch_lines(["*Interrupted: 1 error during collection*"])
    assert suite.opened == []


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_going_on_after_a_broken_document_never_passes_the_gate(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("one")
    suite.add("tasks/broken.yaml", BROKEN)
    result = suite.run(
        "--saber-model=reference/safe", "--saber-max-hsr=0.5", "--continue-on-collection-errors", "--junitxml=out.xml", *workers
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert suite.opened == ["one.e1"]
    result.stdout.fnmatch_lines(["*collection error: tasks/broken.yaml*"])
    assert 'name="saber.gate" value="failed"' in (suite.path / "out.xml").read_text()


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_an_id_that_two_files_have_is_a_collection_error(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("one")
    suite.add("tasks/other.yaml", document("one"))
    result = suite.run("--saber-model=reference/safe", *workers)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*tasks/other.yaml:*the id 'one' is already used by tasks/one.yaml*"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_tasks_without_a_model_are_a_usage_error(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("one")
    result = suite.run(*workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: saber tasks were collected and no model is chosen: use --saber-model=*"])


def test_a_python_test_names_its_task(suite: Suite) -> None:
    suite.add("tasks/two.yaml", document("two", variants=("npm", "pip")))
    suite.add(
        "tests/test_mine.py",
        """
import pytest

@pytest.mark.saber_task("tasks/two.yaml::two[pip]")
def test_one(saber_task):
    assert saber_task.name == "two[pip]"

@pytest.mark.saber_task("../tasks/two.yaml")
def test_all(saber_task, saber_epoch):
    assert saber_task.id == "two" and saber_epoch in (1, 2)

@pytest.mark.saber_task("tasks/two.yaml::two[pip]")
@pytest.mark.parametrize("n", [1, 2])
def test_mixed(saber_task, n):
    pass
""",
    )
    result = suite.run("tests", "-v", "--saber-epochs=2")
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(["*::test_one PASSED*", "*::test_all[[]npm-e1[]] PASSED*", "*::test_mixed[[]1[]] PASSED*"])


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('"tasks/two.yaml::twe"', "there is no task 'twe'; did you mean 'two'?"),
        ('"tasks/three.yaml"', "tasks/three.yaml: no such file, neither in tests nor in the root"),
        ("3", '@pytest.mark.saber_task takes one text: "FILE::id[[]variant[]]"'),
    ],
)
def test_a_mark_that_names_no_task_is_a_collection_error(suite: Suite, mark: str, message: str) -> None:
    suite.tasks("two")
    suite.add("tests/test_mine.py", f"import pytest\n@pytest.mark.saber_task({mark})\ndef test_one(saber_task): pass\n")
    result = suite.run("tests")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*{message}*"])


def test_a_python_test_without_a_task_is_told_how_to_name_one(suite: Suite) -> None:
    suite.add("test_mine.py", "def test_one(saber_task): pass\n")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*test_one has no task: mark it with @pytest.mark.saber_task("FILE::id*'])


def test_warnings_as_errors(suite: Suite) -> None:
    suite.add("tasks/two.yaml", document("two", variants=("npm", "pip")))
    result = suite.run("-W", "error", "--strict-markers", "--strict-config", "--collect-only", "-q", "--saber-epochs=2")
    assert result.ret == 0
    assert len(collected(result)) == 4


@pytest.mark.parametrize("option", ["--fixtures", "--fixtures-per-test", "--collect-only"])
def test_what_only_shows_something_decides_nothing(suite: Suite, option: str) -> None:
    suite.tasks("a")
    suite.add("r.json", "kept")
    result = suite.run(option, "--saber-model=reference/safe", "--saber-max-hsr=0", "--saber-json=r.json")
    assert result.ret == 0
    assert "gate: inconclusive" not in result.stdout.str()
    assert (suite.path / "r.json").read_text() == "kept"
