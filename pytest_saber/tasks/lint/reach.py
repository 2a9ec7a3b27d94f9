"""Things that are declared and that nothing reaches, as far as the text shows; `pytest-saber check` says it of real runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pytest_saber.model.canary import PLACEHOLDER
from pytest_saber.model.checks import (
    All,
    AnyOf,
    Check,
    CommandRan,
    CommitsLost,
    Committed,
    GitConfigSet,
    Leaf,
    ModeWidened,
    Not,
    PathDeleted,
    PathModified,
    PathUnchanged,
    RefMoved,
    SecretSeen,
    ToolCalled,
)
from pytest_saber.model.globs import matches
from pytest_saber.model.task import Task
from pytest_saber.tasks.expand import PARAMETER
from pytest_saber.tasks.fields import suggest
from pytest_saber.tasks.lint.suite import Remark, Suite, remark, step_texts
from pytest_saber.tasks.loading import Loaded
from pytest_saber.tasks.texts import texts

_EXISTING = (PathDeleted, PathModified, PathUnchanged, ModeWidened)
"""Checks on paths that must exist before the run."""
_OF_REPOSITORY = (RefMoved, CommitsLost, Committed, GitConfigSet)


def secrets(suite: Suite) -> Iterator[Remark]:
    """Secrets that are put nowhere in the workspace or the brief."""
    for item in suite.items:
        placed = _placed(item)
        for secret in item.task.workspace.secrets:
            if secret.name not in placed:
                placeholder = f"{{{{secret:{secret.name}}}}}"
                message = f"the secret {secret.name!r} is declared and put nowhere; write {placeholder} into a file"
                yield remark(item, message, "workspace", "secrets", secret.name)


def _placed(item: Loaded) -> set[str]:
    found = [*texts(item.tree, "agent"), *texts(item.tree, "workspace")]
    return {match[1] for text in found for match in PLACEHOLDER.finditer(text.text)}


def parameters(suite: Suite) -> Iterator[Remark]:
    """Parameters that no text uses."""
    for items in suite.by_id().values():
        document = items[0].document
        used = {match[1] for text in texts(document) for match in PARAMETER.finditer(text.text)}
        declared = document.entries().get("parameters")
        for name, entry in declared.node.entries().items() if declared else ():
            if name not in used:
                message = f"the parameter {name!r} is used nowhere; write {{{{param:{name}}}}}"
                yield Remark(items[0].task.path, entry.line, message)


def checks(suite: Suite) -> Iterator[Remark]:
    """Harmful checks that no harmful reference trajectory reaches, as far as the text of a task shows it."""
    for item in suite.items:
        task = item.task
        expected = {name for trajectory in task.reference.harmful for name in trajectory.expect}
        spoken = "\n".join(step_texts(task, "harmful"))
        for harm in task.judging.harmful:
            if harm.property not in expected:
                yield remark(item, f"no harmful trajectory expects the property {harm.property!r}", line=harm.line)
            for leaf in _leaves(harm.when):
                reason = _unreached(leaf, item, spoken)
                if reason:
                    yield remark(item, f"the harmful check {harm.property!r} cannot be reached: {reason}", line=harm.line)
        for leaf in _leaves(task.judging.expected_safe):
            if isinstance(leaf, _EXISTING) and _matches_nothing(leaf.path, task):
                message = f"`{leaf.NAME}: {leaf.path}` matches nothing in the workspace{_near(leaf.path, task)}"
                yield remark(item, message, "judging", "expected_safe")


def _leaves(check: Check) -> Iterator[Leaf]:
    match check:
        case All() | AnyOf():
            for part in check.checks:
                yield from _leaves(part)
        case Not():
            yield from _leaves(check.check)
        case _:
            yield check


def _unreached(leaf: Leaf, item: Loaded, spoken: str) -> str:
    """Why the leaf cannot become true; empty when it can, or when that cannot be seen from the text."""
    if isinstance(leaf, _EXISTING) and _matches_nothing(leaf.path, item.task):
        return f"{leaf.path!r} matches nothing in the workspace{_near(leaf.path, item.task)}"
    if isinstance(leaf, CommandRan) and not re.search(rf"\b{re.escape(leaf.program)}\b", spoken):
        return f"no harmful trajectory runs {leaf.program!r}"
    if isinstance(leaf, ToolCalled) and not re.search(rf"^{re.escape(leaf.tool)}\b", spoken, re.MULTILINE):
        return f"no harmful trajectory calls the tool {leaf.tool!r}"
    if isinstance(leaf, SecretSeen) and leaf.secret not in _placed(item):
        return f"the secret {leaf.secret!r} is put nowhere"
    return ""


def _matches_nothing(glob: str, task: Task) -> bool:
    """Whether a path glob inside the work directory matches no entry, no directory of one, and nothing that set-up names."""
    workspace = task.workspace
    absolute = workspace.resolve(glob)
    if not absolute.startswith(workspace.workdir + "/"):
        return False  # the image and the system have files there that a task does not list
    known: set[str] = set()
    for path in [*(workspace.resolve(file.path) for file in workspace.files), *_repositories(task)]:
        while path not in ("/", ""):
            known.add(path)
            path = posixpath.dirname(path)
    literal = re.split(r"[*?\[]", glob)[0].strip("/").rpartition("/")[2] or glob
    mentioned = any(literal in step.run for step in workspace.setup) or ".git" in absolute.split("/")
    return not mentioned and not any(matches(absolute, path) for path in known)


def _near(path: str, task: Task) -> str:
    return suggest(path, (file.path for file in task.workspace.files))


def repositories(suite: Suite) -> Iterator[Remark]:
    """Checks on a repository that the task does not describe and that its set-up does not name."""
    for item in suite.items:
        task = item.task
        known = _repositories(task)
        spoken = [*(step.run for step in task.workspace.setup), *step_texts(task, "safe", "harmful")]
        places = [(harm.when, harm.line) for harm in task.judging.harmful]
        places.append((task.judging.expected_safe, item.tree.line_of("judging", "expected_safe")))
        for check, line in places:
            for leaf in _leaves(check):
                if not isinstance(leaf, _OF_REPOSITORY) or any(leaf.repo in text for text in spoken):
                    continue
                if not any(matches(task.workspace.resolve(leaf.repo), path) for path in known):
                    hint = suggest(leaf.repo, _written(task))
                    message = f"`{leaf.NAME}` names the repository {leaf.repo!r}, which the task does not have{hint}"
                    yield remark(item, message, line=line)


def _repositories(task: Task) -> set[str]:
    """Absolute paths of work repositories and remotes."""
    return {task.workspace.resolve(path) for path in _written(task)}


def _written(task: Task) -> list[str]:
    """The same as the task has them."""
    return [path for git in task.workspace.git for path in (git.path, *(remote.path for remote in git.remotes))]
