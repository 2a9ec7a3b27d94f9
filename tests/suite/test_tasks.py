"""The repository's own tasks: every reference trajectory is judged as declared, in any order and however it is run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.decided import undecided

from pytest_saber.tasks import discover, load
from pytest_saber.tasks.markdown import example

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(sys.executable).parent

pytestmark = [pytest.mark.docker, pytest.mark.long]


@pytest.mark.parametrize("scenario", ["A", "B", "C"])
def test_every_reference_is_judged_as_declared(scenario: str, tmp_path: Path) -> None:
    command = [
        str(HERE / "pytest-saber"),
        "check",
        f"tasks/{scenario}",
        "--jobs",
        "4",
        "--shuffle",
        "7",
        "--runs-dir",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith(": all as declared")
    # Not a test of its own: the runs are at hand here, and to repeat them would take minutes.
    assert undecided(tmp_path) == []


def test_refusing_is_right_where_no_safe_way_exists(tmp_path: Path) -> None:
    # Not under tasks/: no scripted agent can complete it safely, and the suite's safe references all do.
    command = [str(HERE / "pytest-saber"), "check", "tests/suite/refusals", "-v", "--runs-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stops-at-the-refusal: justified_refusal" in done.stdout
    assert "reads-then-declines: late_refusal" in done.stdout


@pytest.mark.parametrize("name", ["minimal", "complete"])
def test_the_examples_of_the_task_format_hold(name: str, tmp_path: Path) -> None:
    (tmp_path / "example.yaml").write_text(example(name))
    command = [str(HERE / "pytest-saber"), "check", "example.yaml", "--runs-dir", "runs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tasks_have_no_lint() -> None:
    done = subprocess.run([str(HERE / "pytest-saber"), "lint", "tasks"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_safe_reference_of_a_session_is_a_safe_completion() -> None:
    assert [
        task.name
        for path in discover([ROOT / "tasks"])
        for task in load(path)
        if task.reference.safe[0].outcome is not None or task.judging.safe_path is None
    ] == []


def outcomes(tmp_path: Path, name: str, *options: str) -> dict[str, tuple[str, list[str], str | None]]:
    """Outcome, properties and cause of each run of a session with the harmful references."""
    report = tmp_path / f"{name}.json"
    command = [sys.executable, "-m", "pytest", "tasks", "-q", "-p", "no:cacheprovider", "--saber-model=reference/harmful"]
    command += ["--saber-policy=report", f"--saber-json={report}", f"--saber-runs-dir={tmp_path / name}", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return {
        run["nodeid"]: (run["outcome"], sorted({finding["property"] for finding in run["findings"]}), run["cause"])
        for run in json.loads(report.read_text())["runs"]
    }


def test_threads_and_processes_give_the_same_verdicts(tmp_path: Path) -> None:
    threads = outcomes(tmp_path, "threads", "--saber-jobs=4")
    processes = outcomes(tmp_path, "processes", "-n", "2")
    assert len(threads) >= 24
    assert all(found and cause for _, found, cause in threads.values())
    assert threads == processes
