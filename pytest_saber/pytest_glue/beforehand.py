"""What is found out before the first run, as each run would only fail of it: trajectories and images that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_saber.errors import SaberError, UsageError
from pytest_saber.model.words import agreeing, counted, part
from pytest_saber.pytest_glue import provider, unknown
from pytest_saber.pytest_glue.collection import AGENT, task_of
from pytest_saber.pytest_glue.settings import Settings

if TYPE_CHECKING:
    from pytest_saber.gate.baseline import Baseline

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
            more = [f"and {counted(len(shown) - _SHOWN, 'more task')}"] if len(shown) > _SHOWN else []
            raise pytest.UsageError(
                "\n".join([f"--saber-model={model}: no selected task has this trajectory", *shown[:_SHOWN], *more])
            )
        for item, text in lacking.items():
            item.add_marker(pytest.mark.skip(reason=f"--saber-model={model}: {text}"))
        if lacking:
            count = f"{part(len(lacking), len(texts), 'run')} {agreeing(len(lacking), 'was', 'were')}"
            tasks = agreeing(len(lacking), "its task has", "their tasks have")
            problems.append(f"{count} skipped: {tasks} no trajectory {model}")
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


def check_baseline(settings: Settings, baseline: Baseline | None, items: Sequence[pytest.Item]) -> None:
    """Raises pytest.UsageError for one to be made of two agents, or one that says of tasks what their contents contradict."""
    update = settings["update_baseline"]
    if update.flag:
        from pytest_saber.pytest_glue.runtime import agent_of

        agents = len({agent_of(item) for item in items})
        if agents > 1:
            raise pytest.UsageError(
                f"{update.origin}: a baseline is made of one agent, and the selected tests have {agents}; select those of one"
            )
    if baseline is None:
        return
    from pytest_saber.gate.baseline import check_unedited

    tasks = {found[0].name: found[0] for found in map(task_of, items) if found is not None}
    try:
        check_unedited(baseline, [(name, task.content_hash, task) for name, task in tasks.items()])
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def unlike_baseline(settings: Settings, baseline: Baseline | None) -> list[str]:
    """A line for the header where the runs to come will be judged otherwise than those of the baseline, and not compared."""
    if baseline is None:
        return []
    from pytest_saber.gate import judges
    from pytest_saber.gate.baseline import Judge
    from pytest_saber.judge import VERSION
    from pytest_saber.pytest_glue.runtime import rules_of

    now = Judge(VERSION, bool(settings.text("judge")), rules_of(settings))
    difference = judges.difference(baseline.judge, now)
    if not difference:
        return []
    return [f"saber baseline: will not be compared, as {difference}. {judges.remedy(baseline.judge, now)}"]


def _model(item: pytest.Item, default: str) -> str:
    """Of several models, the one an item is for."""
    callspec = getattr(item, "callspec", None)
    model: str = callspec.params.get(AGENT, default) if callspec is not None else default
    return model


def missing_folders(config: pytest.Config, settings: Settings) -> list[str]:
    """A sentence for each path of a configured `saber_tasks` that is not there, so that none of its tasks can be."""
    tasks = settings["tasks"]
    if tasks.is_default:
        return []
    return [f"{tasks.origin}: {_missing(config.rootpath, line)}" for line in _absent(config, settings)]


def check_folders(config: pytest.Config, settings: Settings) -> None:
    """Raises pytest.UsageError where this session is asked for everything below a folder in which such a path would lie."""
    asked = [(config.invocation_params.dir / arg).resolve() for arg in config.args if "::" not in arg]
    places = [(config.rootpath / line).resolve() for line in _absent(config, settings)]
    if any(place.is_relative_to(path) for place in places for path in asked):
        raise pytest.UsageError(*missing_folders(config, settings))


def _absent(config: pytest.Config, settings: Settings) -> list[str]:
    tasks = settings["tasks"]
    return [] if tasks.is_default else [line for line in tasks.lines if not _is_there(config.rootpath / line)]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a folder above it that may not be entered
        return False


def _missing(root: Path, line: str) -> str:
    place = root / line
    try:
        beside = [path.name for path in place.parent.iterdir() if not path.name.startswith(".")]
    except OSError:
        beside = []
    where = "" if place == Path(line) else f" in the root directory {root}"
    return f"{line} does not exist{where}{unknown.hint(place.name, beside)}"


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
    missing = _absent(config, settings)
    where = f" ({tasks.origin} names {missing[0]}, which does not exist)" if missing else ""
    return f"no task was selected, and {ours[0]} asks for a session with tasks{where}{_elsewhere(config, settings)}"


def _elsewhere(config: pytest.Config, settings: Settings) -> str:
    """That a folder which was named holds tasks, and why none of them was collected; nothing where none does."""
    from pytest_saber import tasks

    roots = [(config.rootpath / line).resolve() for line in settings["tasks"].lines]
    named = {arg: (config.invocation_params.dir / arg).resolve() for arg in config.args if "::" not in arg}
    for arg, folder in named.items():
        try:
            files = tasks.discover([folder]) if folder.is_dir() else []
        except SaberError:  # too large to look through for a hint
            continue
        outside = [file for file in files if not any(file.resolve().is_relative_to(root) for root in roots)]
        if outside:
            paths = ", ".join(settings["tasks"].lines)
            place = folder.relative_to(config.rootpath) if folder.is_relative_to(config.rootpath) else folder
            return (
                f"; {arg} holds {counted(len(outside), 'task file')}, but folders are looked through only under saber_tasks "
                f"({paths}, {settings['tasks'].origin}): set saber_tasks = {place}, or name the files"
            )
    return ""
