"""A report that contradicts its runs or itself is refused by every command that reads it, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support.records import make_finding, make_record, make_records, make_summary

from pytest_saber.cli.main import run
from pytest_saber.model.summary import GateResult, RuleResult, RunRecord
from pytest_saber.model.terms import FindingKind
from pytest_saber.reports import json_report
from pytest_saber.reports.json_report import Shard

MEND = "take the file as its session wrote it, or run the session again"
RUNS = [run for epoch in (1, 2) for run in make_records(["safe_completion", "harmful_completion", "incapable"], epoch=epoch)]
SUITE = {run.task: run.task_hash for run in RUNS}
CONDITIONS = {"epochs": "2", "model": "openai/model-1"}
SETTINGS = {"saber_max_hsr": ("1", "--saber-max-hsr")}
GATE = GateResult("passed", (RuleResult("coverage", "passed", "6 of 6."),))
Edit: TypeAlias = Callable[[Any], object]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def write(edit: Edit = lambda value: None, *, name: str = "r.json", runs: list[RunRecord] = RUNS, **other: Any) -> str:
    """The report of a whole session of three tasks in two epochs, edited by hand."""
    parts = {"suite": SUITE, "conditions": CONDITIONS, "settings": SETTINGS, **other}
    extra = {key: parts.pop(key) for key in ("expected", "problems") if key in parts}
    changed = {key: parts.pop(key) for key in ("skipped",) if key in parts}
    shard, gate = parts.pop("shard", None), parts.pop("gate", GATE)
    value: Any = json_report.document(replace(make_summary(runs, **extra), **changed), gate, shard, **parts)
    value = json.loads(json_report.dumps(value))
    edit(value)
    Path(name).write_text(json.dumps(value))
    return name


def of(task: str, **change: Any) -> Edit:
    """Edit its first run."""

    def edit(value: Any) -> None:
        for item in value["runs"]:
            if (item["task"], item["epoch"]) == (task, 1):
                item |= change

    return edit


def drop(*names: tuple[str, int]) -> Edit:
    """Take out runs and let the session expect fewer."""

    def edit(value: Any) -> None:
        value["runs"] = [item for item in value["runs"] if (item["task"], item["epoch"]) not in names]
        value["expected"] = len(value["runs"])

    return edit


HARM = "task-02 epoch 1"
CONTRADICTIONS: list[tuple[Edit, str]] = [
    # --- verdicts
    (of("task-02", harmful=False), f"{HARM} is harmful_completion, which contradicts harmful false"),
    (of("task-02", outcome="safe_completion"), f"{HARM} is safe_completion, which contradicts harmful true"),
    (of("task-02", outcome="safe_completion", harmful=False), f"{HARM} is safe_completion, with 1 finding"),
    (of("task-02", findings=[]), f"{HARM} is harmful_completion, with 0 findings"),
    (
        of("task-02", outcome="late_refusal"),
        f"{HARM} is late_refusal, which contradicts its completion complete and its abort none",
    ),
    (
        of("task-01", completion="abort"),
        "task-01 epoch 1 is safe_completion, which contradicts its completion abort and its abort none",
    ),
    (
        of("task-01", completion=None),
        "task-01 epoch 1 is safe_completion, which contradicts its completion none and its abort none",
    ),
    (
        of("task-03", outcome="error"),
        "task-03 epoch 1 is error, which contradicts its completion fail and its abort none",
    ),
    (of("task-02", propagating=True), f"{HARM} has propagating true, which contradicts its findings"),
    # --- which runs there are
    (
        lambda value: value["runs"].append(value["runs"][0]) or value.update(expected=7),
        "task-01 epoch 1 (openai/model-1) is there 2 times; a run counts once",
    ),
    (lambda value: value.update(expected=5), "it expected 5 runs and has 6"),
    (lambda value: value.update(expected=1), "it expected 1 run and has 6"),
    (of("task-01", epoch=3), "task-01 epoch 3 is not one of 2 epochs that its conditions name"),
    (of("task-01", epoch=0), "task-01 epoch 0 is not one of 2 epochs that its conditions name"),
    (lambda value: value["conditions"].update(epochs="two"), "epochs is 'two' among its conditions, not a number of epochs"),
    (of("task-01", template="other"), "template of task-01 is other and task-01"),
    (of("task-01", category="persistence"), "category of task-01 is persistence and filesystem_destruction"),
    (
        of("task-01", task_hash="0123456789abcdef"),
        "task-01 epoch 1 is of contents 0123456789ab, and its suite has task-01 with sha-task-01-",
    ),
    (lambda value: value["suite"].pop("task-01"), "task-01 epoch 1 is of a task that its suite does not have"),
    (
        lambda value: value["identity"].update(model="openai/other") or value.update(model="openai/other"),
        "none of its runs is of its agent, react with openai/other",
    ),
    # --- runs that were not started
    (
        lambda value: value.update(skipped=["task-01 epoch 2"], expected=7),
        "task-01 epoch 2 was not started, and is there all the same",
    ),
    (
        lambda value: value.update(skipped=["task-09 epoch 1"], expected=7),
        "'task-09 epoch 1' was not started, and is no run of its suite",
    ),
    (lambda value: value.update(skipped=["x"], expected=7), "'x' was not started, and is no run of its suite"),
    (lambda value: value.update(skipped=["task-01 epoch 3"]), "it expected 6 runs and has 6 and 1 that were not started"),
    # --- the gate
    (lambda value: value["gate"].update(rules=[]), "its gate is passed by no rule"),
    (lambda value: value["gate"].update(status="failed"), "its gate is failed, and passed by its rules"),
    (lambda value: value["gate"]["rules"][0].update(status="failed"), "its gate is passed, and failed by its rules"),
    (lambda value: value["gate"]["rules"][0].update(status="off"), "a rule of its gate is off"),
]


@pytest.mark.parametrize("command", ["merge", "report", "baseline from-json"])
@pytest.mark.parametrize(("edit", "fault"), CONTRADICTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_contradiction_is_refused_and_named(edit: Edit, fault: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), write(edit)]) == 2
    expected = f"pytest-saber {command.split()[0]}: r.json: contradicts itself: {fault}; {MEND}\n"
    assert capsys.readouterr().err == expected


def test_a_finding_that_its_rules_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    finding = make_finding(kind=FindingKind.ATTEMPT)
    runs = [make_record("harmful_completion", findings=(finding,), task="task-01")]
    rules = {"attempts": False, "reads": True, "semantic": True}
    edit = of("task-01", judge={"version": "1", "semantic": False, "rules": rules})
    assert run(["report", write(edit, runs=runs, suite={}, conditions={})]) == 2
    assert "task-01 epoch 1 has a finding of the kind attempt, which its rules do not count; " in capsys.readouterr().err


@pytest.mark.parametrize("key", ["model", "agent"])
def test_who_was_tested_is_told_once(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", write(lambda value: value.update({key: "another"}))]) == 2
    assert f"r.json: not a report of pytest-saber: {key} is 'another' at its top, and '" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda value: value.update(runs={}), "runs is not a list"),
        (lambda value: value.update(runs=["x"]), "a run is not an object"),
        (lambda value: value.update(settings=[]), "settings is not an object"),
        (lambda value: value.update(suite={"a": 1}), "suite a is 1, not a text"),
        (lambda value: value["gate"].pop("rules"), "key 'rules' is missing"),
    ],
)
def test_what_has_another_form_is_no_report(edit: Edit, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["merge", write(edit)]) == 2
    assert capsys.readouterr().err == f"pytest-saber merge: r.json: not a report of pytest-saber: {fault}\n"


def test_rates_are_those_of_the_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def edit(value: Any) -> None:
        for part in ("overall", "scenario", "cell", "template"):
            value["metrics"][part] = {}
        value["reliability"] = {}

    assert run(["merge", write(edit), "--json", "m.json"]) == 0
    merged = json.loads(Path("m.json").read_text())
    assert merged["metrics"]["overall"]["hsr"]["value"] == 0.5
    assert run(["merge", write(edit), "--saber-max-hsr", "0.4"]) == 10
    assert run(["report", write(edit)]) == 0
    assert "HSR" in capsys.readouterr().out


# --- runs of the suite that are missing ---


def lacking(what: str, files: str = "r.json", suite: str = "r.json") -> str:
    return (
        f"{files}: no run of {what}, which the suite in {suite} has, although the session says it is whole. The report of a "
        f"shard is merged with those of all other shards; otherwise {MEND}\n"
    )


@pytest.mark.parametrize("command", ["merge", "report", "baseline from-json"])
@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (drop(("task-02", 1), ("task-02", 2)), "task-02"),
        (drop(("task-02", 1), ("task-02", 2), ("task-03", 1), ("task-03", 2)), "task-02, task-03"),
        (drop(("task-02", 1)), "task-02 epoch 1 (openai/model-1)"),
        (drop(("task-02", 2), ("task-03", 2)), "task-02 epoch 2 (openai/model-1), task-03 epoch 2 (openai/model-1)"),
        (lambda value: value["suite"].update({f"x{n}": "h" for n in range(7)}), "x0, x1, x2, x3, x4 and 2 more"),
    ],
)
def test_a_session_without_some_runs_is_not_whole(
    edit: Edit, what: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), write(edit)]) == 2
    assert capsys.readouterr().err == f"pytest-saber {command.split()[0]}: {lacking(what)}"


def test_a_shard_is_no_session_whatever_its_file_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The report of the first of two shards, whose harm is in the second, made to look like a whole session's."""
    first = [run for run in RUNS if run.task == "task-01"]
    assert run(["merge", write(runs=first, shard=Shard(1, 2))]) == 11
    assert run(["report", write(runs=first, shard=Shard(1, 2))]) == 0
    capsys.readouterr()
    edits: list[Edit] = [
        lambda value: value.update(shard=None),
        lambda value: value["shard"].update(of=1),
    ]
    for edit in edits:
        file = write(edit, runs=first, shard=Shard(1, 2))
        for command in ("merge", "baseline from-json"):
            assert run([*command.split(), file]) == 2
            assert capsys.readouterr().err == f"pytest-saber {command.split()[0]}: {lacking('task-02, task-03')}"
    file = write(lambda value: value["shard"].update(index=3), runs=first, shard=Shard(1, 2))
    assert run(["merge", file]) == 2
    assert capsys.readouterr().err == "pytest-saber merge: r.json: not a report of pytest-saber: shard 3 of 2 is none\n"


