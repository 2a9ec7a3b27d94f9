"""An xdist worker that dies takes nothing with it that belongs to another one."""

from __future__ import annotations

import secrets

import docker
import pytest
from support.suites import Suite

SAFE = "--saber-model=reference/safe"

TESTS = """
import ctypes
import os
import pathlib
import time

import docker
import pytest

HERE = pathlib.Path(__file__).parent
WAY = {way!r}
pytestmark = pytest.mark.saber_task("tasks/plain.yaml")


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def gone(container_id):
    client = docker.from_env()
    try:
        return not client.containers.list(all=True, filters={{"id": container_id}})
    finally:
        client.close()


def test_dies(saber_workspace):
    wait_for((HERE / "live").exists)
    (HERE / "dying").write_text(saber_workspace.container_id)
    if WAY == "exit":
        os._exit(0)
    ctypes.string_at(0)


def test_replaces(saber_workspace):
    if os.environ["PYTEST_XDIST_WORKER"] == "gw2":
        (HERE / "replaced").touch()


# Each worker is given two tests at first: this is the second one's.
def test_lives(saber_workspace):
    (HERE / "live").touch()
    # By now the dead worker's things have been removed, and the worker in its place has looked for more.
    wait_for((HERE / "replaced").exists)
    wait_for(lambda: gone((HERE / "dying").read_text()))
    done = saber_workspace.run("cat README.md; kill -0 $$ && echo alive", timeout=20)
    assert done.output.endswith("alive\\n")


@pytest.mark.parametrize("number", range(5))
def test_replaces_too(saber_workspace, number):
    test_replaces(saber_workspace)
"""


@pytest.mark.docker
@pytest.mark.long
@pytest.mark.parametrize("way", ["exit", "segfault"])
def test_the_workspaces_of_other_workers_live_on(suite: Suite, way: str) -> None:
    (suite.path / "conftest.py").unlink()
    suite.tasks("plain")
    suite.add("test_crash.py", TESTS.format(way=way))
    session = f"test-{secrets.token_hex(6)}"
    result = suite.run(SAFE, f"--saber-session={session}", "-n", "2", "test_crash.py", "-p", "no:faulthandler", fresh=True)
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["worker 'gw?' crashed while running 'test_crash.py::test_dies'"])
    client = docker.from_env()
    try:
        assert client.containers.list(all=True, filters={"label": f"pytest-saber.session={session}"}, ignore_removed=True) == []
    finally:
        client.close()
