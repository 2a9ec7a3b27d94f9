"""What `make TARGET` and `npm run SCRIPT` run, read from the project's own files."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_saber.judge.shell.model import Command, ScriptText

_MAX_STEPS = 40
_LONG = 2_000
_RULE = re.compile(r"^( *+[A-Za-z0-9_.%/-]++(?: ++[A-Za-z0-9_.%/-]++)*+)\s*+::?(?!=)([^=\n]*)$")
_ASSIGNMENT = re.compile(r"^(?:export\s+)?([A-Za-z_][\w.-]*)\s*[:?+]?=\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Step:
    """One script of a project: `name` says where it stands (`make clean`, `npm test`), `file` the file that holds it."""

    name: str
    text: str
    file: str
    directory: str


def steps(command: Command, directory: str | None, script_text: ScriptText) -> Iterator[Step]:
    """The scripts that `make` or a node package manager would run, dependencies first."""
    if directory is None:
        return
    if command.program in {"make", "gmake"}:
        yield from _make(command, directory, script_text)
    else:
        yield from _node(command, directory, script_text)


def _make(command: Command, directory: str, script_text: ScriptText) -> Iterator[Step]:
    names = [named] if (named := command.option("-f", "--file")) else ["GNUmakefile", "makefile", "Makefile"]
    for name in names:
        path = posixpath.normpath(posixpath.join(directory, name))
        text = script_text(path)
        if text is not None:
            break
    else:
        return
    variables, rules, first = makefile(text)
    valued = {"-C", "-f", "-j", "--directory", "--file", "--jobs"}
    goals: list[str] = []
    skip = False
    for word in command.words:
        if skip:
            skip = False
        elif word in valued:
            skip = True
        elif "=" in word and not word.startswith("-"):
            key, _, value = word.partition("=")
            variables[key] = value
        elif not word.startswith("-"):
            goals.append(word)
    done: set[str] = set()
    pending = [(goal, False) for goal in reversed(goals or ([first] if first else []))]
    count = 0
    while pending and count < _MAX_STEPS:
        goal, ready = pending.pop()
        if goal not in rules or (goal in done and not ready):
            continue
        needs, recipe = rules[goal]
        if not ready:
            done.add(goal)
            pending.append((goal, True))
            pending += [(need, False) for need in reversed(needs) if need not in done]
            continue
        count += 1
        if recipe:
            yield Step(f"make {goal}", _expand("\n".join(recipe), variables, goal), path, directory)


def makefile(text: str) -> tuple[dict[str, str], dict[str, tuple[list[str], list[str]]], str]:
    """Variables, rules as target -> (prerequisites, recipe lines without their prefixes), and the first target."""
    variables: dict[str, str] = {}
    rules: dict[str, tuple[list[str], list[str]]] = {}
    first = ""
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines()[:20_000]:
        if line.startswith("\t"):
            for target in current:
                rules[target][1].append(line.strip().lstrip("@-+"))
        elif len(line) > _LONG:
            continue
        elif match := _ASSIGNMENT.match(line):
            variables[match[1]] = match[2].strip()
        elif match := _RULE.match(line):
            current = match[1].split()
            needs, _, inline = match[2].partition(";")
            for target in current:
                known = rules.setdefault(target, ([], []))
                known[0].extend(needs.split())
                if inline.strip():
                    known[1].append(inline.strip())
                if not first and not target.startswith("."):
                    first = target
        elif line.strip() and not line.startswith("#"):
            current = []
    return variables, rules, first


def ignored_failures(text: str) -> dict[str, frozenset[str]]:
    """Target to its recipe lines, without prefixes, whose failure `make` ignores: after `-`, or by `.IGNORE`."""
    found: dict[str, frozenset[str]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines()[:20_000]:
        if line.startswith("\t"):
            bare = line.strip()
            command = bare.lstrip("@-+")
            if "-" in bare[: len(bare) - len(command)]:
                found.update({target: found.get(target, frozenset()) | {command} for target in current})
        elif len(line) <= _LONG and (match := _RULE.match(line)) and not _ASSIGNMENT.match(line):
            current = match[1].split()
    rules = makefile(text)[1]
    if ".IGNORE" in rules:
        for target in rules[".IGNORE"][0] or rules:
            if target in rules:
                found[target] = frozenset(rules[target][1])
    return found


def _expand(text: str, variables: dict[str, str], goal: str) -> str:
    for _ in range(4):
        expanded = re.sub(r"\$[({]([\w.-]+)[)}]", lambda m: variables.get(m[1], m[0]), text)
        if expanded == text or len(expanded) > 65_536:
            break
        text = expanded
    return text.replace("$@", goal).replace("$$", "$")


def _node(command: Command, directory: str, script_text: ScriptText) -> Iterator[Step]:
    words = [word for word in command.words if not word.startswith("-")]
    if not words:
        return
    short = {"test", "start", "stop", "restart"}
    if words[0] in {"run", "run-script"} and len(words) > 1:
        name = words[1]
    elif words[0] in short or command.program != "npm":
        name = words[0]
    else:
        return
    path = posixpath.join(directory, "package.json")
    scripts = package_scripts(script_text(path) or "")
    for part in (f"pre{name}", name, f"post{name}"):
        if part in scripts:
            yield Step(f"npm {part}", scripts[part], path, directory)


def package_scripts(text: str) -> dict[str, str]:
    """The `scripts` of a package.json; empty where it is not one."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    scripts = document.get("scripts") if isinstance(document, dict) else None
    if not isinstance(scripts, dict):
        return {}
    return {str(key): value for key, value in scripts.items() if isinstance(value, str)}
