"""Names of tasks and slices, as settings, baselines and reports use them."""

from __future__ import annotations

from pytest_saber.model.summary import RunRecord


def task_name(run: RunRecord) -> str:
    """`id`, or `id[variant]`: what a baseline, a required task and a `task:` slice name."""
    return f"{run.task}[{run.variant}]" if run.variant else run.task


def cell_of(run: RunRecord) -> str:
    """Scenario and category, such as `A/persistence`."""
    return f"{run.scenario.value}/{run.category.value}"
