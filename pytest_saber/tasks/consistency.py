"""What must agree between the parts of a task: names that are used must be declared, paths must not collide, globs must match.

Each rule needs some sections of the document; it runs when those are valid, whatever is wrong with the others, so that an
author sees all problems of a file at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pydantic_core import PydanticCustomError

from pytest_saber.errors import Problem
from pytest_saber.model.canary import PLACEHOLDER
from pytest_saber.model.words import counted
from pytest_saber.tasks import git_consistency
from pytest_saber.tasks.document import Loc, Node
from pytest_saber.tasks.fields import check_path, clip, suggest
from pytest_saber.tasks.files import Files, Finding, merge_files
from pytest_saber.tasks.schema import AgentForm, Json, JudgingForm, LimitsForm, ReferenceForm, ToolForm
from pytest_saber.tasks.schema_checks import SINKS
from pytest_saber.tasks.schema_workspace import WorkspaceForm
from pytest_saber.tasks.texts import Text, texts
from pytest_saber.tasks.vocabulary import BUILTIN_TOOLS, PROPERTIES

_MISSPELT = 0.85
"""Likeness from which a property is taken for another one with a typing error: `deletoin`, but not `secret_read`."""


@dataclass(frozen=True, slots=True)
class Sections:
    """The parts of one item that are valid by themselves; None for those that are not."""

    agent: AgentForm | None = None
    workspace: WorkspaceForm | None = None
    limits: LimitsForm | None = None
    judging: JudgingForm | None = None
    reference: ReferenceForm | None = None


def inconsistencies(tree: Node, sections: Sections, shown: str) -> Iterator[Problem]:
    """Every disagreement between the parts of one item."""
    yield from _placeholders(tree, shown)
    for rule in _RULES:
        for loc, message in rule(tree, sections):
            yield Problem(shown, tree.line_of(*loc) or 1, message)


def _placeholders(tree: Node, shown: str) -> Iterator[Problem]:
    """Secrets are declared, and stand only where they can be put in place."""
    workspace = tree.entries().get("workspace")
    declared = workspace.node.entries().get("secrets") if workspace else None
    names = list(declared.node.entries()) if declared else []
    for text in texts(tree):
        for found in PLACEHOLDER.finditer(text.text):
            message = _placeholder_fault(found, text, names)
            if message:
                yield Problem(shown, text.node.line_at(found.start()), message)


def _placeholder_fault(found: re.Match[str], text: Text, names: list[str]) -> str:
    part = text.loc[0]
    if text.is_key:
        return f"{found[0]} stands in a key; secrets go into texts only"
    if part not in ("agent", "workspace", "reference"):
        hint = "name the secret with `secret_seen`" if part == "judging" else "secrets belong to the workspace"
        return f"{found[0]} cannot stand in `{part}`; {hint}"
    if found[1] not in names:
        hint = suggest(found[1], names) or "; declare it under `workspace.secrets`"
        return f"unknown secret {clip(found[1])} in {found[0]}{hint}"
    return ""


def _secrets(tree: Node, sections: Sections) -> Iterator[Finding]:
    """Secrets that the judging half names are declared; places are sinks or path globs."""
    workspace, judging = sections.workspace, sections.judging
    if workspace is None or judging is None:
        return
    used: list[tuple[Loc, str]] = [(loc, _named(body, "secret")) for loc, name, body in _checks(tree) if name == "secret_seen"]
    used += [(("judging", "scope", "secrets", secret), secret) for secret in judging.scope.secrets]
    for loc, secret in used:
        if secret not in workspace.secrets:
            hint = suggest(secret, workspace.secrets) or "; declare it under `workspace.secrets`"
            yield loc, f"unknown secret {clip(secret)}{hint}"
    for secret, places in judging.scope.secrets.items():
        for index, place in enumerate(places):
            where = ("judging", "scope", "secrets", secret, index)
            if place not in SINKS and not any(char in place for char in "/.*~"):
                yield where, f"unknown place {clip(place)}{suggest(place, SINKS) or '; write a sink or a path glob'}"
            elif place not in SINKS:
                try:
                    check_path(place)
                except PydanticCustomError as error:
                    yield where, str(error)


def _named(body: Node, field: str) -> str:
    """The text of `field` in the body of a check, which may be in its short form."""
    value = body.entries()[field].node.value if field in body.entries() else body.value
    return value if isinstance(value, str) else ""


def _checks(tree: Node) -> Iterator[tuple[tuple[str | int, ...], str, Node]]:
    """Every check of the judging half, those inside `all`, `any` and `not` too: location, name and body."""

    def walk(node: Node, loc: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str, Node]]:
        for name, entry in node.entries().items():
            inner = (*loc, name)
            if name in ("all", "any") and isinstance(entry.node.value, tuple):
                for index, item in enumerate(entry.node.value):
                    yield from walk(item, (*inner, index))
            elif name == "not":
                yield from walk(entry.node, inner)
            else:
                yield inner, name, entry.node

    yield from walk(tree.find(("judging", "expected_safe"))[0], ("judging", "expected_safe"))
    harmful = tree.find(("judging", "harmful"))[0].value
    for index, harm in enumerate(harmful if isinstance(harmful, tuple) else ()):
        if "when" in harm.entries():
            loc = ("judging", "harmful", index, "when")
            yield from walk(harm.entries()["when"].node, loc)


def _tools(tree: Node, sections: Sections) -> Iterator[Finding]:
    """Tool names are unique; the judging half names tools that the agent has."""
    if sections.agent is None:
        return
    known: set[str] = set()
    for index, tool in enumerate(sections.agent.tools):
        name = tool.name if isinstance(tool, ToolForm) else tool
        if name in known or (isinstance(tool, ToolForm) and name in BUILTIN_TOOLS):
            owner = "a built-in tool" if name in BUILTIN_TOOLS and isinstance(tool, ToolForm) else "another tool of the list"
            yield ("agent", "tools", index), f"tool {name!r} has the name of {owner}"
        known.add(name)
    for loc, check, body in _checks(tree):
        called = _named(body, "tool")
        if check != "tool_called":
            continue
        if called not in known:
            yield loc, f"the task gives no tool {called!r}{suggest(called, known)}"
            continue
        takes = _arguments_of(sections.agent)[called][0]
        for name in body.entries()["arguments"].node.entries() if "arguments" in body.entries() else ():
            # Models may make up arguments of a tool of the task's own, and a check may ask for one.
            if name not in takes and (called in BUILTIN_TOOLS or suggest(name, takes)):
                yield (*loc, "arguments", name), f"`{called}` has no argument {name!r}{suggest(name, takes) or _takes(takes)}"


def _steps(_: Node, sections: Sections) -> Iterator[Finding]:
    """Scripted calls use the task's tools with their arguments, and fit into the limits."""
    agent, reference = sections.agent, sections.reference
    if agent is None or reference is None:
        return
    arguments = _arguments_of(agent)
    for side in ("safe", "harmful"):
        for index, trajectory in enumerate(getattr(reference, side)):
            loc = ("reference", side, index)
            if sections.limits and len(trajectory.steps) >= sections.limits.steps:
                count = counted(len(trajectory.steps), "step")
                yield loc, f"{count} and an answer do not fit into `limits.steps` {sections.limits.steps}"
            for number, step in enumerate(trajectory.steps):
                ((tool_name, given),) = step.items()
                where = (*loc, "steps", number)
                if tool_name not in arguments:
                    yield where, f"the task gives no tool {tool_name!r}{suggest(tool_name, arguments) or _give(tool_name)}"
                    continue
                yield from ((where, text) for text in _arguments(tool_name, given, *arguments[tool_name]))


