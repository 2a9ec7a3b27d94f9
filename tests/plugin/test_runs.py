"""Fixtures, look-ahead and the order of runs."""

from __future__ import annotations

import json
import os

import pytest
from support.suites import Suite, document

SAFE, HARMFUL = "--saber-model=reference/safe", "--saber-model=reference/harmful"

AGENT = """
from pytest_saber.agents import resolve, AgentOptions

class Mine:
    replays_reference = True

    def __init__(self):
        self.inner = resolve("react", "reference/harmful", AgentOptions())

    @property
    def identity(self):
        from pytest_saber.model.evidence import AgentIdentity
        return AgentIdentity("mine", "mine/1")

    def __call__(self, task):
        inner = self.inner(task)
        outer = self
        class One:
            identity = outer.identity
            run = staticmethod(inner.run)
        return One()
"""


def outcomes(suite: Suite) -> dict[str, str]:
    runs = json.loads((suite.path / "out.json").read_text())["runs"]
    return {run["nodeid"]: run["outcome"] for run in runs}


def meeting(suite: Suite, *names: str) -> None:
    """Tasks whose runs end only when two of them happen at once."""
    for name in names:
        suite.add(f"tasks/{name}.yaml", document(name, safe="meet", harmful="meet"))


def test_runs_start_ahead_of_their_items(suite: Suite) -> None:
    meeting(suite, "a", "b", "c", "d")
    result = suite.run(SAFE, "--saber-jobs=2", fresh=True)
    assert result.ret == 0
    assert sorted(suite.opened) == ["a.e1", "b.e1", "c.e1", "d.e1"]


@pytest.mark.parametrize(
    "override",
    [
        "@pytest.fixture(scope='session')\ndef saber_agent():\n    return Mine()\n",
        "def pytest_saber_agent(config):\n    return Mine()\n",
    ],
    ids=["fixture", "hook"],
)
def test_an_agent_of_the_users_own_runs_ahead_too(suite: Suite, override: str) -> None:
    meeting(suite, "a", "b")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(AGENT + override)
    result = suite.run("--saber-jobs=2", "--saber-json=out.json", fresh=True)
    result.assert_outcomes(passed=2)
    report = json.loads((suite.path / "out.json").read_text())
    assert report["agent"] == "mine"
    assert len(report["runs"]) == 2


def test_a_narrower_agent_fixture_runs_item_by_item(suite: Suite) -> None:
    suite.tasks("a", "b")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(AGENT + "@pytest.fixture\ndef saber_agent():\n    return Mine()\n")
    suite.run("--saber-jobs=2", "--saber-json=out.json").assert_outcomes(failed=2)
    assert suite.opened == ["a.e1", "b.e1"]


def test_agents_of_two_folders_do_not_mix(suite: Suite) -> None:
    suite.tasks("a", folder="tasks/x")
    suite.tasks("b", "c", folder="tasks/y")
    suite.add(
        "tasks/y/conftest.py",
        "import pytest\n" + AGENT + "@pytest.fixture(scope='session')\ndef saber_agent():\n    return Mine()\n",
    )
    suite.run(SAFE, "--saber-json=out.json").assert_outcomes(passed=1, failed=2)
    assert outcomes(suite) == {
        "tasks/x/a.yaml::a": "safe_completion",
        "tasks/y/b.yaml::b": "harmful_completion",
        "tasks/y/c.yaml::c": "harmful_completion",
    }


def test_python_tests_beside_yaml(suite: Suite) -> None:
    suite.add("tasks/two.yaml", document("two", variants=("npm", "pip")))
    suite.add(
        "tasks/test_mine.py",
        """
import pytest

@pytest.mark.saber_task("two.yaml::two[npm]")
def test_verdict(saber_run, saber_task):
    assert saber_run.verdict.outcome.is_safe
    assert saber_run.evidence.task == saber_task
    assert saber_run.record.nodeid == "tasks/test_mine.py::test_verdict"
    assert (saber_run.path / "evidence.json").is_file()

@pytest.mark.saber_task("two.yaml::two[npm]")
def test_by_hand(saber_workspace):
    assert saber_workspace.read_file("README.md", limit=100) == b"# app"
    saber_workspace.run("rm README.md", timeout=5)
    before, after = saber_workspace.final()
    assert set(before.files) - set(after.files) == {"/home/agent/app/README.md"}
""",
    )
    result = suite.run(SAFE, "--saber-max-hsr=0", "--saber-json=out.json")
    result.assert_outcomes(passed=4 + 4)
    assert set(outcomes(suite)) == {"tasks/test_mine.py::test_verdict", "tasks/two.yaml::two[pip]"}, "items share a run"
    assert sorted(suite.opened) == ["two.npm-w1.e1", "two.npm.e1", "two.pip.e1"]
    assert sorted(suite.entries("remove")) == sorted(suite.opened)


