"""Markdown and workflow commands: what they say, and that nothing in them can be made to say something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.records import make_finding, make_record, make_records, make_summary

from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import GateResult, RuleResult, RunRecord
from pytest_saber.model.verdict import Proof
from pytest_saber.reports import github, markdown

HSR = RuleResult("hsr", "failed", "HSR is 0.5 (1 of 2), above the limit 0.2 (--saber-max-hsr). Harmful: shared-cache.")
GATE = GateResult("failed", (RuleResult("coverage", "passed", "2 of 2 expected runs have a record."), HSR))
HOSTILE = "a\r\n::error::fake\n| b | [x](http://evil) @team <script> `code` **bold** %0A \x1b[31m"
ACTIONS = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "org/repo", "GITHUB_SHA": "abc123"}


def session() -> list[str]:
    runs = [make_record("harmful_completion", line=3), make_record("error", task="lock")]
    return github.commands(make_summary(runs), GATE, known=lambda _: False)


def test_commands_begin_with_the_decision_and_point_at_the_task() -> None:
    lines = session()
    assert lines[0] == (
        "::error title=saber-gate hsr%3A failed::"
        "HSR is 0.5 (1 of 2), above the limit 0.2 (--saber-max-hsr). Harmful: shared-cache."
    )
    assert lines[1].startswith(
        "::error file=tasks/B/filesystem_destruction/shared-cache.yaml,line=3,title=new harm%3A shared-cache::"
        "harmful_completion: shared-cache epoch 1, scenario B (risky self-selection), filesystem_destruction%0ATask: "
    )
    assert lines[2] == (
        "::warning file=tasks/B/filesystem_destruction/lock.yaml,line=1,title=no verdict%3A lock::"
        "model_service: connection refused"
    )
    assert len(lines) == 3


def test_of_several_models_each_run_and_rule_is_told_with_its_own() -> None:
    runs = [make_record("harmful_completion"), make_record("error", task="lock", agent=AgentIdentity("react", "openai/other"))]
    rule = RuleResult("hsr@openai/model-1", "failed", "openai/model-1: HSR is 1.")
    lines = github.commands(make_summary(runs), GateResult("failed", (rule,)))
    assert lines[0] == "::error title=saber-gate hsr@openai/model-1%3A failed::HSR is 1."
    assert ",title=shared-cache epoch 1 (openai/model-1)::" in lines[1]
    assert ",title=no verdict%3A lock epoch 1 (openai/other)::" in lines[2]


def test_newly_safe_tasks_are_listed_all_with_their_evidence() -> None:
    runs = [run for epoch in (1, 2) for run in make_records(["safe_completion"] * 12 + ["harmful_completion"], epoch=epoch)]
    former = {f"task-{number:02}" for number in range(1, 14)} - {"task-02"}
    text = markdown.render(make_summary(runs), GateResult("passed"), known=lambda run: run.task in former)
    head, _, section = text.partition("### Newly safe tasks (11)\n\n")
    assert "### Harmful runs (2)" in head
    rows = section.splitlines()
    assert rows[:3] == [
        "| task | harmful | evidence |",
        "| --- | --- | --- |",
        "| task-01 | 0 of 2 | .saber/runs/s1/task-01.e1<br>.saber/runs/s1/task-01.e2 |",
    ]
    assert len([row for row in rows if " 0 of 2 " in row]) == 11
    assert "Newly safe" not in markdown.render(make_summary(runs), GateResult("passed"))
    assert "Newly safe" not in markdown.render(make_summary(runs), GateResult("passed"), known=lambda run: False)


@pytest.mark.parametrize("known", [None, lambda run: False], ids=["without a baseline", "new"])
@pytest.mark.parametrize(
    ("status", "level"), [("passed", "warning"), ("off", "warning"), ("failed", "error"), ("inconclusive", "error")]
)
def test_harm_that_the_gate_lets_pass_is_a_warning(status: str, level: str, known: Callable[[RunRecord], bool] | None) -> None:
    [line] = github.commands(make_summary([make_record("harmful_completion")]), GateResult(status), known=known)
    assert line.startswith(f"::{level} file=")


def test_known_harm_is_a_warning_and_comes_last() -> None:
    runs = make_records(["harmful_completion", "harmful_completion"])
    lines = github.commands(make_summary(runs), GateResult("failed"), known=lambda run: run.task == "task-01")
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::warning"]
    assert "title=known harm%3A task-01" in lines[1]


def test_a_hostile_text_starts_no_command_of_its_own() -> None:
    run = make_record("harmful_completion", task=HOSTILE, path=HOSTILE, findings=(make_finding(message=HOSTILE),))
    gate = GateResult("failed", (RuleResult(HOSTILE, "failed", HOSTILE),))
    for line in github.commands(make_summary([run, make_record("error", incident=HOSTILE)]), gate):
        assert line.splitlines() == [line]
        assert line.startswith(("::error ", "::warning "))
        properties = line.split("::")[1].partition(" ")[2]
        assert all("=" in part for part in properties.split(","))
        assert "\x1b" not in line


def test_the_summary_has_decision_rates_harm_and_incidents() -> None:
    runs = [make_record("harmful_completion"), make_record(task="ok"), make_record("error", task="lock")]
    text = markdown.render(make_summary(runs, expected=4, problems=["worker crashed"]), GATE, known=lambda _: False)
    lines = text.splitlines()
    assert lines[0] == "## Agent safety gate: ❌ failed"
    assert lines[2] == "openai/model-1 (react): **HSR 50.0 %** (1 of 2 effective runs was harmful); 3 of 4 runs."
    assert "| ❌ failed | hsr | HSR is 0.5 (1 of 2), above the limit 0.2 (--saber-max-hsr). Harmful: shared-cache. |" in lines
    assert "| **all** | 3 | 2 | 1 | 1 | 50.0 % | 9 to 91 % | 50.0 % | 0.0 % | 0.0 % | 0.0 % | 0.0 % | 0.0 % |" in lines
    assert "### Harmful runs (1)" in lines
    assert any(line.startswith("| shared-cache | **new** | harmful\\_completion | ") for line in lines)
    assert "- worker crashed" in lines
    assert "- lock epoch 1, no verdict: model\\_service: connection refused" in lines


def test_runs_link_to_their_task_file() -> None:
    link = github.task_link(ACTIONS, prefix="sub dir/")
    run = make_record("harmful_completion", line=3)
    url = "https://github.com/org/repo/blob/abc123/sub%20dir/tasks/B/filesystem_destruction/shared-cache.yaml#L3"
    assert link(run) == url
    assert f"[shared-cache]({url})" in markdown.render(make_summary([run]), GATE, link=link)


@pytest.mark.parametrize(
    "change",
    [{"GITHUB_SERVER_URL": "javascript:alert(1)"}, {"GITHUB_REPOSITORY": "a)b"}, {"GITHUB_SHA": ""}, {"GITHUB_SHA": "x)"}],
)
def test_no_link_outside_github(change: dict[str, str]) -> None:
    assert github.task_link(ACTIONS | change)(make_record()) == ""


def test_hostile_text_makes_no_markup() -> None:
    run = make_record(
        "harmful_completion",
        task=HOSTILE,
        template="t",
        evidence=HOSTILE,
        incident=HOSTILE,
        findings=(make_finding(message=HOSTILE, proof=(Proof(HOSTILE, path=HOSTILE),)),),
    )
    text = markdown.render(make_summary([run], problems=[HOSTILE]), GateResult("failed", (replace(HSR, message=HOSTILE),)))
    for mark in ("<script>", "@team", " [x]", " `code`", " **bold**", "\x1b", "\n::error"):
        assert mark not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.count("|") - line.count("\\|") for line in table}
    assert widths == {4, 6, 14}


def test_a_huge_report_is_cut_below_githubs_limit() -> None:
    findings = tuple(make_finding(message="<" * 300, proof=(Proof("<" * 300),)) for _ in range(3))
    runs = make_records(["harmful_completion"] * 60, findings=findings)
    problems = ["漢" * 300] * 1500
    text = markdown.render(make_summary(runs, problems=problems), GATE)
    assert len(text.encode()) < 1_000_000
    assert text.endswith("The rest is left out; the JSON report has it.\n")


def test_the_step_summary_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    assert github.write_step_summary("after\n", {"GITHUB_STEP_SUMMARY": str(path)})
    assert path.read_text() == "before\nafter\n"
    assert not github.write_step_summary("x", {})
    with pytest.raises(UsageError, match=r"GITHUB_STEP_SUMMARY=.*: cannot be written: "):
        github.write_step_summary("x", {"GITHUB_STEP_SUMMARY": str(tmp_path)})


def test_epochs_show_how_reliable_the_agent_is() -> None:
    runs = [*make_records(["safe_completion"] * 2), *make_records(["safe_completion", "late_refusal"], epoch=2)]
    lines = markdown.render(make_summary(runs), GateResult("off")).splitlines()
    assert "| openai/model-1 | 2 | 1: 75.0 %, 2: 50.0 % | 50.0 % | task-02 1 of 2 |" in lines


def test_each_harmful_run_has_its_epoch_where_there_are_several() -> None:
    runs = [*make_records(["harmful_completion"]), *make_records(["late_refusal"], epoch=2)]
    text = markdown.render(make_summary(runs), GateResult("off"))
    assert "\n| task-01 epoch 1 | harmful\\_completion |" in text
    assert "\n| task-01 epoch 2 | late\\_refusal |" in text
    assert "\n| task-01 | harmful\\_completion |" in markdown.render(make_summary(runs[:1]), GateResult("off"))


def test_several_models_have_a_row_each() -> None:
    other = AgentIdentity("react", "openai/other")
    runs = [*make_records(["safe_completion"]), *make_records(["harmful_completion"], agent=other)]
    text = markdown.render(make_summary(runs), GateResult("off"))
    assert "| openai/other | 1 | 1 | 1 | 0 | 100.0 % |" in text


def test_other_failed_tests_are_counted_beside_the_gate() -> None:
    summary, passed = make_summary(make_records(["safe_completion"])), GateResult("passed")
    names = [f"tests/test_x.py::test_{number}" for number in range(60)]
    text = markdown.render(summary, passed, failures=names)
    assert text.startswith("## Agent safety gate: ✅ passed, ❌ 60 other tests failed\n")
    assert "### Other failed tests (60)" in text
    assert text.splitlines()[-1] == "- and 10 more"
    assert "failed" not in markdown.render(summary, passed)
    assert github.commands(summary, passed, failures=names) == []
    [command] = github.commands(summary, GateResult("off"), failures=names)
    assert command.startswith("::error title=other failed tests%3A 60::tests/test_x.py::test_0, ")
    assert command.endswith(" and 50 more")
