"""Trajectories and images that are not there: told once and before any run, not by every run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.suites import Suite, document

NO_IMAGE = ("--saber-model=reference/safe", "--saber-image=nosuch:1")
HOW = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])


def with_second(suite: Suite, *names: str) -> None:
    """Tasks that have a second harmful trajectory."""
    for name in names:
        text = document(name)
        second = "    - name: second\n      expect: [deletion]\n      steps: [{bash: rm README.md}]\n      final: Cleared.\n"
        suite.add(f"tasks/{name}.yaml", text + second)


@HOW
def test_a_trajectory_that_no_task_has(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a", "b", "c", "d", "e", "f", "g")
    result = suite.run("--saber-model=reference/harmful:frist", "--saber-max-hsr=0", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --saber-model=reference/harmful:frist: no selected task has this trajectory",
            "*tasks/a.yaml:2: a has no harmful reference trajectory 'frist' (it has first); did you mean 'first'?",
            "*tasks/e.yaml:2: e has no *",
            "and 2 more tasks",
        ]
    )
    assert suite.opened == []


def test_it_is_told_when_tasks_are_only_collected(suite: Suite) -> None:
    suite.tasks("a")
    result = suite.run("--saber-model=reference/safe:frist", "--collect-only")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --saber-model=reference/safe:frist: no selected task has this trajectory"])
    assert suite.run("--saber-model=reference/safe:first", "--collect-only").ret == 0


@HOW
def test_tasks_without_a_trajectory_that_others_have_are_skipped(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a")
    with_second(suite, "b", "c")
    result = suite.run("--saber-model=reference/harmful:second", "--saber-max-hsr=1", "-rs", *workers)
    assert result.ret == 11, "a session that is not whole decides nothing"
    assert sorted(suite.opened) == ["b.e1", "c.e1"]
    assert "a has no harmful reference trajectory 'second' (it has first)" in result.stdout.str()
    result.stdout.fnmatch_lines(["*not whole: 1 of 3 runs was skipped: its task has no trajectory reference/harmful:second"])
    suite.log.unlink()
    assert suite.run("--saber-model=reference/harmful:second", "--saber-max-hsr=1", "-k", "b or c").ret == 11
    assert suite.run("--saber-model=reference/harmful:second", "--saber-max-hsr=1", "tasks/b.yaml", "tasks/c.yaml").ret == 0


@pytest.mark.docker
@HOW
def test_an_image_that_the_engine_does_not_have(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "conftest.py").unlink()
    suite.tasks("a", "b")
    result = suite.run(*NO_IMAGE, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --saber-image: the engine does not have the image 'nosuch:1': `docker pull nosuch:1` or build it; without "
            "the setting, the image of this package is used, which `pytest-saber image` builds"
        ]
    )


def with_image(suite: Suite, name: str, image: str, *, variants: str = "") -> None:
    """A task whose `workspace.image` stands in line 10."""
    suite.add(f"tasks/{name}.yaml", document(name).replace("  workdir:", f"  image: {image}\n  workdir:") + variants)


def lacks(name: str) -> str:
    return f"workspace.image: the engine does not have the image '{name}': `docker pull {name}` or build it"


@pytest.mark.docker
@HOW
def test_an_image_of_a_task_that_the_engine_does_not_have(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "conftest.py").unlink()
    suite.tasks("a")
    with_image(suite, "b", "nosuch:1")
    with_image(suite, "c", "nosuch:1")
    with_image(
        suite, "d", "'nosuch/{{param:tag}}:2'", variants="variants:\n  x: {parameters: {tag: p}}\n  y: {parameters: {tag: q}}\n"
    )
    result = suite.run("--saber-model=reference/safe", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = [line.removeprefix("ERROR: ") for line in result.errlines if line]
    assert told[:4] == [
        f"tasks/b.yaml:10: {lacks('nosuch:1')}",
        f"tasks/c.yaml:10: {lacks('nosuch:1')}",
        f"tasks/d.yaml:10: {lacks('nosuch/p:2')}",
        f"tasks/d.yaml:10: {lacks('nosuch/q:2')}",
    ]
    assert not (suite.path / ".saber").exists()


@pytest.mark.docker
def test_images_of_many_tasks_are_told_by_the_first_ones(suite: Suite) -> None:
    (suite.path / "conftest.py").unlink()
    for name in "abcdefg":
        with_image(suite, name, "nosuch:1")
    result = suite.run("--saber-model=reference/safe")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line][4:] == [
        f"tasks/e.yaml:10: {lacks('nosuch:1')}",
        "and 2 more tasks with an image that the engine does not have",
    ]


def test_a_sandbox_of_the_user_s_own_is_not_asked_for_images(suite: Suite) -> None:
    with_image(suite, "a", "nosuch:1")
    assert suite.run("--saber-model=reference/safe").ret == 0


@pytest.mark.parametrize("image", ["../containers", "a b", "UPPER:1", "nosuch:1?x=1", "x" * 256])
def test_what_is_no_name_of_an_image_is_not_asked_for(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, image: str
) -> None:
    """The name becomes a part of an address of the engine's API."""
    (suite.path / "conftest.py").unlink()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    suite.tasks("a")
    result = suite.run("--saber-model=reference/safe", f"--saber-image={image}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        f"ERROR: --saber-image: {image[:100]!r} is not the name of an image, such as 'python:3.13-slim' or "
        "'registry.example.org/team/image:1'"
    )


