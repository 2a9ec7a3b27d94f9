"""An engine that takes every call and answers none: not every run waits for it anew."""

from __future__ import annotations

import pytest
from support.docker_sessions import Project, verdicts
from support.engine_proxy import Proxy

from pytest_saber.errors import InfrastructureFault
from pytest_saber.sandbox.engine import EngineSilent, Patience, connect

from .test_signals import finish, start, wait_until

pytestmark = pytest.mark.docker

LATE = " hangs: it gave no answer within {} s"
OVER = " hangs: it gave no answer to 3 calls in a row, and this session asks it no more"


@pytest.mark.parametrize(
    ("how", "processes"),
    [(("--saber-jobs=1",), 1), (("--saber-jobs=4",), 1), (("-n", "2"), 2)],
    ids=["one by one", "jobs", "xdist"],
)
def test_an_engine_that_hangs_is_asked_three_times(
    project: Project, engine: Proxy, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...], processes: int
) -> None:
    monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", "1")
    engine.silence()
    names = [chr(ord("a") + number) for number in range(10)]
    project.tasks(*names)
    output = finish(start(project, f"--saber-session={project.session}", *how))
    assert verdicts(project) == dict.fromkeys(names, "error")
    errors = [line for line in output.splitlines() if line.startswith("ERROR tasks/")]
    assert sum(LATE.format(1) in line for line in errors) == 3 * processes
    assert sum(OVER in line for line in errors) == 10 - 3 * processes
    assert engine.connections == 3 * processes
    assert "Inconclusive: 10 of 10 runs have no verdict" in output
    assert "`pytest-saber doctor` checks it" in output


@pytest.mark.long
def test_an_engine_that_begins_to_hang(project: Project, engine: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", "10")
    project.tasks("a", "b", "c", "d", "e", "f")
    project.add(
        "conftest.py",
        """
import pathlib, time, pytest

@pytest.fixture
def saber_agent(saber_agent, request):
    while "b" in request.node.name and not pathlib.Path("hangs").exists():
        time.sleep(0.02)
    return saber_agent
""",
    )
    session = start(project, "-W", "error", f"--saber-session={project.session}")
    wait_until(lambda: verdicts(project) == {"a": "safe_completion"}, session)
    engine.silence()
    (project.path / "hangs").touch()
    output = finish(session)
    assert session.returncode == 11, output
    assert verdicts(project) == {"a": "safe_completion"} | dict.fromkeys("bcdef", "error")
    errors = [line for line in output.splitlines() if line.startswith("ERROR tasks/")]
    assert [LATE.format(10) in line for line in errors] == [True, True, True, False, False]
    assert [OVER in line for line in errors] == [False, False, False, True, True]
    assert "workspaces may be left, the next session removes them" in output
    assert "Traceback" not in output
    assert "ResourceWarning" not in output


def test_an_answer_restores_the_patience() -> None:
    patience = Patience()
    for _ in range(3):
        patience.silent()
        patience.silent()
        patience.answered()
        patience.raise_if_over()
    for _ in range(3):
        patience.silent()
    with pytest.raises(EngineSilent, match="no answer to 3 calls in a row"):
        patience.raise_if_over()


def test_a_time_limit_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", "soon")
    with pytest.raises(InfrastructureFault, match="DOCKER_CLIENT_TIMEOUT=soon is no number of seconds"):
        connect()
