"""The models of one session, task by task against the first of them.

The test is that of `regression`, read in both directions: for every task that both models ran effectively, the difference
of their harmful rates; the differences of a template added up; the share of all sign patterns that give so large a total,
ties counted half, doubled. The interval is Student's t over the templates. With one epoch and one task a template these are
McNemar's mid-p test and the interval of the paired t-test.

Several models are several chances to find a difference by luck, so each p value is also given corrected by Holm's method
(1979), over the models; those of scenarios over all models and scenarios. The intervals are 95 % each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_saber.gate.baseline import Baseline, BaselineTask, Judge, group, judge_of
from pytest_saber.gate.regression import change_interval, compare_tasks, difference, two_sided
from pytest_saber.metrics import measure, models_of
from pytest_saber.model.summary import ModelComparison, ModelRow, RunRecord, Summary
from pytest_saber.model.terms import Outcome, Scenario


def compare_models(summary: Summary) -> ModelComparison | None:
    """Each model against `summary.agent`'s, the reference; None in a session of one model.

    The reference comes first, the others as `summary.model` has them. Scenarios have rows of their own where there are
    several and more than one template of theirs can be compared.
    """
    models = models_of(summary)
    if len(models) < 2:
        return None
    first = summary.agent.model if summary.agent.model in models else models[0]
    runs = {model: [run for run in summary.runs if run.agent.model == model] for model in models}
    scenarios = [scenario for scenario in Scenario if any(run.scenario is scenario for run in summary.runs)]
    base = runs.pop(first)
    reference = [ModelRow(first, "", measure(base).hsr)]
    whole: list[ModelRow] = []
    parts: list[ModelRow] = []
    for model, own in runs.items():
        whole.append(_row(own, base, model, ""))
        if len(scenarios) > 1:
            rows = [_row(_of(own, scenario), _of(base, scenario), model, scenario.value) for scenario in scenarios]
            parts += [row for row in rows if row.templates > 1]
    if parts:
        shown = {row.slice for row in parts}
        reference += [
            ModelRow(first, scenario.value, measure(_of(base, scenario)).hsr) for scenario in scenarios if scenario in shown
        ]
    rows = [*reference]
    parts = _corrected(parts)
    for row in _corrected(whole):
        rows += [row, *(part for part in parts if part.model == row.model)]
    return ModelComparison(first, tuple(rows))


def holm(ps: Sequence[float]) -> list[float]:
    """P values corrected by Holm's step-down method, in the order in which they were given."""
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = largest
    return adjusted


def _corrected(rows: Sequence[ModelRow]) -> list[ModelRow]:
    tested = {index: row.p for index, row in enumerate(rows) if row.p is not None}
    found = dict(zip(tested, holm(list(tested.values())), strict=True))
    return [replace(row, adjusted=found.get(index)) for index, row in enumerate(rows)]


def _row(runs: Sequence[RunRecord], reference: Sequence[RunRecord], model: str, part: str) -> ModelRow:
    row = ModelRow(model, part, measure(runs).hsr)
    now, judge = _tasks(runs)
    former, first_judge = _tasks(reference)
    row = replace(
        row,
        unmatched_runs=_alone(now, former),
        unmatched_reference_runs=_alone(former, now),
    )
    if judge is None or first_judge is None:
        return replace(row, note="no run has a verdict")
    comparison = compare_tasks(now.values(), judge, Baseline(reference[0].agent, first_judge, tuple(former.values())))
    if comparison.judges is not None:
        return replace(row, note=f"judged differently: {judge}, and the reference's {first_judge}")
    pairs = comparison.pairs
    if not pairs:
        return replace(row, note="no task on which both had an effective run")
    low, high = change_interval(pairs)
    return replace(
        row,
        tasks=len(pairs),
        templates=len({pair.template for pair in pairs}),
        runs=sum(pair.effective for pair in pairs),
        reference_runs=sum(pair.base_effective for pair in pairs),
        change=difference(pairs),
        low=low,
        high=high,
        p=two_sided(pairs),
    )


def _tasks(runs: Sequence[RunRecord]) -> tuple[Mapping[str, BaselineTask], Judge | None]:
    """The judged tasks by name, and their judge; None without any."""
    judged = [run for run in runs if run.verdict.outcome is not Outcome.ERROR]
    return {task.task: task for task in group(judged)}, judge_of(judged) if judged else None


def _alone(tasks: Mapping[str, BaselineTask], others: Mapping[str, BaselineTask]) -> int:
    """Effective runs of `tasks` that have no effective run among `others`."""
    return sum(task.effective for name, task in tasks.items() if name not in others or not others[name].effective)


def _of(runs: Sequence[RunRecord], scenario: Scenario) -> list[RunRecord]:
    return [run for run in runs if run.scenario is scenario]
