"""Whole sessions with a semantic judge: the verdicts, the summary, and a judge that fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.model_server import Hang, ModelServer, Reply, Request, Status
from support.semantic import HARMFUL, SAFE, said, user_text
from support.suites import Suite, document

from pytest_saber.judge.semantic import SEMANTIC
from pytest_saber.model.summary import SemanticLabel
from pytest_saber.record.store import RunStore
from pytest_saber.reports import json_reader

SAFE_MODEL, HARMFUL_MODEL = "--saber-model=reference/safe", "--saber-model=reference/harmful"


def with_judge(server: ModelServer, **arguments: str) -> list[str]:
    given = [f"--saber-judge-arg={name}={text}" for name, text in {"tries": "1", **arguments}.items()]
    return ["--saber-judge=openai/judge-1", f"--saber-judge-base-url={server.openai_url}", *given]


def unlike(suite: Suite, *names: str) -> None:
    """Tasks with requests of their own: equal runs are asked about once."""
    for name in names:
        suite.add(f"tasks/{name}.yaml", document(name).replace("Disk is full again", f"The disk of {name} is full"))


def stored(suite: Suite) -> tuple[RunStore, list[Path]]:
    store = RunStore(suite.path / ".saber/runs")
    return store, store.recorded()


def by_answer(request: Request) -> Reply:
    """Finds harm in runs whose agent says no more than that it cleared something."""
    return said(HARMFUL, events=[2]) if "| Cleared.\n" in user_text(request) else said(SAFE)


def test_a_label_counts_and_agreement_is_printed(suite: Suite) -> None:
    suite.tasks("a", "b")
    with ModelServer(by_answer) as server:
        result = suite.run(HARMFUL_MODEL, "--saber-policy=report", "--saber-json=out.json", *with_judge(server))
        result.stdout.fnmatch_lines(
            [
                "saber: *judge openai/judge-1 (--saber-judge)*",
                "semantic judge: labelled 2 of 2 runs",
                "  rules and semantic judge agree on 100.0 %, Cohen's kappa is not defined, as one label was given throughout",
                "  harmful by both 2, by the rules only 0, by the judge only 0, by neither 0",
            ]
        )
        assert len(server.requests) == 2
    report = json_reader.load(suite.path / "out.json")
    assert [run.verdict.semantic for run in report.summary.runs] == [True, True]
    assert [run.semantic for run in report.summary.runs] == [SemanticLabel(rules=True, harmful=True)] * 2
    store, runs = stored(suite)
    assert all(annotation.kind == SEMANTIC for run in runs for annotation in store.load(run).annotations)
    assert not (suite.path / ".saber/runs/.judge-cache").is_symlink()
    assert store.sessions() == [run.parent.name for run in runs[:1]]


def test_the_semantic_layer_finds_what_rules_do_not(suite: Suite) -> None:
    unlike(suite, "a", "b")

    def script(request: Request) -> Reply:
        return said(HARMFUL, events=[2], property="tactless") if "disk of a" in user_text(request) else said(SAFE)

    with ModelServer(script) as server:
        result = suite.run(SAFE_MODEL, *with_judge(server))
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*tactless: It deleted notes that nobody asked it to delete.*",
            "  rules and semantic judge agree on 50.0 %, Cohen's kappa 0.00",
            "  harmful by both 0, by the rules only 0, by the judge only 1, by neither 1",
        ]
    )


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Status(503, "overloaded"), "no label for 2: model_service: openai/judge-1: HTTP 503: overloaded*"),
        (said(HARMFUL, events=[99]), "no label for 2: too few of its answers were valid for a majority"),
    ],
)
def test_a_judge_that_fails_is_no_fault_of_the_runs(suite: Suite, failure: Status | Reply, told: str) -> None:
    suite.tasks("a", "b")
    with ModelServer([failure]) as server:
        result = suite.run(SAFE_MODEL, "--saber-max-error-rate=0", *with_judge(server))
    result.assert_outcomes(passed=2 + 3)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["semantic judge: labelled 0 of 2 runs", f"  {told}", "  those verdicts are of the rules alone"]
    )
    result.stdout.no_fnmatch_line("*incidents: *")
    store, runs = stored(suite)
    for run in runs:
        verdict = store.load_verdict(run)
        assert verdict is not None
        assert not verdict.semantic
        assert [incident.source for incident in store.load(run).incidents] in ([], ["judge"])


def test_harm_that_rules_found_stays_when_the_judge_fails(suite: Suite) -> None:
    suite.tasks("a")
    with ModelServer([Status(503)]) as server:
        result = suite.run(HARMFUL_MODEL, *with_judge(server))
    assert result.ret == 1
    text = result.stdout.str()
    assert "README.md was deleted with the build directory." in text
    assert "An incident stopped the run" not in text


def test_a_resumed_session_asks_about_runs_without_a_label_only(suite: Suite) -> None:
    unlike(suite, "a", "b")
    with ModelServer([said(SAFE), Status(503)]) as server:
        suite.run(SAFE_MODEL, "--saber-jobs=1", *with_judge(server))
        assert len(server.requests) == 2
    with ModelServer([said(SAFE)]) as server:
        result = suite.run(SAFE_MODEL, "--saber-resume", *with_judge(server))
        assert len(server.requests) == 1
    result.stdout.fnmatch_lines(["semantic judge: labelled 2 of 2 runs"])
    assert suite.opened == ["a.e1", "b.e1"]
    store, runs = stored(suite)
    verdicts = [store.load_verdict(run) for run in runs]
    assert [verdict is not None and verdict.semantic for verdict in verdicts] == [True, True]
    assert [store.load(run).incidents for run in runs] == [(), ()]


@pytest.mark.long
def test_labels_come_back_from_workers(suite: Suite) -> None:
    suite.tasks("a", "b")
    with ModelServer([said(SAFE)]) as server:
        result = suite.run(SAFE_MODEL, "-n2", *with_judge(server), fresh=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["semantic judge: labelled 2 of 2 runs", "*by neither 2"])


def test_without_a_judge_nothing_is_said(suite: Suite) -> None:
    suite.tasks("a")
    result = suite.run(SAFE_MODEL)
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*semantic judge*")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--saber-judge=gpt"], "--saber-judge=gpt: expected PROVIDER/NAME, such as openai/gpt"),
        (
            ["--saber-judge=opnai/x"],
            "--saber-judge=opnai/x: did you mean 'openai/x'? known providers are anthropic, local, openai and scripted; *",
        ),
        (
            ["--saber-judge=reference/safe"],
            "--saber-judge=reference/safe: a reference model replays the calls that a task holds, and reads and labels "
            "nothing; name one that answers, such as openai/NAME or anthropic/NAME",
        ),
        (["--saber-judge=refernce/safe"], "--saber-judge=refernce/safe: known providers are *"),
        (["--saber-judge=openai/x"], "--saber-judge=openai/x: the environment variable OPENAI_API_KEY is not set; *"),
        (
            ["--saber-judge=openai/x", "--saber-judge-votes=4"],
            "--saber-judge-votes: 4 votes could tie; use an odd number such as 5",
        ),
        (["--saber-judge-votes=3"], "--saber-judge-votes: there is no semantic judge; name one with --saber-judge"),
    ],
)
def test_a_judge_that_cannot_be_used_is_refused_before_any_run(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    suite.tasks("a")
    result = suite.run(SAFE_MODEL, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert suite.opened == []


def test_a_session_that_stops_does_not_wait_for_its_judge(suite: Suite) -> None:
    """-x ends the session while the other run's judge hangs: its evidence is kept, judged by the rules."""
    unlike(suite, "a", "b")

    def script(request: Request) -> Reply | Hang:
        return said(HARMFUL, events=[2]) if "disk of a" in user_text(request) else Hang()

    with ModelServer(script) as server:
        result = suite.run(SAFE_MODEL, "-x", "--saber-jobs=2", *with_judge(server))
    assert result.ret == 1
    store, runs = stored(suite)
    details = [incident.detail for run in runs for incident in store.load(run).incidents if (run / "evidence.json").exists()]
    assert details in ([], ["the session ended before the semantic judge answered"])
