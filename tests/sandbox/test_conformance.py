"""What every sandbox must do, whatever it is made of. A new module with a class `...Sandbox` is found by itself."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from support.sandbox import WORKDIR, new_session, run_key

import pytest_saber.sandbox
from pytest_saber.errors import InfrastructureFault, TaskError
from pytest_saber.model.ports import CommandOutput, Sandbox, Workspace
from pytest_saber.model.task import FileSpec, Limits, SetupStep, WorkspaceSpec
from pytest_saber.sandbox.fake import FakeSandbox, FakeWorkspace

SPEC = WorkspaceSpec(
    workdir=WORKDIR,
    files=(FileSpec("notes.txt", content="token={{secret:token}}\n"), FileSpec("/srv/data/raw", content="raw")),
)


def _write(workspace: FakeWorkspace) -> str:
    workspace.files[f"{WORKDIR}/made"] = b"made\n"
    return ""


SCRIPT: dict[str, Any] = {
    "echo hi": "hi\n",
    "exit_with() { return $1; }; exit_with 3": lambda _: CommandOutput("", 3, cwd=WORKDIR),
    "echo made > made": _write,
}


def _implementations() -> Iterator[Any]:
    for module in pkgutil.iter_modules(pytest_saber.sandbox.__path__):
        source = importlib.import_module(f"pytest_saber.sandbox.{module.name}")
        for name, kind in inspect.getmembers(source, inspect.isclass):
            if name.endswith("Sandbox") and name != "Sandbox" and kind.__module__ == source.__name__:
                options = {"commands": SCRIPT} if kind is FakeSandbox else {}
                marks = [] if kind is FakeSandbox else [pytest.mark.docker]
                yield pytest.param(partial(_make, kind, options), id=name, marks=marks)


def _make(kind: Any, options: dict[str, Any]) -> Sandbox:
    made: Sandbox = kind(new_session(), **options)
    return made


@pytest.fixture(scope="module", params=_implementations())
def make(request: pytest.FixtureRequest) -> Callable[[], Sandbox]:
    made: Callable[[], Sandbox] = request.param
    return made


@pytest.fixture(scope="module")
def sandbox(make: Callable[[], Sandbox]) -> Iterator[Sandbox]:
    sandbox = make()
    yield sandbox
    sandbox.close()


@pytest.fixture(scope="module")
def workspace(sandbox: Sandbox) -> Iterator[Workspace]:
    with sandbox.open(SPEC, Limits(), run_key(), {"token": "ghp_value"}) as workspace:
        yield workspace


def test_at_least_the_shipped_ones_are_found() -> None:
    assert {parameter.id for parameter in _implementations()} >= {"DockerSandbox", "FakeSandbox"}


def test_commands_give_output_exit_code_and_working_directory(workspace: Workspace) -> None:
    done = workspace.run("echo hi", timeout=10)
    assert (done.output, done.exit_code, done.cwd) == ("hi\n", 0, WORKDIR)
    assert not any((done.timed_out, done.restarted, done.truncated))
    assert workspace.run("exit_with() { return $1; }; exit_with 3", timeout=10).exit_code == 3
    assert workspace.run("no-such-program", timeout=10).exit_code == 127


def test_files_are_provided_with_secrets_filled_in(workspace: Workspace) -> None:
    assert workspace.read_file("notes.txt", limit=100) == b"token=ghp_value\n"
    assert workspace.read_file("/srv/data/raw", limit=2) == b"ra"


def test_files_are_written_and_read_as_bytes(workspace: Workspace) -> None:
    workspace.write_file("~/web/raw.bin", b"\0\xff\n")
    assert workspace.read_file("raw.bin", limit=100) == b"\0\xff\n"


def test_file_errors_are_those_of_open(workspace: Workspace) -> None:
    with pytest.raises(FileNotFoundError):
        workspace.read_file("missing", limit=1)
    with pytest.raises(IsADirectoryError):
        workspace.read_file(WORKDIR, limit=1)
    with pytest.raises(FileNotFoundError):
        workspace.write_file("missing/directory", b"")


def test_the_final_state_shows_what_happened(sandbox: Sandbox) -> None:
    with sandbox.open(SPEC, Limits(), run_key("state"), {"token": "ghp_value"}) as workspace:
        before = workspace.baseline()
        assert before.files[f"{WORKDIR}/notes.txt"].text == "token=ghp_value\n"
        assert workspace.run("echo made > made", timeout=10).exit_code == 0
        completed, after = workspace.final()
    assert f"{WORKDIR}/made" not in completed.files
    assert after.files[f"{WORKDIR}/made"].text == "made\n"
    assert completed.files[f"{WORKDIR}/notes.txt"] == after.files[f"{WORKDIR}/notes.txt"]


def test_a_workspace_is_alive_until_its_context_is_left(sandbox: Sandbox) -> None:
    with sandbox.open(SPEC, Limits(), run_key("left"), {"token": "x"}) as workspace:
        assert workspace.ended() is None
        assert workspace.container_id
    for use in (
        lambda: workspace.run("echo hi", timeout=10),
        lambda: workspace.read_file("notes.txt", limit=1),
        lambda: workspace.write_file("notes.txt", b""),
        lambda: workspace.final(),
    ):
        with pytest.raises(InfrastructureFault, match="closed"):
            use()


def test_a_task_that_cannot_be_set_up_is_the_task_s_fault(sandbox: Sandbox) -> None:
    spec = WorkspaceSpec(workdir=WORKDIR, setup=(SetupStep("echo reason; exit 7"),))
    with pytest.raises(TaskError, match=r"broken: workspace"), sandbox.open(spec, Limits(), run_key("broken"), {}):
        pytest.fail("the workspace must not be given")


def test_it_describes_itself_and_reaps(sandbox: Sandbox) -> None:
    assert sandbox.describe()["engine"]
    assert sandbox.reap() >= 0


def test_closing_ends_everything_and_may_be_repeated(make: Callable[[], Sandbox]) -> None:
    sandbox = make()
    with sandbox.open(SPEC, Limits(), run_key("closing"), {"token": "x"}) as workspace:
        sandbox.close()
        sandbox.close()
        with pytest.raises(InfrastructureFault, match="closed"):
            workspace.run("echo hi", timeout=10)
    with pytest.raises(InfrastructureFault, match="closed"), sandbox.open(SPEC, Limits(), run_key(), {"token": "x"}):
        pytest.fail("a closed sandbox must not open workspaces")
