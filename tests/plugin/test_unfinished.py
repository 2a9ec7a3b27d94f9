"""A process that ends in the middle of a session: no exit code 0, and no report of a former session in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.suites import CONFTEST, Suite

from pytest_saber.cli.main import run as command

SAFE = "--saber-model=reference/safe"
REPORTS = ("--saber-json=out.json", "--saber-markdown=out.md", "--junitxml=out.xml")
AGENT = """
import ctypes, os, sys, threading
import pytest
from pytest_saber.model.evidence import AgentIdentity, Termination
from pytest_saber.model.ports import AgentResult
from pytest_saber.model.terms import TerminationReason

class Ending:
    identity = AgentIdentity("ending", "none")

    def __call__(self, task):
        return self

    def run(self, session):
        {action}
        return AgentResult("Done.", Termination(TerminationReason.ANSWERED))

@pytest.fixture(scope="session")
def saber_agent():
    return Ending()
"""


def ending(suite: Suite, action: str) -> None:
    (suite.path / "conftest.py").write_text(CONFTEST + AGENT.replace("{action}", action))


def report(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


@pytest.mark.parametrize("capture", ["fd", "no"])
def test_an_agent_cannot_end_the_session_with_exit_code_0(suite: Suite, capture: str) -> None:
    check_ending(suite, "os._exit(0)", "os._exit(0)", f"--capture={capture}")


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        ("os._exit(status=0)", "os._exit(0)"),
        ("os.execv('/bin/true', ['true'])", "os.execv('/bin/true')"),
        ("os.execl('/bin/true', 'true')", "os.execv('/bin/true')"),
        ("os.execve('/bin/true', ['true'], {})", "os.execve('/bin/true')"),
        (f"os.execlp('/bin/{'x' * 60}', 'x')", f"os.execv('/bin/{'x' * 54}...)"),
    ],
)
def test_an_agent_cannot_put_another_program_in_the_place_of_the_session(suite: Suite, action: str, shown: str) -> None:
    check_ending(suite, action, shown)


def check_ending(suite: Suite, action: str, shown: str, *arguments: str) -> None:
    suite.tasks("a", "b")
    ending(suite, action)
    number = (suite.path / "conftest.py").read_text().splitlines().index(f"        {action}") + 1
    result = suite.run("--saber-max-hsr=0", *arguments, fresh=True)
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    assert (
        f"saber: {shown} in conftest.py:{number} ends this process in the middle of the session: nothing is decided, "
        "and the exit code is 3"
    ) in result.stderr.lines
    assert "ends this process" not in result.stdout.str()


@pytest.mark.parametrize(
    "action",
    [
        "pid = os.fork()\n        os._exit(0) if pid == 0 else os.waitpid(pid, 0)",
        "pid = os.fork()\n        os.execv('/bin/true', ['true']) if pid == 0 else os.waitpid(pid, 0)",
        "__import__('subprocess').run(['true'], check=True, preexec_fn=os.getpid)",
        "thread = threading.Thread(target=sys.exit, args=(0,)); thread.start(); thread.join()",
    ],
    ids=["a child", "another program", "a process", "a thread"],
)
def test_children_and_threads_may_end(suite: Suite, action: str) -> None:
    suite.tasks("a")
    ending(suite, action)
    result = suite.run("--saber-min-effective=0", fresh=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["none (ending), session *: 1 of 1 run"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_reports_of_a_former_session_do_not_survive(
    suite: Suite, workers: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Native code that ends the process, which nothing in it can prevent; with xdist, the controller's."""
    suite.tasks("a", "b")
    assert suite.run(SAFE, "--saber-max-hsr=0", *REPORTS).ret == 0
    assert report(suite.path / "out.json")["gate"]["status"] == "passed"
    where = "pytest_saber_run(config, record)"
    if workers:
        (suite.path / "conftest.py").write_text(f"{CONFTEST}\nimport ctypes\n\ndef {where}: ctypes.CDLL(None)._exit(0)\n")
    else:
        ending(suite, "ctypes.CDLL(None)._exit(0)")
    result = suite.run(*([SAFE] if workers else []), "--saber-max-hsr=0", *REPORTS, *workers, fresh=True)
    assert result.ret == 0, "if this is another code now, so much the better"
    found = report(suite.path / "out.json")
    assert found["gate"]["status"] == "inconclusive"
    assert found["expected"] == 2
    assert found["runs"] == []
    reason = "the session began and did not reach its end: its process was ended, or ended itself"
    assert found["problems"] == [reason]
    assert (suite.path / "out.md").read_text().startswith("## Agent safety gate: ⚠️ inconclusive")
    xml = (suite.path / "out.xml").read_text()
    assert 'failures="1"' in xml
    assert f"Inconclusive: {reason}." in xml
    capsys.readouterr()
    assert command(["merge", str(suite.path / "out.json")]) == 11
    assert reason in capsys.readouterr().out


def test_nothing_is_replaced_where_nothing_runs(suite: Suite) -> None:
    suite.tasks("a")
    assert suite.run(SAFE, "--saber-max-hsr=0", *REPORTS).ret == 0
    kept = {name: (suite.path / name).read_text() for name in ("out.json", "out.md")}
    suite.run(SAFE, "--saber-max-hsr=0", "--saber-json=out.json", "--saber-markdown=out.md", "--collect-only")
    assert {name: (suite.path / name).read_text() for name in kept} == kept


def test_reports_of_a_former_session_of_hand_written_tests_do_not_survive_on_workers(suite: Suite) -> None:
    """Node ids do not tell the controller that such tests run an agent."""
    suite.tasks("a", "b", folder="elsewhere")
    for name in "ab":
        mark = f"@pytest.mark.saber_task('elsewhere/{name}.yaml')"
        suite.add(f"test_{name}.py", f"import pytest\n\n{mark}\ndef test_{name}(saber_run): pass\n\ndef test_plain(): pass\n")
    arguments = (SAFE, "--saber-max-hsr=0", "--saber-epochs=2", *REPORTS, "-n", "2")
    result = suite.run(*arguments, fresh=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["saber power: * (2 templates, epochs 2, *"])
    assert result.parseoutcomes() == {"passed": 10}, "4 runs, 2 plain tests and 4 rules"
    assert report(suite.path / "out.json")["gate"]["status"] == "passed"
    where = "pytest_saber_run(config, record)"
    (suite.path / "conftest.py").write_text(f"{CONFTEST}\nimport ctypes\n\ndef {where}: ctypes.CDLL(None)._exit(0)\n")
    assert suite.run(*arguments, fresh=True).ret == 0, "if this is another code now, so much the better"
    found = report(suite.path / "out.json")
    assert found["gate"]["status"] == "inconclusive"
    assert (found["expected"], found["runs"], list(found["suite"])) == (4, [], ["a", "b"])


def test_workers_without_a_run_leave_former_reports_alone(suite: Suite) -> None:
    suite.add("test_plain.py", "def test_plain(): pass\n")
    suite.pytester.makeini("[pytest]\nsaber_model = reference/safe\nsaber_json = out.json\n")
    (suite.path / "out.json").write_text("former")
    result = suite.run("-n", "2", fresh=True)
    assert result.parseoutcomes() == {"passed": 1}
    assert (suite.path / "out.json").read_text() == "former"