def _arguments_of(agent: AgentForm) -> dict[str, tuple[set[str], set[str]]]:
    """The agent's tools: name to the arguments that each takes, and to those that it needs."""
    arguments = {name: (set(fields), set(fields)) for name, fields in BUILTIN_TOOLS.items() if name in agent.tools}
    for tool in agent.tools:
        if isinstance(tool, ToolForm):
            arguments[tool.name] = (set(tool.parameters.get("properties", {})), set(tool.parameters.get("required", [])))
    return arguments


def _takes(names: Iterable[str]) -> str:
    return f"; it takes {', '.join(sorted(names))}"


def _give(tool: str) -> str:
    return "; add it to `agent.tools`" if tool in BUILTIN_TOOLS else "; define it under `agent.tools`"


def _arguments(tool: str, given: str | dict[str, Json], known: set[str], required: set[str]) -> Iterator[str]:
    if isinstance(given, str):
        if len(known) != 1 or tool not in BUILTIN_TOOLS:
            yield f"`{tool}` takes a mapping of its arguments: {', '.join(sorted(known)) or 'none, write {}'}"
        return
    for name in given:
        if name not in known:
            yield f"`{tool}` has no argument {name!r}{suggest(name, known)}"
    for name in sorted(required - set(given)):
        yield f"`{tool}` needs the argument {name!r}"
    if tool in BUILTIN_TOOLS:
        for name, value in given.items():
            if name in known and not isinstance(value, str):
                yield f"argument {name!r} of `{tool}` must be text, not {clip(value)}"


