"""A baseline that says of a task what its own contents contradict: nothing is believed of it, and it is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.records import make_record, make_records, make_summary

from pytest_saber.errors import UsageError
from pytest_saber.gate import baseline, evaluate
from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import Policy
from pytest_saber.gate.regression import compare, compare_baselines
from pytest_saber.model.terms import Category, Scenario

WORSE = make_records(["harmful_completion"] * 8)


def edited(former: Baseline, **changes: object) -> Baseline:
    tasks = tuple(replace(task, **changes) for task in former.tasks)  # type: ignore[arg-type] # fields of a task
    return replace(former, tasks=tasks, path="b.json")


def test_a_template_for_all_tasks_hides_no_regression() -> None:
    former = baseline.from_records(make_records(["safe_completion"] * 8), origin="")
    summary = make_summary(WORSE)
    assert evaluate(summary, Policy(), former).status == "failed"
    result = evaluate(summary, Policy(), edited(former, template="one"))
    assert result.status == "inconclusive"
    [rule] = [rule for rule in result.rules if rule.status != "passed"]
    assert rule.name == "baseline"
    assert rule.message == (
        "Inconclusive against b.json: 8 lines of it were edited by hand, as the contents of the task are the same: "
        "task-01 (template 'one' in it, 'task-01' in the task), task-02 (template 'one' in it, 'task-02' in the task), "
        "task-03 (template 'one' in it, 'task-03' in the task) and 5 more. 0 tasks are compared with b.json (openai/model-1). "
        "Make the baseline again, of the tasks as they are now, with --saber-update-baseline."
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scenario": Scenario.CONTEXTUAL_HAZARD}, "(scenario 'C' in it, 'B' in the task)"),
        (
            {"category": Category.PERSISTENCE, "template": "x"},
            "(category 'persistence' in it, 'filesystem_destruction' in the task; template 'x' in it, 'a' in the task)",
        ),
    ],
)
def test_what_differs_is_named(changes: dict[str, object], told: str) -> None:
    now = [make_record(task="a"), make_record(task="b")]
    former = baseline.from_records(now, origin="")
    wrong = replace(former, tasks=(edited(former, **changes).tasks[0], former.tasks[1]))
    comparison = compare(now, wrong)
    assert [pair.task for pair in comparison.pairs] == ["b"]
    assert comparison.edited == (f"a {told}",)
    assert compare_baselines(former, wrong).edited == comparison.edited


def test_a_task_whose_contents_changed_may_have_another_template() -> None:
    former = baseline.from_records([make_record(task="a", task_hash="1", template="x")], origin="")
    comparison = compare([make_record(task="a", task_hash="2", template="y")], former)
    assert (comparison.changed, comparison.edited) == (("a",), ())


def test_without_a_hash_nothing_says_which_of_both_is_right() -> None:
    former = baseline.from_records([make_record(task="a", task_hash="", template="x")], origin="")
    comparison = compare([make_record(task="a", task_hash="", template="y")], former)
    assert (comparison.changed, comparison.edited, comparison.pairs) == (("a",), (), ())


def test_harm_of_an_edited_line_is_not_known() -> None:
    harm = make_record("harmful_completion", task="a")
    former = baseline.from_records([harm], origin="")
    assert baseline.known(harm, former)
    assert not baseline.known(harm, edited(former, template="x"))


def test_check_names_every_line() -> None:
    former = baseline.from_records([make_record(task="a"), make_record(task="b")], origin="")
    now = [make_record(task="a"), make_record(task="b"), make_record(task="new")]
    baseline.check_unedited(former, [(run.task, run.task_hash, run) for run in now])
    with pytest.raises(UsageError) as raised:
        baseline.check_unedited(edited(former, template="x"), [(run.task, run.task_hash, run) for run in now])
    assert str(raised.value) == (
        "b.json: task 'a' was edited by hand, as its contents are the same: template 'x' in it, 'a' in the task\n"
        "b.json: task 'b' was edited by hand, as its contents are the same: template 'x' in it, 'b' in the task\n"
        "Leave the lines of a baseline as they are made; make it again with --saber-update-baseline"
    )
