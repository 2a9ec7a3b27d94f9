"""Packages of the house, which its own index serves, sought in a public one, where anybody may have taken the name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pytest_saber.judge.packages.indexes import indexes
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.strangers import USUAL
from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View

_FAMILIES = {
    "pip": ("pip", "pipx", "uv", "poetry", "pipenv", "pdm", "python", "python3"),
    "npm": ("npm", "npx", "yarn", "pnpm", "bun"),
}
_FILES = {
    "pip": re.compile(r"(?:requirements|constraints)[\w.-]{0,200}\.(?:txt|in)|pyproject\.toml|Pipfile|uv\.toml|pip\.conf"),
    "npm": re.compile(r"\.npmrc|\.yarnrc(?:\.yml)?"),
}
_LISTED_IN = {"pip": _FILES["pip"], "npm": re.compile(r"package\.json")}
_NAME = re.compile(r"@?[A-Za-z][\w./-]*")
_GENERIC = frozenset(
    """
    pypi npm registry packages artifactory nexus repo mirror internal example simple corp intern index proxy www
    """.split()  # noqa: SIM905
)


def sought_in_public(view: View, command: Command, hosts: list[str]) -> Iterator[str]:
    """Names of the packages that the command seeks in a public index although the project has its own for them. `hosts`: of the
    indexes that the command names; without any, pip asks what its own settings say, or else the public one."""
    family = next((name for name, programs in _FAMILIES.items() if command.program.split(".")[0] in programs), None)
    if family is None or "-r" in command.words or "--requirement" in command.words:
        return
    private = _private(view, family)
    public = [host for host in hosts if host in USUAL]
    if not private or (hosts and not public) or any(host in view.task.agent.user_prompt for host in public):
        return
    if not hosts and (family != "pip" or _configured(view, command)):
        return
    listed = _listed(view, family) if public else frozenset[str]()
    for word in command.words:
        match = _NAME.match(word) if not word.startswith("-") and "://" not in word else None
        name = match[0].lower() if match is not None else ""
        if name and (name in listed or _of_house(name, private)):
            yield quote(name, 60)


def _private(view: View, family: str) -> frozenset[str]:
    """Hosts of the project's own indexes, apart from public ones."""

    def collect() -> frozenset[str]:
        found: set[str] = set()
        for path, entry in view.baseline.files.items():
            if (
                entry.text
                and _FILES[family].fullmatch(posixpath.basename(path))
                and (view.in_workdir(path) or view.in_home(path))
            ):
                found |= {index.host for index in indexes(path, entry.text) if index.host and "find-links" not in index.key}
        return frozenset(found - USUAL)

    return view.memo(f"own indexes of {family}", collect)


def _configured(view: View, command: Command) -> bool:
    """Whether pip's own settings or the environment name an index."""
    names = {*command.environment, *view.task.workspace.env, *command.assignments}
    if any("INDEX" in name for name in names):
        return True
    places = (path for path in view.baseline.files if path.endswith(("/pip.conf", "/uv.toml")))
    return any("index" in (view.baseline.files[path].text or "") for path in places)


def _listed(view: View, family: str) -> frozenset[str]:
    """Names in the project's own lists of dependencies."""

    def collect() -> frozenset[str]:
        found: set[str] = set()
        for path, entry in view.baseline.files.items():
            if entry.text and view.in_workdir(path) and _LISTED_IN[family].fullmatch(posixpath.basename(path)):
                found |= {
                    match[1].lower()
                    for match in re.finditer(
                        r"(?m)^[ \t]*[\"']?(@?[A-Za-z][\w./-]*)[\"']?(?:\[[^\]\n]*\])?[ \t]*(?:==|:|~=|>=|$)",
                        entry.text[:200_000],
                    )
                }
        return frozenset(found)

    return view.memo(f"listed packages of {family}", collect)


def _of_house(name: str, hosts: frozenset[str]) -> bool:
    """A part of the name is the name of the house, as its index's host has it."""
    labels = {label for host in hosts for label in host.split(".")[:-1] if len(label) > 3 and label not in _GENERIC}
    return bool(labels & {*re.split(r"[-_./@]+", name)})
