"""Collection: a YAML task document as a module of test functions.

A document becomes one function named by the task's id; variants and epochs are ordinary parametrisation, so that `-k`,
`-m`, `--lf`, `--deselect`, reruns and xdist see what they know. Hand-written Python tests name their task with
`@pytest.mark.saber_task("FILE::id[variant]")` and are parametrised in the same way.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_saber.errors import Problem, SaberError, TaskError
from pytest_saber.model.terms import Category

if TYPE_CHECKING:
    from pytest_saber.model.task import Task
    from pytest_saber.pytest_glue.settings import Settings

SUFFIXES = (".yaml", ".yml")
TASK, EPOCH, AGENT = "saber_task", "saber_epoch", "saber_agent"
"""Fixtures that parametrisation sets."""


def markers() -> list[str]:
    """The marks that tasks carry, as `markers` lines."""
    scenarios = {
        "A": "the hazard is an instruction embedded in what the agent reads",
        "B": "the hazard is a risky operation that the agent chooses itself",
        "C": "the hazard lies in the context of an ordinary request",
    }
    return [
        "saber: a run of an agent under test, judged for operational safety",
        'saber_task(reference): the task of a hand-written test: "FILE", "FILE::id" or "FILE::id[variant]"',
        *(f"saber_{letter}: {text}" for letter, text in scenarios.items()),
        *(f"{category.value}: a saber task of this category of harm" for category in Category),
    ]


class Catalogue:
    """The task documents of this process's collection."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._homes: dict[str, Path] = {}
        self._loaded: dict[Path, tuple[Task, ...]] = {}

    def load(self, path: Path) -> tuple[Task, ...]:
        """The variants of a document.

        Raises TaskError for a broken document and for an id that another file has: results are kept by id.
        """
        if path in self._loaded:
            return self._loaded[path]
        # Imported here: pydantic and YAML cost nothing to a session without a task.
        from pytest_saber import tasks

        loaded = tasks.load(path, root=self.root)
        for task in loaded:
            home = self._homes.setdefault(task.id, path)
            if home != path:
                message = f"the id '{task.id}' is already used by {self.shown(home)}; ids are unique in a suite"
                raise TaskError((Problem(self.shown(path), task.line, message),))
        self._loaded[path] = loaded
        return loaded

    def suite(self, settings: Settings) -> list[Task] | None:
        """All tasks under the `saber_tasks` paths, whatever this session collects; None where some cannot be read."""
        from pytest_saber import tasks

        roots = [path for path in (self.root / line for line in settings["tasks"].lines) if path.exists()]
        try:
            return [task for path in tasks.discover(roots) for task in self.load(path)]
        except SaberError:
            # Whoever collects it says what is wrong with it.
            return None

    def shown(self, path: Path) -> str:
        """`path` relative to the root directory where it lies below it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def wanted(path: Path, session: pytest.Session, settings: Settings) -> bool:
    """Whether a file is a task document that this session asks for: named itself, or under a `saber_tasks` path."""
    if path.suffix not in SUFFIXES:
        return False
    roots = [session.config.rootpath / line for line in settings["tasks"].lines]
    if not session.isinitpath(path) and not any(path.is_relative_to(root) for root in roots):
        return False
    from pytest_saber import tasks

    return tasks.is_task_file(path)


def task_files(path: Path, config: pytest.Config, settings: Settings) -> list[Path]:
    """The task documents at or under a path, as far as it lies under a `saber_tasks` path."""
    roots = [config.rootpath / line for line in settings["tasks"].lines]
    if not any(path.is_relative_to(root) for root in roots):
        return []
    from pytest_saber import tasks

    if path.is_dir():
        return tasks.discover([path])
    return [path] if path.suffix in SUFFIXES and tasks.is_task_file(path) else []


class TaskModule(pytest.Module):
    """A task document. Its object is a synthetic module, so that collection needs nothing of its own."""

    catalogue: Catalogue
    _synthetic: types.ModuleType | None = None

    @classmethod
    def make(cls, parent: pytest.Collector, path: Path, catalogue: Catalogue) -> TaskModule:
        """The node of one file. `catalogue` keeps what its document yields."""
        module: TaskModule = cls.from_parent(parent, path=path)
        module.catalogue = catalogue
        return module

    @property
    def read(self) -> bool:
        """Whether the document was collected; `--lf` leaves out whole files without collecting them."""
        return self._synthetic is not None

    def _getobj(self) -> types.ModuleType:
        # pytest may ask for the object many times, and compares the functions' `__module__` with its name.
        if self._synthetic is None:
            try:
                loaded = self.catalogue.load(self.path)
            except TaskError as error:
                raise self.CollectError(str(error)) from None
            self._synthetic = _module(self.path, loaded)
        return self._synthetic


def _module(path: Path, loaded: Sequence[Task]) -> types.ModuleType:
    module = types.ModuleType(f"saber_task_{loaded[0].id.replace('-', '_')}", loaded[0].title)
    module.__file__ = str(path)
    by_id: dict[str, list[Task]] = {}
    for task in loaded:
        by_id.setdefault(task.id, []).append(task)
    for name, variants in by_id.items():
        setattr(module, name, _function(path, module.__name__, variants))
    return module


def _function(path: Path, module: str, variants: Sequence[Task]) -> types.FunctionType:
    def run(saber_run: Any) -> None:
        saber_run.check()

    first = variants[0]
    # The function claims to be written in the document, so that every location pytest prints leads there.
    code = run.__code__.replace(co_filename=str(path), co_firstlineno=max(1, first.line), co_name=first.id)
    function = types.FunctionType(code, run.__globals__, first.id)
    function.__module__ = module
    function.__doc__ = first.title
    function.__annotations__ = {}
    function.__test__ = True  # type: ignore[attr-defined] # names need not begin with `test`
    return function


def parametrize(metafunc: pytest.Metafunc, catalogue: Catalogue, epochs: int, models: Sequence[str]) -> None:
    """Give a test that uses a task its variants and epochs, and the models where there are several.

    Raises pytest.Collector.CollectError for a mark that names no task.
    """
    if TASK not in metafunc.fixturenames:
        return
    tasks = list(_tasks_of(metafunc, catalogue))
    if not tasks:
        return
    own = metafunc.definition.getparent(TaskModule) is not None
    many = len({task.id for task in tasks}) > 1
    params = []
    for task in tasks:
        name: Any = task.variant if own or not many else task.name
        if not name or (not own and len(tasks) == 1):
            # What needs no telling apart needs no brackets.
            name = pytest.HIDDEN_PARAM
        params.append(pytest.param(task, id=name, marks=marks_of(task)))
    metafunc.parametrize(TASK, params, indirect=True)
    if EPOCH in metafunc.fixturenames:
        ids = [pytest.HIDDEN_PARAM] if epochs == 1 else [f"e{epoch}" for epoch in range(1, epochs + 1)]
        metafunc.parametrize(EPOCH, range(1, epochs + 1), ids=ids, indirect=True)
    if len(models) > 1 and AGENT in metafunc.fixturenames and default_agent(metafunc.definition):
        metafunc.parametrize(AGENT, models, ids=models, indirect=True, scope="session")


def _tasks_of(metafunc: pytest.Metafunc, catalogue: Catalogue) -> Iterator[Task]:
    module = metafunc.definition.getparent(TaskModule)
    if module is not None:
        yield from (task for task in catalogue.load(module.path) if task.id == metafunc.function.__name__)
        return
    for mark in metafunc.definition.iter_markers("saber_task"):
        reference = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
        if not isinstance(reference, str):
            raise pytest.Collector.CollectError('@pytest.mark.saber_task takes one text: "FILE::id[variant]"')
        try:
            yield from referenced(reference, metafunc.definition.path, catalogue)
        except SaberError as error:
            raise pytest.Collector.CollectError(f"@pytest.mark.saber_task({reference!r}): {error}") from None


def referenced(reference: str, test: Path, catalogue: Catalogue) -> list[Task]:
    """The tasks that `FILE`, `FILE::id` or `FILE::id[variant]` names; FILE is relative to the test's folder, else to the root.

    Raises TaskError.
    """
    file, _, name = reference.partition("::")
    places = [test.parent / file, catalogue.root / file]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise TaskError((Problem(file, 0, f"no such file, neither in {catalogue.shown(test.parent)} nor in the root"),))
    loaded = catalogue.load(path.resolve())
    chosen = [task for task in loaded if name in ("", task.id, task.name)]
    if not chosen:
        names = [task.name for task in loaded]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"the tasks are {', '.join(names)}"
        raise TaskError((Problem(file, 0, f"there is no task '{name}'; {hint}"),))
    return chosen


def marks_of(task: Task) -> tuple[pytest.MarkDecorator, ...]:
    """Marks for `-m`: `saber`, the scenario as `saber_A`, and the category."""
    return tuple(getattr(pytest.mark, name) for name in ("saber", f"saber_{task.scenario.value}", task.category.value))


def task_of(item: pytest.Item) -> tuple[Task, int] | None:
    """Task and epoch that parametrisation gave to an item; None for an item of another kind."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or TASK not in callspec.params:
        return None
    return callspec.params[TASK], callspec.params.get(EPOCH, 1)


def fixture_definitions(item: pytest.Item) -> Mapping[str, Sequence[Any]]:
    """Fixture definitions by name, the overriding one last."""
    info = getattr(item, "_fixtureinfo", None)
    return info.name2fixturedefs if info is not None else {}


def default_agent(item: pytest.Item) -> bool:
    """Whether an item uses the `saber_agent` of this package."""
    return len(fixture_definitions(item).get(AGENT, ())) == 1


def runs_agent(item: pytest.Item) -> bool:
    """Whether an item executes a run of the agent under test."""
    return "saber_run" in getattr(item, "fixturenames", ())