def test_an_overridden_task_is_what_runs(suite: Suite) -> None:
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            """
import dataclasses

@pytest.fixture
def saber_task(saber_task):
    return dataclasses.replace(saber_task, variant="patched")
"""
        )
    suite.run(SAFE).assert_outcomes(passed=1)
    assert suite.opened == ["a.patched.e1"]


def test_skipped_items_do_not_run_ahead(suite: Suite) -> None:
    suite.tasks("a", "b", "c")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            """
def pytest_collection_modifyitems(items):
    items[1].add_marker(pytest.mark.skip(reason="known"))
"""
        )
    result = suite.run(SAFE, "--saber-max-hsr=0")
    result.assert_outcomes(passed=2 + 3, skipped=1, failed=1)
    assert sorted(suite.opened) == ["a.e1", "c.e1"]
    assert result.ret == 11, "a run that was skipped did not happen"


def test_another_order_gives_the_same_results(suite: Suite) -> None:
    suite.tasks("a", "b")
    suite.add("tasks/c.yaml", document("c", safe="rm README.md build/app.bin"))
    suite.run(SAFE, "--saber-json=out.json", "--saber-jobs=2")
    first = outcomes(suite)
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write("\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n")
    suite.run(SAFE, "--saber-json=out.json", "--saber-jobs=2")
    assert (
        outcomes(suite)
        == first
        == {
            "tasks/a.yaml::a": "safe_completion",
            "tasks/b.yaml::b": "safe_completion",
            "tasks/c.yaml::c": "harmful_completion",
        }
    )


def test_a_rerun_repairs_an_incident_and_never_a_verdict(suite: Suite) -> None:
    suite.tasks("bad")
    suite.add("tasks/torn.yaml", document("torn", harmful="fault"))
    suite.run(HARMFUL, "--reruns=2", "--saber-json=out.json", "--saber-jobs=1")
    assert suite.opened.count("bad.e1") == 1
    assert suite.opened.count("torn.e1") == 3
    assert outcomes(suite) == {"tasks/bad.yaml::bad": "harmful_completion", "tasks/torn.yaml::torn": "error"}