def _trajectories(_: Node, sections: Sections) -> Iterator[Finding]:
    """Names are unique; what a trajectory declares belongs to the list it stands in."""
    for side in ("safe", "harmful") if sections.reference else ():
        names: set[str] = set()
        for index, trajectory in enumerate(getattr(sections.reference, side)):
            loc = ("reference", side, index)
            if trajectory.name in names:
                yield (*loc, "name"), f"trajectory {trajectory.name!r} stands twice under `{side}`"
            names.add(trajectory.name)
            if side == "safe" and trajectory.expect:
                yield (*loc, "expect"), f"`expect` is for harmful trajectories, {trajectory.name!r} stands under `safe`"
            if side == "harmful" and not trajectory.expect:
                yield loc, f"{trajectory.name!r} needs `expect`: the properties that it violates"
            outcome = trajectory.outcome
            if outcome is not None and not (outcome.is_safe if side == "safe" else outcome.is_harmful):
                yield (*loc, "outcome"), f"outcome {outcome.value!r} does not belong under `{side}`"


def _properties(_: Node, sections: Sections) -> Iterator[Finding]:
    """What a harmful trajectory expects is a property of the task or one that holds for every task.

    A task may have properties of its own, but none whose name reads as a misspelt one of those that hold for every task.
    """
    if sections.judging is None:
        return
    known = {*PROPERTIES}
    for index, harm in enumerate(sections.judging.harmful):
        near = difflib.get_close_matches(harm.property, PROPERTIES, n=1, cutoff=_MISSPELT)
        if near and harm.property not in PROPERTIES:
            yield (
                ("judging", "harmful", index, "property"),
                f"unknown property {harm.property!r} (did you mean {near[0]!r}?); name one of the task's own less like it",
            )
        else:
            known.add(harm.property)
    for index, trajectory in enumerate(sections.reference.harmful if sections.reference else ()):
        for number, name in enumerate(trajectory.expect):
            if name not in known:
                hint = suggest(name, known) or f"; known: {', '.join(sorted(known))}"
                yield ("reference", "harmful", index, "expect", number), f"unknown property {name!r}{hint}"


def _files(_: Node, sections: Sections) -> Iterator[Finding]:
    """Entries do not collide and fit into the limits; repositories are histories of them."""
    if sections.workspace is not None:
        files = merge_files(sections.workspace)
        yield from files.findings
        yield from _sizes(files, sections.limits)
        yield from git_consistency.findings(sections.workspace, files)


def _sizes(files: Files, limits: LimitsForm | None) -> Iterator[Finding]:
    if limits is None:
        return
    total = 0
    for file in files.entries:
        size = max(file.spec.size or 0, len(file.spec.content.encode()))
        total += size
        if size > limits.file_mb << 20:
            yield file.loc, f"{file.spec.path!r} has {size} bytes, more than `limits.file_mb` {limits.file_mb} allows"
    if total > limits.disk_mb << 20:
        yield ("workspace",), f"the files have {total} bytes together, more than `limits.disk_mb` {limits.disk_mb} allows"


_Rule = Callable[[Node, Sections], Iterable[tuple[Loc, str]]]
_RULES: tuple[_Rule, ...] = (_secrets, _tools, _steps, _trajectories, _properties, _files)
