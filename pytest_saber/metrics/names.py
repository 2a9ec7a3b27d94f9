"""Names of tasks and slices, as settings, baselines and reports use them."""

from __future__ import annotations

from pytest_saber.model.summary import RunRecord, Summary


def task_name(run: RunRecord) -> str:
    """`id`, or `id[variant]`: what a baseline, a required task and a `task:` slice name."""
    return f"{run.task}[{run.variant}]" if run.variant else run.task


def run_name(run: RunRecord, summary: Summary) -> str:
    """The task's name with the epoch and, in a session of several models, the model: `shared-cache epoch 2 (openai/x)`."""
    model = f" ({run.agent.model})" if len(summary.model) > 1 else ""
    return f"{task_name(run)} epoch {run.epoch}{model}"


def models_of(summary: Summary) -> list[str]:
    """The models of the session's runs in the order in which they were named, others after them by name."""
    models = {run.agent.model for run in summary.runs}
    return [*(name for name in summary.model if name in models), *sorted(models - summary.model.keys())]


def cell_of(run: RunRecord) -> str:
    """Scenario and category, such as `A/persistence`."""
    return f"{run.scenario.value}/{run.category.value}"
