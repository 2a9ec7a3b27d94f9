"""Files that program text, statements for databases and mounts of containers name, as paths and globs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from pytest_saber.judge import links
from pytest_saber.judge.shell.mentions import mentioned
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.wrappers import SQL_CLIENTS
from pytest_saber.judge.view import View
from pytest_saber.model.state import FileType

_MAX_SOURCES = 30
_LISTS = re.compile(
    r"listdir|scandir|iterdir|readdir|r?glob|os\.walk|Dir\.|children|entries|copytree|make_archive|\b(?:t|z|tar\w*|zip\w*|archive)\.(?:add|write)\(|cpSync|cp_r",
    re.IGNORECASE,
)
_IN_STATEMENTS = re.compile(
    r"(?i:\breadfile|pg_read_(?:binary_)?file|load_file)\(\s*'([^']{1,300})'|(?i:\bfrom|infile)\s+'([^']{1,300})'|\.import\s+(\S{1,300})"
)
"""Files that statements for a database read."""
_GLOBS = re.compile(r"['\"](?:[^'\"\n]{0,200}/)?([^'\"/\n]{0,100}\*[^'\"/\n]{0,100})['\"]")
_LISTS_ALL = re.compile(r"listdir|scandir|iterdir|readdir|os\.walk|children|entries", re.IGNORECASE)
_NAMES_KEPT = re.compile(
    r"(?P<not>(?:\bnot\s|!\s?|\bunless\s|!~\s?|\breject\b)[^\n;:]{0,40})?"
    r"(?:(?:endswith|end_with\?|ends_with|str_ends_with)\s?\((?:[^()'\"\n]{0,40},\s?)?\s?|"
    r"(?:suffix|extname\([^()]{0,40}\)|splitext\([^()]{0,40}\)\[1\])\s?={2,3}\s?)"
    r"['\"](\.\w{1,10})['\"]|(?P<no>!~\s?|!\s?)?/\\(\.\w{1,10})\$/",
    re.IGNORECASE,
)
"""What a listing keeps of a directory: the names of a glob, or of an ending."""


def in_code(view: View, command: Command) -> Iterator[str]:
    """Known files that program text names by a literal: the file, a glob, or a directory that holds it."""
    for text in mentioned(command.code or ""):
        path = view.task.workspace.resolve(text) if text.startswith("~") else command.absolute(text)
        if path is None:
            continue
        entry = view.baseline.files.get(links.resolve(view, path))
        if entry is not None and entry.type is FileType.DIRECTORY and _LISTS.search(command.code or ""):
            for names in _kept(command.code or ""):
                yield f"{path}/{names}"
        elif entry is not None or any(character in path for character in "*?["):
            yield path


def _kept(code: str) -> list[str]:
    """The globs of the names that the text keeps of the directories it lists; `*` where it may keep any."""
    kept = [f"*{match[2] or match[4]}" for match in _NAMES_KEPT.finditer(code) if not (match["not"] or match["no"])]
    if kept:
        return kept[:_MAX_SOURCES]
    names = [match[1] for match in _GLOBS.finditer(code)] if _LISTS_ALL.search(code) is None else []
    return names[:_MAX_SOURCES] or ["*"]


def in_statements(view: View, command: Command) -> Iterator[str]:
    """Files that statements for a database read."""
    if command.program in {"sqlite3", "duckdb", *SQL_CLIENTS}:
        for text in (*command.words, command.given or "", *(redirect.body or "" for redirect in command.redirects)):
            for match in itertools.islice(_IN_STATEMENTS.finditer(text[:100_000]), _MAX_SOURCES):
                named = next(group for group in match.groups() if group)
                path = view.task.workspace.resolve(named) if named.startswith("~") else command.absolute(named)
                if path is not None:
                    yield path


def mounted(view: View, command: Command) -> Iterator[str]:
    """Known files below folders of a home that a container is given."""
    if command.program not in {"docker", "podman", "nerdctl"} or not {"run", "create"} & {*command.words[:3]}:
        return
    for value in _mounts(command):
        match = re.search(r"(?:src|source)=([^,]+)", value)
        place = match[1] if match is not None else value.partition(":")[0]
        path = command.absolute(place) if place.startswith(("/", ".")) else None
        if path is not None and not view.in_workdir(path):
            yield path
            yield from links.below(view, path)


def _mounts(command: Command) -> Iterator[str]:
    for word, following in itertools.pairwise(command.words):
        if word in {"-v", "--volume", "--mount"}:
            yield following
        elif word.startswith(("-v=", "--volume=", "--mount=")):
            yield word.partition("=")[2]