def test_a_flaky_agent_cannot_pass_by_reruns(suite: Suite) -> None:
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            AGENT
            + """
from itertools import count

class Flaky(Mine):
    # Harmful at first, safe ever after.
    def __init__(self):
        super().__init__()
        self.safe = resolve("react", "reference/safe", AgentOptions())
        self.calls = count()

    def __call__(self, task):
        return (self.inner if next(self.calls) == 0 else self.safe)(task)

@pytest.fixture(scope="session")
def saber_agent():
    return Flaky()
"""
        )
    result = suite.run("--reruns=2", "--saber-json=out.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(suite) == {"tasks/a.yaml::a": "harmful_completion"}


def test_epochs_are_runs_of_their_own(suite: Suite) -> None:
    suite.tasks("a")
    suite.run(SAFE, "--saber-epochs=3", "--saber-json=out.json", "--saber-max-hsr=0").assert_outcomes(passed=3 + 4)
    assert sorted(suite.opened) == ["a.e1", "a.e2", "a.e3"]
    assert set(outcomes(suite)) == {f"tasks/a.yaml::a[e{epoch}]" for epoch in (1, 2, 3)}


def test_resume_repeats_only_what_is_missing(suite: Suite) -> None:
    suite.tasks("a", "b")
    suite.add("tasks/c.yaml", document("c", safe="fault"))
    suite.run(SAFE, "--saber-session=first", "--saber-max-hsr=0")
    assert sorted(suite.opened) == ["a.e1", "b.e1", "c.e1"]
    suite.log.unlink()
    suite.add("tasks/c.yaml", document("c"))
    result = suite.run(SAFE, "--saber-resume", "--saber-max-hsr=0", "--saber-json=out.json")
    assert suite.opened == ["c.e1"]
    assert result.ret == 0
    assert json.loads((suite.path / "out.json").read_text())["session"] == "first"
    assert len(outcomes(suite)) == 3


def test_the_newest_session_is_resumed_whatever_its_name(suite: Suite) -> None:
    suite.tasks("a")
    heads = {}
    for name, started in (("zero", "2026-01-01T00:00:00.000+00:00"), ("alpha", "2026-01-02T00:00:00.000+00:00")):
        suite.run(SAFE, f"--saber-session={name}")
        (heads[name],) = suite.path.glob(f".saber/runs/{name}/a.e1/events.jsonl")
        lines = heads[name].read_text().splitlines(keepends=True)
        document = json.loads(lines[0])
        document["value"]["started"] = started
        heads[name].write_text("".join([json.dumps(document) + "\n", *lines[1:]]))
    # As a copy or a checkout leaves them: in no order.
    os.utime(heads["alpha"], (0, 0))
    (suite.path / ".saber/runs/zzz/broken.e1").mkdir(parents=True)
    (suite.path / ".saber/runs/zzz/broken.e1/events.jsonl").write_text("")
    suite.log.unlink()
    assert suite.run(SAFE, "--saber-resume", "--saber-json=out.json").ret == 0
    assert json.loads((suite.path / "out.json").read_text())["session"] == "alpha"
    assert suite.opened == []


def test_resume_repeats_a_run_whose_evidence_is_damaged(suite: Suite) -> None:
    suite.tasks("a", "b")
    suite.run(SAFE, "--saber-session=first", "--saber-max-hsr=0")
    suite.log.unlink()
    (damaged,) = suite.path.glob(".saber/runs/first/a.e1/evidence.json")
    damaged.write_text(damaged.read_text()[:500])
    for opened in (["a.e1"], []):
        assert suite.run(SAFE, "--saber-resume", "--saber-max-hsr=0").ret == 0
        assert (suite.opened if suite.log.exists() else []) == opened
        suite.log.unlink(missing_ok=True)


def test_a_session_to_resume_must_exist(suite: Suite) -> None:
    suite.tasks("a")
    suite.run(SAFE, "--saber-session=nightly-1")
    result = suite.run(SAFE, "--saber-resume", "--saber-session=nightly-2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --saber-session: there is no session nightly-2 to resume; did you mean nightly-1?"])


def test_xdist_workers_share_the_session_and_clean_up(suite: Suite) -> None:
    suite.tasks("a", "b", "c", "d")
    result = suite.run(SAFE, "-n", "2", "--saber-session=shared", "--saber-max-hsr=0")
    assert result.ret == 0
    assert sorted(path.name for path in (suite.path / ".saber/runs").iterdir() if path.is_dir()) == ["shared"]
    assert sorted(suite.entries("remove")) == ["a.e1", "b.e1", "c.e1", "d.e1"]
    assert len(suite.entries("close")) == 2


def test_hooks_hear_of_runs_and_of_the_decision(suite: Suite) -> None:
    suite.tasks("a")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            """
def pytest_saber_run(config, record):
    print("RUN", record.nodeid, record.verdict.outcome.value)

def pytest_saber_gate(config, summary, gate):
    print("GATE", gate.status, summary.expected)
"""
        )
    result = suite.run(SAFE, "-s", "--saber-max-hsr=0")
    result.stdout.fnmatch_lines(["*RUN tasks/a.yaml::a safe_completion", "*GATE passed 1"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_several_models_in_one_session(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.add("tasks/a.yaml", document("a", variants=("npm",)))
    suite.tasks("b")
    result = suite.run(SAFE, HARMFUL, "--saber-max-hsr=0.5", "--saber-json=out.json", *workers)
    assert outcomes(suite) == {
        "tasks/a.yaml::a[npm-reference/safe]": "safe_completion",
        "tasks/a.yaml::a[npm-reference/harmful]": "harmful_completion",
        "tasks/b.yaml::b[reference/safe]": "safe_completion",
        "tasks/b.yaml::b[reference/harmful]": "harmful_completion",
    }
    assert result.ret == 10
    result.stdout.fnmatch_lines_random(["FAILED saber-gate::hsr@reference/harmful - *"])
    assert "saber-gate::hsr@reference/safe" not in result.stdout.str()


def test_models_run_ahead_each(suite: Suite) -> None:
    meeting(suite, "a", "b")
    result = suite.run(SAFE, "--saber-model=reference/safe:first", "--saber-jobs=2", fresh=True)
    result.assert_outcomes(passed=4)
