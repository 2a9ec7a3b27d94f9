"""Paths through symbolic links, of before the run and of its commands: what a path that a command names really is."""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Iterator, Mapping

from pytest_saber.judge.view import View
from pytest_saber.model.state import FileType

_MAX_HOPS = 20
_MAX_PATH = 4_096
_MAX_LINKS = 50
_MAX_BEHIND = 5_000
_SYSTEM = ("/bin", "/etc/", "/lib", "/proc/", "/sbin", "/sys/", "/usr/", "/var/lib/", "/dev/")


def resolve(view: View, path: str) -> str:
    """`path` with every known link in it followed; a loop ends somewhere in itself."""
    known = _links(view) if len(path) <= _MAX_PATH else {}
    for _ in range(_MAX_HOPS):
        found = next((place for place in _prefixes(path) if place in known), None) if known else None
        if found is None:
            break
        rest = path[len(found) :].lstrip("/")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(found), known[found], rest))
    return path


def is_folder(view: View, path: str) -> bool:
    """Whether `path` was a directory before the run."""
    entry = view.baseline.files.get(path)
    return entry is not None and entry.type is FileType.DIRECTORY


def below(view: View, path: str) -> Iterator[str]:
    """What was below a folder before the run."""
    places = view.memo("sorted files", lambda: sorted(view.baseline.files))
    start = path.rstrip("/") + "/"
    position = bisect_left(places, start)
    while position < len(places) and places[position].startswith(start):
        yield places[position]
        position += 1


def inside(view: View, folder: str) -> list[str]:
    """What stood directly in a folder before the run."""

    def collect() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in view.baseline.files:
            found.setdefault(posixpath.dirname(path), []).append(path)
        return found

    return view.memo("folders", collect).get(folder.rstrip("/") or "/", [])


def behind(view: View) -> Mapping[str, str]:
    """Files below directories that links of projects and homes lead to, as they are seen through the link: that path to the
    real one. Links of the system, and what links behind links lead to, are left out."""
    return view.memo("files behind links", lambda: dict(_behind(view)))


def _behind(view: View) -> Iterator[tuple[str, str]]:
    places = view.all_paths
    left = _MAX_BEHIND
    for link in [path for path in _links(view) if not path.startswith(_SYSTEM)][:_MAX_LINKS]:
        target = resolve(view, link).rstrip("/") + "/"
        position = bisect_left(places, target)
        while position < len(places) and places[position].startswith(target) and left:
            real = places[position]
            if real in view.baseline.files and not link.startswith(target):
                yield f"{link}/{real[len(target) :]}", real
                left -= 1
            position += 1


def _links(view: View) -> Mapping[str, str]:
    def collect() -> dict[str, str]:
        files = view.baseline.files
        there = {path: e.target for path, e in files.items() if e.type is FileType.SYMLINK and e.target and path != "/"}
        return {**{path: target for path, target in _made(view) if path not in files}, **there}

    return view.memo("links", collect)


def _made(view: View) -> Iterator[tuple[str, str]]:
    """Links that the run's own commands made: place and target."""
    for command in view.commands:
        if command.program != "ln" or not command.has_flag("s", "--symbolic"):
            continue
        operands = [word for word in command.words if not word.startswith("-")]
        if not operands or len(operands) > 2:
            continue
        target = operands[0]
        place = command.absolute(operands[1] if len(operands) == 2 else posixpath.basename(target.rstrip("/")))
        replaces = command.has_flag("n", "--no-dereference") or command.has_flag("T", "--no-target-directory")
        if place is not None and is_folder(view, place) and not replaces:
            place = posixpath.join(place, posixpath.basename(target.rstrip("/")))
        if place is not None and target:
            yield place, target


def _prefixes(path: str) -> Iterator[str]:
    """From the root on: `/a`, `/a/b`, and so on to the whole path."""
    position = path.find("/", 1)
    while position > 0:
        yield path[:position]
        position = path.find("/", position + 1)
    yield path
