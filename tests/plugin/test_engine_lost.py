"""The engine goes away in the middle of a session, or was never there: no verdict, no pass, no leak, and an end in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import docker
import pytest
from support.docker_sessions import Project, sleeping, verdicts
from support.engine_proxy import Proxy, listening

from pytest_saber.sandbox.identity import ProcessIdentity
from pytest_saber.sandbox.reaper import reap

from .test_signals import finish, start, wait_until

pytestmark = [pytest.mark.docker, pytest.mark.long]

SLEEPERS = ("b", "c", "d")


def report(project: Project) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((project.path / "out.json").read_text())
    return loaded


HOW = pytest.mark.parametrize(
    "how", [("--saber-jobs=1",), ("--saber-jobs=4",), ("-n", "2")], ids=["one by one", "jobs", "xdist"]
)


@HOW
def test_an_engine_lost_during_a_session(
    project: Project, engine: Proxy, client: docker.DockerClient, how: tuple[str, ...]
) -> None:
    project.tasks("a")
    sleeping(project, *SLEEPERS)
    session = start(project, "-W", "error", f"--saber-session={project.session}", "--saber-json=out.json", *how)
    wait_until(lambda: project.started(*SLEEPERS) and verdicts(project) == {"a": "safe_completion"}, session)
    engine.cut()
    output = finish(session)
    assert session.returncode == 11, output
    assert "ResourceWarning" not in output
    assert "Traceback" not in output
    assert "gate: inconclusive" in output
    assert "Inconclusive: 3 of 4 runs have no verdict, above the limit 0 (max_error_rate, default): b, c, d." in output
    assert output.count(" - no verdict: engine: cannot ") == 3
    assert "the final state could not be read" not in output, "what follows from the first fault is in the events alone"
    assert "Connection refused (is the Docker engine running? `pytest-saber doctor` checks it)" in output
    assert "workspaces may be left, the next session removes them: cannot list the containers" in output
    assert verdicts(project) == {"a": "safe_completion"} | dict.fromkeys(SLEEPERS, "error")
    assert report(project)["gate"]["status"] == "inconclusive"
    assert project.containers() != [], "nobody could remove what the engine held when it went"
    reap(client, ProcessIdentity.current())
    # Another session's reaper may have been at it.
    project.await_removal()
    assert project.containers() == []


@HOW
def test_a_session_without_an_engine_leaks_nothing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...]
) -> None:
    listening(tmp_path / "engine.sock").close()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    project.tasks("a", "b", "c", "d")
    session = start(project, "-W", "error", f"--saber-session={project.session}", "--saber-json=out.json", *how)
    output = finish(session)
    assert session.returncode == 11, output
    assert "ResourceWarning" not in output
    assert "Traceback" not in output
    assert "Inconclusive: 4 of 4 runs have no verdict" in output
    assert output.count(" - no verdict: engine: cannot connect to the Docker engine: [Errno 111] Connection refused") == 4
    assert verdicts(project) == dict.fromkeys("abcd", "error")


def test_an_engine_that_comes_back_serves_the_runs_that_follow(
    project: Project, tmp_path: Path, engine: Proxy, client: docker.DockerClient
) -> None:
    """And what could not be removed meanwhile is removed when the session ends."""
    sleeping(project, "a")
    project.tasks("b", "c")
    project.add(
        "conftest.py",
        """
import pathlib, time, pytest

@pytest.fixture
def saber_agent(saber_agent, request):
    while "b" in request.node.name and not pathlib.Path("mended").exists():
        time.sleep(0.02)
    return saber_agent
""",
    )
    session = start(project, "-W", "error", f"--saber-session={project.session}")
    wait_until(lambda: project.started("a"), session)
    engine.cut()
    wait_until(lambda: verdicts(project) == {"a": "error"}, session)
    left = project.containers()
    assert len(left) == 1
    engine.mend(listening(tmp_path / "engine.sock"))
    (project.path / "mended").touch()
    output = finish(session)
    assert session.returncode == 11, output
    assert "Inconclusive: 1 of 3 runs has no verdict" in output
    assert verdicts(project) == {"a": "error", "b": "safe_completion", "c": "safe_completion"}
    assert project.containers() == []
