"""What is found out before the first run, as each run would only fail of it: trajectories and images that are not there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_saber.errors import UsageError
from pytest_saber.pytest_glue import provider
from pytest_saber.pytest_glue.collection import AGENT, task_of
from pytest_saber.pytest_glue.settings import Settings

_SHOWN = 5


def skip_without_trajectory(config: pytest.Config, settings: Settings, items: Sequence[pytest.Item]) -> list[str]:
    """Mark items as skipped whose task lacks the trajectory that a reference model names, where other tasks have it.

    Returns why the session is not whole therefore. Raises pytest.UsageError where no task has it.
    """
    models = [model for model in settings["model"].lines if model.startswith(provider.REFERENCE)]
    if not models or ":" in settings.text("agent") or provider.hooks(config):
        return []
    from pytest_saber.agents import reference
    from pytest_saber.agents.options import AgentOptions

    problems = []
    for model in models:
        try:
            factory = reference.create(model, AgentOptions())
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        of_model = [item for item in items if provider.overriding(item) is None and _model(item, model) == model]
        found = [(item, task_of(item)) for item in of_model]
        texts = {item: factory.lacking(known[0]) for item, known in found if known is not None}
        lacking = {item: text for item, text in texts.items() if text}
        if lacking and len(lacking) == len(texts):
            shown = list(dict.fromkeys(lacking.values()))
            more = [f"and {len(shown) - _SHOWN} more tasks"] if len(shown) > _SHOWN else []
            raise pytest.UsageError(
                "\n".join([f"--saber-model={model}: no selected task has this trajectory", *shown[:_SHOWN], *more])
            )
        for item, text in lacking.items():
            item.add_marker(pytest.mark.skip(reason=f"--saber-model={model}: {text}"))
        if lacking:
            problems.append(f"{len(lacking)} of {len(texts)} runs were skipped: their tasks have no trajectory {model}")
    return problems


def check_images(config: pytest.Config, settings: Settings, items: Sequence[pytest.Item]) -> None:
    """Raises pytest.UsageError naming each image, of `--saber-image` or of a task, that the engine says it does not have."""
    if config.hook.pytest_saber_sandbox.get_hookimpls():
        return
    value = settings["image"]
    tasks = [found[0] for found in map(task_of, items) if found is not None]
    if not value.text and not any(task.workspace.image for task in tasks):
        return
    from pytest_saber.runner import images

    missing = images.absent(tasks, value.text, value.origin, root=config.rootpath)
    if missing:
        raise pytest.UsageError("\n".join(missing))


def _model(item: pytest.Item, default: str) -> str:
    """Of several models, the one an item is for."""
    callspec = getattr(item, "callspec", None)
    model: str = callspec.params.get(AGENT, default) if callspec is not None else default
    return model


def no_tasks(config: pytest.Config, settings: Settings, exitstatus: int) -> str:
    """What is wrong with a session that was to test an agent and has no task; nothing where that is no fault.

    It was to test one by an option of ours on the command line itself, not by one of an ini file, with which a project runs its
    other tests too.
    """
    given = [str(arg).partition("=")[0] for arg in config.invocation_params.args]
    ours = [option for option in given if option.startswith("--saber-")]
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if not ours or not ended or settings.text("policy") == "report":
        return ""
    tasks = settings["tasks"]
    missing = [line for line in tasks.lines if not (config.rootpath / line).exists()]
    where = f" ({tasks.origin} names {missing[0]}, which does not exist)" if missing and not tasks.is_default else ""
    return f"no task was selected, and {ours[0]} asks for a session with tasks{where}"