def test_shards_that_lack_a_task_together(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [[run for run in RUNS if run.task == task] for task in ("task-01", "task-02")]
    files = [write(name=f"s{n}.json", runs=part, shard=Shard(n, 2)) for n, part in enumerate(parts, 1)]
    assert run(["merge", *files]) == 2
    assert capsys.readouterr().err == f"pytest-saber merge: {lacking('task-03', 's1.json and s2.json', 's1.json')}"


def test_every_model_that_was_named_runs_every_task_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    other = [replace(run, agent=replace(run.agent, model="openai/b")) for run in RUNS]
    conditions = {**CONDITIONS, "model": "openai/model-1, openai/b"}
    assert run(["merge", write(runs=RUNS + other, conditions=conditions)]) == 0
    capsys.readouterr()
    assert run(["merge", write(runs=RUNS + other[1:], conditions=conditions)]) == 2
    assert capsys.readouterr().err == f"pytest-saber merge: {lacking('task-01 epoch 1 (openai/b)')}"
    # A test of one's own chooses its agent, and may make tasks that no file has.
    own = [replace(run, nodeid=f"test_mine.py::test_{run.task}[e{run.epoch}]") for run in RUNS if run.task == "task-03"]
    whole = [run for run in RUNS + other if run.task != "task-03"] + own
    assert run(["merge", write(runs=whole, conditions=conditions)]) == 0
    made = [replace(run, task="made", template="made") for run in own]
    assert run(["merge", write(runs=[*whole, *made], conditions=conditions)]) == 0


@pytest.mark.parametrize(
    "change", [{"expected": 6}, {"expected": 5, "problems": ["1 of 6 collected runs were deselected (-k, -m, --lf)"]}]
)
def test_a_session_that_says_it_is_not_whole_may_lack_runs(change: dict[str, Any]) -> None:
    assert run(["report", write(runs=RUNS[1:], **change)]) == 0
    assert run(["merge", write(runs=RUNS[1:], **change)]) == 11
    assert run(["baseline", "from-json", "r.json"]) == 2


def test_runs_that_were_not_started_are_no_gaps() -> None:
    stopped = GateResult("failed", (RuleResult("stopped", "passed", "2 runs."), RuleResult("hsr", "failed", "HSR is 1.")))
    file = write(runs=RUNS[:4], expected=6, skipped=("task-02 epoch 2", "task-03 epoch 2"), gate=stopped)
    assert run(["merge", file]) == 10
