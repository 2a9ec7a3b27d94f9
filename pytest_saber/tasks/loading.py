"""From a task file to task values, or to every problem of the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from pytest_saber.errors import Problem, TaskError
from pytest_saber.model.task import Task
from pytest_saber.model.words import counted
from pytest_saber.tasks.canonical import content_hash
from pytest_saber.tasks.consistency import Sections, inconsistencies
from pytest_saber.tasks.convert import to_task
from pytest_saber.tasks.document import Node, parse, read
from pytest_saber.tasks.expand import Expansion, expand
from pytest_saber.tasks.explain import explain
from pytest_saber.tasks.fields import Form
from pytest_saber.tasks.schema import AgentForm, ExpansionForm, JudgingForm, LimitsForm, ReferenceForm, TaskForm
from pytest_saber.tasks.schema_workspace import WorkspaceForm

MAX_PROBLEMS = 100
MAX_EXPANDED = 100_000
"""Values of all variants of a document together."""

_SECTIONS: dict[str, type[Form]] = {
    "agent": AgentForm,
    "workspace": WorkspaceForm,
    "limits": LimitsForm,
    "judging": JudgingForm,
    "reference": ReferenceForm,
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A task and the tree it was made of, which knows the line of every value."""

    task: Task
    tree: Node
    document: Node
    """The whole document, before its variants were merged in."""


def load(path: Path, *, root: Path | None = None) -> tuple[Task, ...]:
    """The tasks of one file, one for each variant. Paths in tasks and errors are relative to `root` where they lie below it.

    Raises TaskError with every problem of the file.
    """
    return tuple(loaded.task for loaded in load_trees(path, root=root))


def load_trees(path: Path, *, root: Path | None = None) -> tuple[Loaded, ...]:
    """As `load`, with the tree of each task."""
    shown = str(path)
    if root is not None and path.is_relative_to(root):
        shown = path.relative_to(root).as_posix()
    return parse_tasks(read(path, shown), shown)


def parse_tasks(text: str, shown: str) -> tuple[Loaded, ...]:
    """The tasks of a document's text. Raises TaskError with at most `MAX_PROBLEMS` problems, safe to print."""
    try:
        return _parse_tasks(text, shown)
    except TaskError as error:
        raise TaskError(_bounded(error.problems, shown)) from error.__cause__


def _parse_tasks(text: str, shown: str) -> tuple[Loaded, ...]:
    root, found = parse(text, shown)
    problems = list(found)
    if not root.entries():
        raise TaskError((*problems, Problem(shown, root.line, "a task is a mapping that starts with `saber: 1`")))
    problems += _expansion_problems(root, shown)
    loaded: list[Loaded] = []
    by_problem: dict[Problem, list[str]] = {}
    count = len(root.entries()["variants"].node.entries()) if "variants" in root.entries() else 0
    if count * root.size() > MAX_EXPANDED:
        line = root.line_of("variants")
        many = f"{counted(count, 'variant')} of {counted(root.size(), 'value')}"
        problems.append(Problem(shown, line, f"{many} each; write several smaller files"))
    expansions = list(expand(root, shown)) if not problems else [Expansion("", root)]
    for expansion in expansions:
        form, faults = _validate(expansion, shown)
        for problem in (*expansion.problems, *faults):
            by_problem.setdefault(problem, []).append(expansion.variant)
        if form is not None and not problems:
            task = to_task(form, expansion.tree, variant=expansion.variant, path=shown, line=_line(root, expansion.variant))
            loaded.append(Loaded(dataclasses.replace(task, content_hash=content_hash(task)), expansion.tree, root))
    for problem, variants in by_problem.items():
        problems.append(problem if len(variants) == len(expansions) else _of_variants(problem, variants))
    if problems:
        raise TaskError(tuple(problems))
    return tuple(loaded)


def load_all(paths: Sequence[Path], *, root: Path | None = None) -> tuple[tuple[Loaded, ...], tuple[Problem, ...]]:
    """The tasks of many files, and the problems of those that could not be loaded and of ids that occur twice."""
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            loaded += load_trees(path, root=root)
        except TaskError as error:
            problems += error.problems
    return tuple(loaded), (*problems, *check_duplicates([item.task for item in loaded]))


def check_duplicates(tasks: Sequence[Task]) -> tuple[Problem, ...]:
    """A problem for each task whose id another file has already."""
    first: dict[str, Task] = {}
    problems: dict[tuple[str, str], Problem] = {}
    for task in tasks:
        known = first.setdefault(task.id, task)
        if known.path != task.path and (task.path, task.id) not in problems:
            message = f"duplicate id {task.id!r}: {known.path}:{known.line} has it already"
            problems[task.path, task.id] = Problem(task.path, task.line, message)
    return tuple(problems.values())


def _expansion_problems(root: Node, shown: str) -> Iterator[Problem]:
    """What is wrong with `parameters` and `variants` themselves; they must be sound before they are used."""
    entries = {key: entry for key, entry in root.entries().items() if key in ExpansionForm.model_fields}
    try:
        ExpansionForm.model_validate(Node(root.line, entries).plain())
    except ValidationError as error:
        yield from explain(error, root, shown, MAX_PROBLEMS + 1)


def _validate(expansion: Expansion, shown: str) -> tuple[TaskForm | None, list[Problem]]:
    """The form of one item, or its problems: of single values, and between the parts that are sound."""
    plain = expansion.tree.plain()
    form: TaskForm | None = None
    problems: list[Problem] = []
    wrong: set[object] = set()
    try:
        form = TaskForm.model_validate(plain)
    except ValidationError as error:
        problems += explain(error, expansion.tree, shown, MAX_PROBLEMS + 1)
        wrong = {detail["loc"][0] for detail in error.errors(include_url=False) if detail["loc"]}
    sound = {
        name: model.model_validate(plain.get(name, {}))
        for name, model in _SECTIONS.items()
        if name not in wrong and (name in plain or name == "limits")
    }
    found = inconsistencies(expansion.tree, Sections(**sound), shown)  # type: ignore[arg-type]
    problems += islice(found, MAX_PROBLEMS + 1)
    return (form, problems) if not problems else (None, problems)


def _line(root: Node, variant: str) -> int:
    return root.line_of("variants", variant) if variant else root.line_of("id")


def _of_variants(problem: Problem, variants: Sequence[str]) -> Problem:
    names = ", ".join(variants[:3]) + (", ..." if len(variants) > 3 else "")
    return dataclasses.replace(problem, message=f"{problem.message} (in variant {names})")


def _bounded(problems: Sequence[Problem], shown: str) -> tuple[Problem, ...]:
    unique = sorted((_printable(problem) for problem in dict.fromkeys(problems)), key=lambda problem: problem.line)
    if len(unique) <= MAX_PROBLEMS:
        return tuple(unique)
    return (*unique[:MAX_PROBLEMS], Problem(shown, 0, f"more than {MAX_PROBLEMS} problems; these are the first"))


def _printable(problem: Problem) -> Problem:
    """Keys and placeholders stand in messages as they were written, and may hold terminal escapes."""
    message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in problem.message)
    return dataclasses.replace(problem, message=message)
