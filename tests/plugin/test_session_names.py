"""A session's name is that of one session: what a name that is taken, or one to resume that is not there, leads to."""

from __future__ import annotations

import json
import signal

import pytest
from support.suites import Suite, document

from .test_signals import finish, hanging, start, wait_until

SAFE = "--saber-model=reference/safe"
NOT_THERE = "saber resume: no session to go on with in .saber/runs, a new one begins"


def names(suite: Suite, session: str) -> list[str]:
    return sorted(path.name for path in (suite.path / ".saber/runs" / session).iterdir())


@pytest.mark.parametrize(
    ("origin", "workers"),
    [("option", ()), ("option", ("-n", "2")), ("variable", ()), ("ini", ("-n", "1"))],
    ids=["option", "option, xdist", "variable", "ini, xdist"],
)
def test_a_name_that_is_taken_is_refused_before_any_run(
    suite: Suite, origin: str, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.tasks("a", "b")
    assert suite.run(SAFE, "--saber-session=rel2", "--saber-json=out.json").ret == 0
    suite.log.unlink()
    given = ["--saber-session=rel2"] if origin == "option" else []
    if origin == "variable":
        monkeypatch.setenv("SABER_SESSION", "rel2")
    if origin == "ini":
        with (suite.path / "tox.ini").open("a") as ini:
            ini.write("\nsaber_session = rel2\n")
    result = suite.run(SAFE, *given, "--saber-json=out.json", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    shown = {"option": "--saber-session", "variable": "env SABER_SESSION", "ini": "ini saber_session"}[origin]
    told = "this session has 2 runs in .saber/runs/rel2; go on with it by --saber-resume, or choose another name"
    assert f"ERROR: {shown}=rel2: {told}" in [*result.outlines, *result.errlines]
    assert suite.opened == []
    assert names(suite, "rel2") == ["a.e1", "b.e1"]
    report = json.loads((suite.path / "out.json").read_text())
    assert report["gate"]["status"] != "passed", "as of any session that was refused"
    assert report["runs"] == []


def test_sessions_that_record_no_run_take_no_name(suite: Suite) -> None:
    suite.tasks("a")
    suite.add("tests/test_plain.py", "def test_plain(): pass\n")
    (suite.path / ".saber/runs/rel2").mkdir(parents=True)
    assert suite.run(SAFE, "--saber-session=rel2").ret == 0
    assert suite.run(SAFE, "--saber-session=rel2", "--collect-only").ret == 0
    plain = suite.run("tests/test_plain.py", "-n", "1", "-o", "saber_session=rel2")
    plain.assert_outcomes(passed=1)


def test_shards_are_parts_of_one_session(suite: Suite) -> None:
    suite.tasks("a", "b", "c", "d")
    for shard in ("1/2", "2/2"):
        assert suite.run(SAFE, "--saber-session=rel2", f"--saber-shard={shard}").ret == 0
    assert names(suite, "rel2") == ["a.e1", "b.e1", "c.e1", "d.e1"]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_the_header_says_that_there_is_nothing_to_resume(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a")
    assert NOT_THERE in suite.run(SAFE, "--saber-resume", *workers).outlines
    assert suite.opened == ["a.e1"]
    assert NOT_THERE not in suite.run(SAFE, "--saber-resume", *workers).outlines
    assert suite.opened == ["a.e1"]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_an_interrupted_session_says_how_to_go_on(suite: Suite, workers: tuple[str, ...]) -> None:
    hanging(suite, "a")
    session = start(suite, "--saber-session=night", *workers)
    wait_until(lambda: len(suite.entries("hang")) == 1, session)
    session.send_signal(signal.SIGINT)
    lines = finish(session).splitlines()
    [told] = [line for line in lines if "go on with:" in line]
    assert told == "the session was interrupted; go on with: --saber-resume --saber-session=night"
    suite.add("tasks/a.yaml", document("a"))
    assert suite.run(SAFE, *told.split()[-2:], "--saber-max-hsr=0").ret == 0


def test_an_interrupted_session_without_a_run_cannot_be_resumed(suite: Suite) -> None:
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write("\ndef pytest_runtest_setup(item): raise KeyboardInterrupt\n")
    result = suite.run(SAFE, "--saber-max-hsr=0", fresh=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*the session was interrupted*"])
    assert "go on with:" not in result.stdout.str()
