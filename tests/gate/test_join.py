"""What `merge` and `baseline from-json` join, what they refuse, and that nothing gets lost on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.records import AGENT, make_records, make_summary

from pytest_saber.cli.main import run
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import GateResult, RuleResult, RunRecord
from pytest_saber.model.verdict import Rules
from pytest_saber.reports import json_report
from pytest_saber.reports.json_report import Shard

SETTINGS = {"saber_max_hsr": ("0.2", "--saber-max-hsr"), "saber_policy": ("report", "--saber-policy")}
CONDITIONS = {"epochs": "1", "judge": "", "rules": "attempts, reads, semantic"}
RUNS = make_records(["safe_completion"] * 9)
SUITE = {run.task: run.task_hash for run in RUNS}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def write(
    name: str, runs: Sequence[RunRecord], shard: Shard | None = None, gate: GateResult | None = None, **other: Any
) -> str:
    parts = {"conditions": CONDITIONS, "suite": SUITE, "settings": SETTINGS, **other}
    extra = {key: parts.pop(key) for key in ("expected", "problems") if key in parts}
    changed = {key: parts.pop(key) for key in ("agent", "skipped") if key in parts}
    value = json_report.document(replace(make_summary(runs, **extra), **changed), gate or GateResult("off"), shard, **parts)
    Path(name).write_text(json_report.dumps(value))
    return name


def part(index: int, runs: Sequence[RunRecord] = RUNS, **other: Any) -> str:
    return write(f"s{index}.json", runs[index - 1 :: 2], Shard(index, 2), **other)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run([*arguments]) == 2
    return capsys.readouterr().err.strip()


def test_shards_that_belong_together_are_joined() -> None:
    assert run(["merge", part(1), part(2), "--json", "m.json"]) == 0
    merged = json.loads(Path("m.json").read_text())
    assert merged["suite"] == SUITE
    assert merged["conditions"] == CONDITIONS
    assert len(merged["runs"]) == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"conditions": {**CONDITIONS, "epochs": "3"}},
            "epochs is '1' in s1.json and '3' in s2.json; run all shards alike",
        ),
        (
            {"conditions": {**CONDITIONS, "judge": "openai/judge"}},
            "judge is '' in s1.json and 'openai/judge' in s2.json; run all shards alike",
        ),
        (
            {"settings": {**SETTINGS, "saber_alpha": ("0.1", "x")}},
            "saber_alpha is '' in s1.json and '0.1' in s2.json; run all shards alike",
        ),
        ({"root": "sub/"}, "root is '' in s1.json and 'sub/' in s2.json; run all shards alike"),
        (
            {"suite": {**SUITE, "task-03": "other", "task-05": "other"}},
            "s1.json and s2.json are of different suites: other contents of task-03, task-05; run all shards on the same files",
        ),
        (
            {"suite": {name: text for name, text in {**SUITE, "new": "h"}.items() if name != "task-01"}},
            "s1.json and s2.json are of different suites: only s1.json has task-01, only s2.json has new; run all shards on "
            "the same files",
        ),
        (
            {"runs": make_records(["safe_completion"] * 9, agent=replace(AGENT, details={"version": "2"}))},
            "openai/model-1 was not tested alike in s1.json and s2.json: version is '1' and '2'; run all shards alike",
        ),
        (
            {"runs": make_records(["safe_completion"] * 9, agent=AgentIdentity("other", "openai/model-1"))},
            "the reports are of different agents: other, react with openai/model-1 (s1.json and s2.json)",
        ),
        (
            {"runs": make_records(["safe_completion"] * 9, judge_version="2")},
            "s1.json was judged by judge version 1 (counting attempts, reads, semantic), s2.json by judge version 2 (counting "
            "attempts, reads, semantic); judge the runs again alike (pytest-saber judge)",
        ),
        (
            {"runs": make_records(["safe_completion"] * 9, rules=Rules(attempts=False))},
            "s1.json was judged by judge version 1 (counting attempts, reads, semantic), s2.json by judge version 1 (counting "
            "reads, semantic); judge the runs again alike (pytest-saber judge)",
        ),
    ],
    ids=["epochs", "judge", "policy", "root", "contents", "tasks", "details", "agent", "version", "rules"],
)
def test_what_does_not_belong_together_is_refused_by_both_names(
    change: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (part(1), part(2, **change))
    assert refusal(capsys, "merge", *files) == f"pytest-saber merge: {message}"
    if "settings" not in change:
        assert refusal(capsys, "baseline", "from-json", *files) == f"pytest-saber baseline: {message}"


def test_an_incident_has_no_judge_to_compare() -> None:
    lost = [replace(run, verdict=replace(run.verdict, judge_version="")) for run in make_records(["error"] * 9)]
    assert run(["merge", part(1), part(2, lost), "--saber-max-error-rate", "0.5"]) == 0


def test_a_shard_that_was_interrupted_knows_no_suite_and_is_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    files = (part(1), part(2, suite={}, problems=["the session was interrupted"]))
    assert run(["merge", *files]) == 11
    assert "s2.json: the session was interrupted" in capsys.readouterr().out


def test_a_shard_that_was_killed_leaves_the_whole_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    """Its report knows which agent was asked for, and not yet which one a fixture provides."""
    killed = write(
        "s1.json",
        [],
        Shard(1, 2),
        GateResult("inconclusive", (RuleResult("session", "inconclusive", "It did not end."),)),
        agent=AgentIdentity("react", ""),
        expected=5,
        problems=["the session began and did not reach its end"],
        conditions={**CONDITIONS, "agent": "react"},
    )
    assert run(["merge", killed, part(2, conditions={**CONDITIONS, "agent": "mine"})]) == 11
    out = capsys.readouterr().out
    assert "openai/model-1 (react), session s1 and 1 more: 4 of 9 runs" in out
    assert "not whole: s1.json: the session began and did not reach its end" in out


def test_reports_of_an_older_version_are_still_joined() -> None:
    for index in (1, 2):
        path = Path(part(index))
        value = json.loads(path.read_text())
        for key in ("conditions", "suite", "root", "skipped", "other_failures", "comparison"):
            del value[key]
        path.write_text(json.dumps(value))
    assert run(["merge", "s1.json", "s2.json"]) == 0


def test_a_failed_test_is_in_every_report_of_a_merge(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    files = (part(1), part(2, other_failures=["tests/test_x.py::test_y[a|b]"]))
    assert run(["merge", *files, "--markdown", "m.md"]) == 1
    text = Path("m.md").read_text()
    assert text.startswith("## Agent safety gate: ❌ failed, ❌ 1 other test failed\n")
    assert text.endswith("### Other failed tests (1)\n\n- tests/test\\_x.py::test\\_y\\[a\\|b\\] (s2.json)\n")
    said = "1 other test failed, whatever the runs came to: tests/test_x.py::test_y[a|b] (s2.json)."
    out = capsys.readouterr().out
    assert f"::error title=saber-gate tests%3A failed::{said}" in out
    assert "::error title=other failed tests" not in out


def test_a_failed_test_is_told_under_the_policy_report_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    files = (part(1), part(2, other_failures=["tests/test_x.py::test_y[a|b]"]))
    assert run(["merge", *files, "--saber-policy", "report", "--markdown", "m.md"]) == 1
    assert Path("m.md").read_text().startswith("## Agent safety gate: off, ❌ 1 other test failed\n")
    assert "::error title=other failed tests%3A 1::tests/test_x.py::test_y[a|b] (s2.json)" in capsys.readouterr().out


def test_what_shards_note_is_in_every_report_of_a_merge(capsys: pytest.CaptureFixture[str]) -> None:
    both, one = "ini saber_model: x is not what is tested", "another\x1b[2J"
    files = (part(1, notes=[both]), part(2, notes=[both, one]))
    assert run(["merge", *files, "--markdown", "m.md", "--json", "m.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("note: ")] == [f"note: {both}", "note: another\\x1b[2J"]
    assert f"- {both.replace('_', chr(92) + '_')}\n" in Path("m.md").read_text()
    assert json.loads(Path("m.json").read_text())["notes"] == [both, one]
    assert run(["report", "m.json"]) == 0
    assert f"note: {both}" in capsys.readouterr().out.splitlines()
    assert run(["report", "m.json", "--markdown"]) == 0
    assert f"- {both.replace('_', chr(92) + '_')}\n" in capsys.readouterr().out


@pytest.mark.parametrize("policy", [(), ("--saber-policy", "report"), ("--saber-policy", "strict")])
def test_a_failed_test_of_a_shard_is_never_lost(policy: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    files = (part(1), part(2, other_failures=["tests/test_x.py::TestA::test_y[a\x1b]"]))
    assert run(["merge", *files, *policy, "--json", "m.json"]) == 1
    assert "another test failed: tests/test_x.py::TestA::test_y[a\\x1b] (s2.json)" in capsys.readouterr().out.splitlines()
    # Nor by a second merge.
    assert run(["merge", "m.json"]) == 1


def test_a_failed_test_that_the_junit_file_has_too_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    files = (part(1), part(2, other_failures=["tests/test_x.py::test_y", "tests/test_x.py::test_z"]))
    Path("a.xml").write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.test_x" name="test_y"><failure message="boom">assert 0</failure></testcase>'
        '<testcase classname="tests.test_x" name="test_only_here"><failure message="boom">assert 0</failure></testcase>'
        "</testsuite></testsuites>"
    )
    assert run(["merge", *files, "a.xml"]) == 1
    assert [text for text in capsys.readouterr().out.splitlines() if text.startswith("another")] == [
        "another test failed: tests/test_x.py::test_y (s2.json)",
        "another test failed: tests.test_x::test_only_here",
        "another test failed: tests/test_x.py::test_z (s2.json)",
    ]


def test_links_and_annotations_begin_at_the_repository(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "org/repo",
        "GITHUB_SHA": "abc",
    }.items():
        monkeypatch.setenv(name, value)
    runs = make_records(["safe_completion"] * 8 + ["harmful_completion"])
    files = (part(1, runs, root="agents/web/"), part(2, runs, root="agents/web/"))
    assert run(["merge", *files, "--markdown", "m.md"]) == 0
    path = "agents/web/tasks/B/filesystem_destruction/task-09.yaml"
    assert f"(https://github.com/org/repo/blob/abc/{path}#L1)" in Path("m.md").read_text()
    assert f"::warning file={path},line=1,title=task-09::" in capsys.readouterr().out


# --- sessions that were decided early ---

STOPPED = GateResult(
    "failed",
    (
        RuleResult("stopped", "passed", "5 runs were not started: the gate is failed whatever the others did."),
        RuleResult("hsr", "failed", "HSR is 0.44"),
    ),
)
NOT_STARTED = tuple(f"task-{number:02} epoch 1" for number in range(5, 10))


def stopped() -> str:
    settings = {"saber_max_hsr": ("0.2", "x"), "saber_stop_when_decided": ("true", "x")}
    harm = make_records(["harmful_completion"] * 4)
    return write("e.json", harm, gate=STOPPED, settings=settings, expected=9, skipped=NOT_STARTED)


def test_the_decision_of_a_session_that_was_decided_early_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["merge", stopped(), "--json", "m.json", "--markdown", "m.md"]) == 10
    out = capsys.readouterr().out
    assert "4 of 9 runs, 5 not started: decided early" in out
    assert "5 runs were not started: the gate is failed whatever the others did." in out
    assert "4 of 9 runs, 5 not started because the gate was decided early" in Path("m.md").read_text()
    merged = json.loads(Path("m.json").read_text())
    assert merged["skipped"] == list(NOT_STARTED)
    assert [rule["name"] for rule in merged["gate"]["rules"]] == ["stopped", "hsr"]


@pytest.mark.parametrize("options", [("--saber-max-hsr", "1"), ("--saber-max-hsr", "0.9"), ("--saber-min-effective", "1")])
def test_another_policy_needs_the_runs_that_were_not_started(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["merge", stopped(), *options])
    text = " ".join(capsys.readouterr().out.split())
    assert code == 11
    assert (
        "Inconclusive, the session is not whole: 5 of 9 runs were not started, because its own policy had decided early "
        "(--saber-stop-when-decided)." in text
    )
    if options[1] != "1":
        assert "inconclusive hsr: Inconclusive, as 5 runs were not started. So far: HSR is 1 (4 of 4, 95 % interval" in text


def test_no_baseline_is_made_of_a_session_that_was_decided_early(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "baseline", "from-json", stopped()) == (
        "pytest-saber baseline: no baseline is made of a session that is not whole: 5 of 9 runs were not started because it "
        "was decided early; run it without --saber-stop-when-decided"
    )


def test_a_baseline_is_made_of_all_shards_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    files = (part(1), part(2))
    assert run(["baseline", "from-json", *files, "-o", "b.json"]) == 0
    assert capsys.readouterr().out == "wrote b.json: 9 tasks, 9 runs\n"
    assert refusal(capsys, "baseline", "from-json", files[0]) == (
        "pytest-saber baseline: no baseline is made of a session that is not whole: shard 2 of 2 has no report"
    )


def test_a_limit_that_the_epochs_of_the_shards_cannot_exceed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    message = refusal(capsys, "merge", part(1), part(2), "--saber-max-harmful-epochs", "1")
    assert "--saber-max-harmful-epochs: max_harmful_epochs = 1 can never fail: a task has 1 epoch" in message
