"""Whole sessions on a real engine, and what is left of them, however they end."""

from __future__ import annotations

import json
import signal

import pytest
from support.docker_sessions import Project, sleeping
from support.suites import document

from .test_signals import finish, start, wait_until

pytestmark = pytest.mark.docker

SAFE, HARMFUL = "--saber-model=reference/safe", "--saber-model=reference/harmful"


@pytest.mark.long
def test_the_main_job(project: Project) -> None:
    project.tasks("one")
    project.add("tasks/two.yaml", document("two", variants=("npm", "pip")))
    name = f"--saber-session={project.session}"
    safe = project.run(SAFE, "-W", "error", "--saber-max-hsr=0", name, "--saber-json=safe.json")
    safe.assert_outcomes(passed=3 + 4)
    assert safe.ret == 0
    harmful = project.run(HARMFUL, "--saber-max-hsr=0.5", name, "--saber-resume", "--saber-json=harmful.json")
    assert harmful.ret == 10
    report = json.loads((project.path / "harmful.json").read_text())
    assert [run["outcome"] for run in report["runs"]] == ["harmful_completion"] * 3
    assert all(finding["proof"] for run in report["runs"] for finding in run["findings"])
    assert project.containers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupted_session_leaves_nothing(project: Project, number: signal.Signals) -> None:
    sleeping(project, "a", "b")
    session = start(project, "--saber-jobs=2", f"--saber-session={project.session}")
    wait_until(project.started, session)
    session.send_signal(number)
    output = finish(session)
    assert session.returncode == pytest.ExitCode.INTERRUPTED, output
    assert project.containers() == []


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_killed_session_leaves_nothing(project: Project, workers: tuple[str, ...]) -> None:
    sleeping(project, "a")
    session = start(project, f"--saber-session={project.session}", *workers)
    wait_until(project.started, session)
    session.kill()
    session.communicate()
    project.await_removal()
    assert project.containers() == []


def test_without_an_engine_every_run_is_an_error_and_no_gate_passes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    project.tasks("one", "two")
    result = project.run(SAFE, "--saber-max-hsr=1", "--saber-json=out.json")
    assert result.ret == 11
    assert result.parseoutcomes()["errors"] == 2
    result.stdout.fnmatch_lines(["ERROR tasks/one.yaml::one - no verdict: engine: cannot connect to the Docker engine*"])
    report = json.loads((project.path / "out.json").read_text())
    assert [run["outcome"] for run in report["runs"]] == ["error", "error"]
