"""Settings: where values come from, what is refused, and that the documentation says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.options_page import BEGIN, END, PAGE, table
from support.suites import Suite

from pytest_saber.gate.policy import SETTINGS
from pytest_saber.pytest_glue.settings import TABLE, Group

SAFE = "--saber-model=reference/safe"


def test_option_over_environment_over_ini(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.tasks("a")
    suite.pytester.makeini("[pytest]\nsaber_epochs = 4\nsaber_model = reference/safe\n")

    def count(*arguments: str) -> int:
        return len([line for line in suite.run("--collect-only", "-q", *arguments).outlines if "::" in line])

    assert count() == 4
    monkeypatch.setenv("SABER_EPOCHS", "3")
    assert count() == 3
    assert count("--saber-epochs=2") == 2


@pytest.mark.parametrize(
    ("file", "section"),
    [
        ("pyproject.toml", "tool.pytest.ini_options"),
        ("pytest.ini", "pytest"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ],
)
def test_a_misspelt_setting_in_a_configuration_file_does_not_vanish(suite: Suite, file: str, section: str) -> None:
    """Pytest itself only warns, and the session would pass without its limit."""
    suite.tasks("a")
    (suite.path / "tox.ini").unlink()
    (suite.path / file).write_text(f"[{section}]\nsaber_min_scr = 0\nsaber_max_hrs = 0.2\n")
    result = suite.run(SAFE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: ini saber_max_hrs: there is no such setting; did you mean 'saber_max_hsr'?"])
    assert suite.opened == []


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_misspelt_variable_does_not_vanish(suite: Suite, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]) -> None:
    suite.tasks("a")
    monkeypatch.setenv("SABER_MAX_HRS", "0.1")
    monkeypatch.setenv("SABER_SCR_MIN", "0.5")
    monkeypatch.setenv("SABER_TASKS", "evals")
    result = suite.run(SAFE, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: env SABER_MAX_HRS: there is no such variable; did you mean 'SABER_MAX_HSR'? "
            "(one of another tool's: `env -u SABER_MAX_HRS pytest ...`)",
            "*env SABER_SCR_MIN: there is no such variable; did you mean 'SABER_MIN_SCR'?*",
            "*env SABER_TASKS: saber_tasks is set in a configuration file, or with `-o saber_tasks=...`",
        ]
    )
    assert suite.opened == []


def test_a_variable_of_another_tool_is_named_and_stops_nothing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.tasks("a")
    monkeypatch.setenv("SABER_TOOTH_COLOUR", "white")
    monkeypatch.setenv("SABER_CACHE", str(suite.path / "cache"))
    monkeypatch.setenv("SABER_MAX_HRS", "")
    result = suite.run(SAFE)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["saber: not read, as no setting has that name: SABER_TOOTH_COLOUR"])


def test_a_misspelt_variable_is_no_business_of_a_session_without_tasks(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.add("test_plain.py", "def test_plain(): pass\n")
    monkeypatch.setenv("SABER_MAX_HRS", "0.1")
    assert suite.run().ret == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--saber-policy=strikt"], "--saber-policy: 'strikt' is not one of strict, gate, report; did you mean 'strict'?"),
        (["--saber-baseline="], "--saber-baseline: the value is empty; leave the option out where it is not wanted"),
        (["--saber-epochs=0"], "--saber-epochs: '0' is not a whole number from 1 to 1000"),
        (["--saber-jobs=many"], "--saber-jobs: 'many' is not a whole number from 1 to 1000"),
        (
            ["--saber-rules=attempts,read"],
            "--saber-rules: 'read' is not one of attempts, reads, semantic; did you mean 'reads'?",
        ),
        (["--saber-model-arg=temperature"], "--saber-model-arg: 'temperature' is not KEY=VALUE"),
        (["--saber-update-baseline"], "--saber-update-baseline: name the file to write with --saber-baseline=FILE"),
        (["-o", "saber_max_hrs=0.2"], "ini saber_max_hrs: there is no such setting; did you mean 'saber_max_hsr'?"),
        ([SAFE, SAFE], "--saber-model: reference/safe is named twice; --saber-epochs=2 runs it twice"),
        ([SAFE, "--saber-agent=recat"], "--saber-agent=recat: did you mean 'react'?*"),
        (["-o", "saber_tool_format=xml"], "ini saber_tool_format: 'xml' is not one of auto, native, fenced"),
        ([SAFE, "--saber-max-hsr=1.5"], "--saber-max-hsr: '1.5' is not a limit (max_hsr) from 0 to 1*"),
        ([SAFE, "--saber-limits=max_hsr[D]=0"], "--saber-limits line 1: unknown slice 'D'*"),
        ([SAFE, "--saber-limits=max_hsr[task:ab]=0"], "--saber-limits line 1: max_hsr*: no task is named 'ab'*"),
        ([SAFE, "--saber-required=b"], "--saber-required: no task is named 'b'*"),
        ([SAFE, "--saber-baseline=none.json"], "*none.json: there is no such baseline; make one with --saber-update-baseline"),
        (["--saber-model=reference/save"], "--saber-model=reference/save: *did you mean 'reference/safe'?*"),
        ([SAFE, "--saber-session=../x"], "--saber-session: '../x' is not a name of letters, digits and _.-, 63 at most"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_run(suite: Suite, arguments: list[str], message: str) -> None:
    suite.tasks("a")
    result = suite.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}".replace("[", "[[]")])
    assert suite.opened == []


def test_a_worker_sends_its_usage_errors_to_the_controller(suite: Suite) -> None:
    suite.tasks("a")
    result = suite.run(SAFE, "--saber-shard=1/2", "-n", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --saber-shard: 1 template cannot be split over 2 shards"])


def test_a_part_of_the_suite_may_lack_what_the_policy_names(suite: Suite) -> None:
    suite.tasks("a", "b")
    result = suite.run(SAFE, "--saber-required=b", "tasks/a.yaml")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*saber-gate::required*"])


def test_every_setting_of_the_policy_has_an_option() -> None:
    ours = {setting.ini for setting in TABLE if setting.group is Group.GATE}
    assert set(SETTINGS) <= ours
    assert ours - set(SETTINGS) == {"saber_baseline", "saber_seed", "saber_stop_when_decided", "saber_update_baseline"}


def test_help_lists_every_option_and_ini_value(suite: Suite) -> None:
    text = suite.run("--help").stdout.str()
    for setting in TABLE:
        assert setting.ini in text
        if not setting.ini_only:
            assert setting.option in text


def test_the_page_of_options_is_up_to_date() -> None:
    page = Path(PAGE).read_text(encoding="utf-8")
    assert page[page.index(BEGIN) : page.index(END)] == f"{BEGIN}\n{table()}", "run `python tests/support/options_page.py`"


def test_native_toml(suite: Suite) -> None:
    if not hasattr(pytest, "RaisesGroup") or pytest.version_tuple < (9,):
        pytest.skip("[tool.pytest] is read by pytest 9")
    suite.tasks("a", folder="evals")
    (suite.path / "tox.ini").unlink()
    suite.add(
        "pyproject.toml", '[tool.pytest]\nsaber_tasks = ["evals"]\nsaber_model = "reference/safe"\nsaber_max_hsr = "0.1"\n'
    )
    result = suite.run("-p", "no:cacheprovider")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*max_hsr <= 0.1 (ini saber_max_hsr)*"])


def test_paths_are_relative_to_where_they_were_written(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\nsaber_markdown = page.md\n")
    suite.tasks("a")
    (suite.path / "sub").mkdir()
    monkeypatch.chdir(suite.path / "sub")
    assert suite.run(SAFE, "--saber-json=out.json", "../tasks").ret == 0
    assert (suite.path / "sub/out.json").is_file()
    assert (suite.path / "page.md").is_file()
    assert (suite.path / ".saber/runs").is_dir()


def test_a_baseline_is_named_as_people_name_it(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.tasks("a")
    (suite.path / "sub").mkdir()
    monkeypatch.chdir(suite.path / "sub")
    suite.run(SAFE, "--saber-baseline=../base.json", "--saber-update-baseline", "../tasks")
    result = suite.run(SAFE, "--saber-baseline=../base.json", "../tasks")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["saber baseline: base.json (reference with reference/safe, 1 task*"])
    result.stdout.fnmatch_lines(["*passed regression: HSR changed by +0.0 points* against base.json over 1 task *"])
