"""The scripts behind `make`: run for real, in the checkout or in a copy of what they need."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.setup import ROOT, SCRIPTS, execute

NOBODY = 65534


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_executable_and_parse(script: Path) -> None:
    assert os.access(script, os.X_OK)
    result = execute(["bash", "-n", script])
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.docker
def test_a_second_set_up_finds_nothing_to_do() -> None:
    first = execute(["scripts/setup"])
    assert first.returncode == 0, first.stdout
    second = execute(["scripts/setup"])
    assert second.returncode == 0
    (line,) = second.stdout.splitlines()
    assert line.startswith("set-up: ready (")


def test_an_unknown_step_is_refused() -> None:
    result = execute(["scripts/setup", "engin"])
    assert result.returncode == 1
    assert "unknown step 'engin'; the steps are: tools env engine image model" in result.stdout


def test_an_engine_that_the_user_names_is_never_replaced_by_another() -> None:
    result = execute(["scripts/setup", "engine"], env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert result.returncode == 1
    (line,) = result.stdout.splitlines()
    assert line == ("set-up: no engine answers at DOCKER_HOST=unix:///nonexistent/docker.sock: start it, or unset DOCKER_HOST")


def test_an_engine_of_another_context_is_never_replaced_either(tmp_path: Path) -> None:
    command: list[str | Path] = [
        ROOT / ".venv/bin/python",
        "-c",
        "from docker.context import ContextAPI; ContextAPI.create_context('far', host='tcp://127.0.0.1:9')",
    ]
    (tmp_path / "config.json").write_text('{"currentContext": "far"}')
    env = {"DOCKER_CONFIG": str(tmp_path), "DOCKER_HOST": ""}
    made = execute(command, env=env)
    assert made.returncode == 0, made.stdout
    result = execute(["scripts/setup", "engine"], env=env)
    assert result.returncode == 1
    assert "127.0.0.1:9, which the current Docker context names" in result.stdout


@pytest.fixture
def poor_machine() -> Iterator[tuple[Path, dict[str, str]]]:
    """A checkout on a machine with coreutils and nothing else, where we are not root."""
    # Not tmp_path: its parents are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copytree(ROOT / "scripts", folder / "scripts")
        shutil.copy(ROOT / "pyproject.toml", folder)
        tools = folder / "bin"
        tools.mkdir()
        for tool in ("bash", "dirname", "mkdir", "id", "cat", "sha256sum"):
            (tools / tool).symlink_to(str(shutil.which(tool)))
        yield folder, {"PATH": str(tools)}


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            "tools",
            "the tests use git, pgrep and ssh-keygen. Missing Debian packages: git procps openssh-client ca-certificates. "
            "As root: apt-get install git procps openssh-client ca-certificates",
        ),
        (
            "env",
            "no Python 3.11 or newer is on PATH. Missing Debian packages: python3 python3-venv ca-certificates. "
            "As root: apt-get install python3 python3-venv ca-certificates",
        ),
    ],
)
def test_without_root_the_missing_packages_are_named_and_nothing_is_installed(
    poor_machine: tuple[Path, dict[str, str]], step: str, text: str
) -> None:
    folder, env = poor_machine
    user = NOBODY if os.geteuid() == 0 else None
    result = execute([str(folder / "bin" / "bash"), "scripts/setup", step], cwd=folder, env=env, user=user)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == f"set-up: {text}"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A project of two functions with scripts/test over it, one of them not covered."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "test", tmp_path / "scripts")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "code.py").write_text("def used():\n    return 1\n\n\ndef unused():\n    x = 1\n    return x\n")
    (tmp_path / "test_it.py").write_text("import code_under_test\n\n\ndef test_it():\n    assert code_under_test.used() == 1\n")
    (tmp_path / "code.py").rename(tmp_path / "code_under_test.py")
    return tmp_path


def configure(suite: Path, floor: int) -> None:
    pytest_table = '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "-p no:saber"\n'
    run_table = '[tool.coverage.run]\nparallel = true\nsource = ["code_under_test"]\n'
    (suite / "pyproject.toml").write_text(f"{pytest_table}{run_table}[tool.coverage.report]\nfail_under = {floor}\n")


def test_the_last_line_of_a_test_run_is_pytest_s_own(suite: Path) -> None:
    configure(suite, floor=10)
    result = execute(["scripts/test"], cwd=suite)
    assert result.returncode == 0, result.stdout
    lines = result.stdout.splitlines()
    assert "=== 1 passed in " in lines[-1]
    assert lines.count(lines[-1]) == 2
    assert lines[-2] == "coverage: 60% (by file: .saber/test/coverage.txt)"


def test_a_missed_coverage_floor_fails_a_green_suite(suite: Path) -> None:
    configure(suite, floor=90)
    result = execute(["scripts/test"], cwd=suite)
    assert result.returncode == 1
    assert "Coverage failure: total of 60 is less than fail-under=90" in result.stdout
    assert "the suite passed, but its coverage is below the floor" in result.stdout
    assert "=== 1 passed in " in result.stdout.splitlines()[-1]


def test_pytest_s_exit_code_is_kept(suite: Path) -> None:
    configure(suite, floor=10)
    (suite / "test_it.py").write_text("import code_under_test\n\n\ndef test_it():\n    assert code_under_test.used() == 2\n")
    failed = execute(["scripts/test"], cwd=suite)
    assert failed.returncode == 1
    assert "=== 1 failed in " in failed.stdout.splitlines()[-1]
    nothing = execute(["scripts/test", "-k", "nothing"], cwd=suite)
    assert nothing.returncode == 5
    assert "1 deselected in " in nothing.stdout.splitlines()[-1]


def test_make_lists_every_target() -> None:
    result = execute(["make"])
    listed = {line.split()[1] for line in result.stdout.splitlines()}
    declared = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    assert listed == set(declared.split()[1:])
    assert {"demo", "test", "lint", "bench"} <= listed
