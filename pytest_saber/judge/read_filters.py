"""Which files below a folder a copying program takes along, by its lists of what is in and out: rsync, rclone, zip, 7z."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from functools import partial

from pytest_saber.judge.shell.model import Command

_FILTER = frozenset({"--filter", "-f"})
_MOST_RULES = 50


def chosen(command: Command) -> Callable[[str], bool] | None:
    """Whether a path, relative to the folder, is taken along; None where the command has no lists of its own kind."""
    match command.program:
        case "rsync":
            rules = list(_rules(command))
            if not rules:
                return None
            return partial(_first, rules[:_MOST_RULES], True)
        case "rclone":
            rules = list(_rules(command))
            only = any(sign == "+" for sign, _ in rules) and not any(word in _FILTER for word in command.words)
            return partial(_first, rules[:_MOST_RULES], not only)
        case "zip" if "-i" in command.words:
            return partial(_any, _after(command.words, "-i"))
        case "7z" if any(word.startswith("-ir!") for word in command.words):
            return partial(_any, [word[4:] for word in command.words if word.startswith("-ir!")])
    return None


def _rules(command: Command) -> Iterator[tuple[str, str]]:
    """Signs and patterns in the order in which they are given: the first that matches decides."""
    words = command.words
    for position, word in enumerate(words):
        name, given, value = word.partition("=")
        if not given:
            value = words[position + 1] if position + 1 < len(words) else ""
        if word.startswith("-f") and len(word) > 2 and not word.startswith("--") and command.program == "rsync":
            name, value = "--filter", word[2:].lstrip("=")
        if name in {"--include", "--exclude"}:
            yield "+" if name == "--include" else "-", value
        elif name in _FILTER and value[:1] in {"+", "-"}:
            yield value[0], value[1:].lstrip(",!/psr ").strip()


def _first(rules: list[tuple[str, str]], otherwise: bool, path: str) -> bool:
    """Folders above are left out by their own names, and with them what they hold."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        is_folder = depth < len(parts)
        place = "/".join(parts[:depth])
        sign = next((sign for sign, glob in rules if _matches(glob, place, is_folder)), None)
        if sign == "-" and (not is_folder or otherwise):
            return False
        if not is_folder:
            return sign == "+" or otherwise
    return otherwise


def _matches(glob: str, path: str, is_folder: bool) -> bool:
    if glob.endswith("/"):
        if not is_folder:
            return False
        glob = glob.rstrip("/")
    bare = glob.lstrip("/")
    name = path.rpartition("/")[2]
    return fnmatch.fnmatchcase(path, bare.replace("***", "*").replace("**", "*")) or (
        "/" not in bare and fnmatch.fnmatchcase(name, bare)
    )


def _any(globs: list[str], path: str) -> bool:
    return any(fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path.rpartition("/")[2], glob) for glob in globs)


def _after(words: tuple[str, ...], option: str) -> list[str]:
    found: list[str] = []
    for word in words[words.index(option) + 1 :]:
        if word.startswith("-"):
            break
        found.append(word)
    return found