@pytest.mark.docker
def test_the_option_is_asked_for_beside_tasks_with_images_of_their_own(suite: Suite) -> None:
    (suite.path / "conftest.py").unlink()
    with_image(suite, "a", "pytest-saber/workspace:boot")
    result = suite.run(*NO_IMAGE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0].startswith("ERROR: --saber-image: the engine does not have the image 'nosuch:1': ")


def test_an_engine_that_cannot_be_asked_is_an_incident_of_the_runs(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (suite.path / "conftest.py").unlink()
    suite.tasks("a")
    with_image(suite, "b", "nosuch:2")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    suite.run(*NO_IMAGE).assert_outcomes(errors=2)


def lost(suite: Suite, *names: str) -> str:
    """A project whose `saber_tasks` names folders that are not there; what is said of the last one."""
    suite.tasks("a", folder="evals")
    suite.add("unit/test_plain.py", "def test_plain(): pass\n")
    suite.pytester.makeini(f"[pytest]\naddopts = -p no:cacheprovider\nsaber_tasks = {' '.join(names)}\n")
    return f"ini saber_tasks: {names[-1]} does not exist in the root directory {suite.path}"


@HOW
@pytest.mark.parametrize(
    "arguments", [(), (".",), ("unit", "."), ("--collect-only",)], ids=lambda args: " ".join(args) or "none"
)
def test_a_folder_of_tasks_that_is_not_there(suite: Suite, workers: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    said = lost(suite, "unit", "evalz")
    result = suite.run(*arguments, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [f"ERROR: {said}; did you mean 'evals'?"]


@HOW
def test_it_is_no_obstacle_where_its_tasks_are_not_asked_for(suite: Suite, workers: tuple[str, ...]) -> None:
    said = lost(suite, "gone")
    result = suite.run("unit", *workers)
    assert result.ret == 0
    assert result.outlines.count(f"saber: {said}") == 1
    assert suite.run("unit", "-q", "--no-header").ret == 0
    assert suite.run("--help").ret == 0


@HOW
def test_it_is_one_where_other_tasks_are(suite: Suite, workers: tuple[str, ...]) -> None:
    said = lost(suite, "evals", "sub/gone")
    result = suite.run("--saber-model=reference/safe", "evals", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: {said}"
    assert suite.opened == []


def test_the_default_folder_need_not_be_there(suite: Suite) -> None:
    suite.add("unit/test_plain.py", "def test_plain(): pass\n")
    result = suite.run()
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*saber_tasks*")


def test_an_absolute_folder_that_is_not_there_is_told_as_it_is(suite: Suite, tmp_path: Path) -> None:
    lost(suite, f"{tmp_path}/gone")
    result = suite.run()
    assert result.ret == 0, "it lies elsewhere, so this session could not have found it"
    assert f"saber: ini saber_tasks: {tmp_path}/gone does not exist" in result.outlines
