"""Finds git directories among what a scan reads, and reports the files that git would read of them.

Git follows links, `gitdir:` files, `commondir` and alternates, so an agent can move all or part of a repository elsewhere and
git goes on working. The same is done here, but never by the kernel: each component is opened in the workspace's own layers
and mounts, and a link starts again at their root. What leads nowhere there makes the repository `truncated`.
"""

from __future__ import annotations

import os
import posixpath
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pytest_saber.sandbox.state.content import Bounds, ContentReader
from pytest_saber.sandbox.state.overlay import LIST, Stack
from pytest_saber.sandbox.state.wire import Emit

_GIT_FILES = frozenset(
    {"HEAD", "config", "config.worktree", "packed-refs", "index", "refs", "logs", "hooks", "objects", "worktrees", "commondir"}
)
_OWN = ("HEAD", "index")
"""What each work tree has for itself (gitrepository-layout)."""
_ALTERNATES = "objects/info/alternates"
_CHAIN = 5
"""Most alternates of alternates, as in git."""
_LINKS = 40
_LEVELS = 40
_STEPS = 400
_POINTER = 4096
_NESTING = 32


class Tree:
    """The workspace's file system for looking up single paths with their links followed."""

    def __init__(self, root: Stack, mounts: Mapping[str, int]) -> None:
        """`mounts`: where other file systems are mounted, with a descriptor of what is mounted there."""
        self._root = root
        self._mounts = mounts

    @contextmanager
    def find(self, path: str) -> Iterator[tuple[str, int | None, Stack]]:
        """(the path without links, an O_PATH descriptor or None, the stack of a directory)."""
        trail: list[tuple[str, int, Stack, ExitStack]] = []
        nothing: tuple[str, int | None, Stack] = "", None, Stack((), "")
        try:
            try:
                found = self._follow(path, trail)
            except (OSError, ValueError):
                # A name that is too long, or none at all: no path of the workspace.
                found = False
            yield trail[-1][:3] if found and trail else nothing
        finally:
            _leave(trail)

    def _follow(self, path: str, trail: list[tuple[str, int, Stack, ExitStack]]) -> bool:
        pending, links = path.split("/")[::-1], 0
        for _ in range(_STEPS):
            if not pending:
                return True
            part = pending.pop()
            if part in {"", "."}:
                continue
            place, stack = (trail[-1][0], trail[-1][2]) if trail else ("", self._root)
            if not stack or len(trail) > _LEVELS:
                return False
            if part == "..":
                _leave(trail, 1)
                continue
            place = f"{place}/{part}"
            opened = ExitStack()
            fd, below = self._enter(opened, stack, place, part)
            if fd is None or not stat.S_ISLNK(os.fstat(fd).st_mode):
                if fd is None:
                    opened.close()
                    return False
                trail.append((place, fd, below, opened))
                continue
            target = os.readlink("", dir_fd=fd)
            opened.close()
            links += 1
            if links > _LINKS:
                return False
            if target.startswith("/"):
                _leave(trail)
            pending += target.split("/")[::-1]
        return False

    def _enter(self, opened: ExitStack, stack: Stack, place: str, name: str) -> tuple[int | None, Stack]:
        if place not in self._mounts:
            return opened.enter_context(stack.child(name))
        fd = self._mounts[place]
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            return fd, Stack((), "")
        listing = os.open(".", LIST, dir_fd=fd)
        opened.callback(os.close, listing)
        return fd, Stack((listing,), "")


def _leave(trail: list[tuple[str, int, Stack, ExitStack]], levels: int | None = None) -> None:
    for _ in range(len(trail) if levels is None else min(levels, len(trail))):
        trail.pop()[3].close()


@dataclass
class _Reading:
    """One repository while its files are reported."""

    view: str
    path: str
    files: int
    bytes: int
    deadline: float
    stores: list[str] = field(default_factory=list)
    """The object directories, without links."""
    missing: bool = False
    """Something that git would look for was not found."""

    def is_over(self) -> bool:
        return min(self.files, self.bytes) < 0 or time.monotonic() > self.deadline

    def step(self) -> bool:
        """Count what is no file and takes time, such as links to directories of links; False when it is over."""
        self.files -= 1
        return not self.is_over()


class GitScanner:
    """Reports repositories of one scan. `tree` is None for what cannot be followed, as in the image of a workspace."""

    def __init__(self, bounds: Bounds, reader: ContentReader, send: Emit, tree: Tree | None) -> None:
        self._bounds = bounds
        self._reader = reader
        self._send = send
        self._tree = tree
        self._seconds = {True: bounds.git_seconds, False: bounds.new_git_seconds}

    def is_git(self, stack: Stack, path: str) -> bool:
        """Whether a directory is a git directory: it has HEAD, objects and refs (gitrepository-layout)."""
        if not stack:
            return False
        with stack.child("HEAD") as (head, _):
            if head is None:
                return False
        return all(self._is_directory(stack, path, name) for name in ("objects", "refs"))

    def _is_directory(self, stack: Stack, path: str, name: str) -> bool:
        with stack.child(name) as (fd, below):
            if fd is None or below or not stat.S_ISLNK(os.fstat(fd).st_mode) or self._tree is None:
                return bool(below)
            with self._tree.find(f"{path}/{name}") as (_, _, led):
                return bool(led)

    def report(self, stack: Stack, path: str, view: str, *, known: bool) -> str | None:
        """Report the git directory `path`, a path without links. Returns a note where it is not read whole.

        `known`: it was there before the run. Others have a time of their own, so that they take none of what it needs.
        """
        return self._report(stack, path, path, view, known=known)

    def report_elsewhere(self, path: str) -> tuple[bool, str | None]:
        """(Whether `path` leads to a git directory through links or a `gitdir:` file, the note of `report`)."""
        if self._tree is None:
            return False, None
        with self._tree.find(path) as (home, fd, stack):
            if fd is not None and _is_file(fd):
                target = self._pointer(fd, "gitdir:")
                if target is None:
                    return False, None
                with self._tree.find(posixpath.join(posixpath.dirname(home), target)) as (place, _, led):
                    return self._elsewhere(led, path, place)
            return self._elsewhere(stack, path, home)

    def _elsewhere(self, stack: Stack, path: str, home: str) -> tuple[bool, str | None]:
        if self.is_git(stack, home) or self._is_work_tree(stack, home):
            return True, self._report(stack, path, home, "now", known=True)
        return False, None

    def _is_work_tree(self, stack: Stack, home: str) -> bool:
        with self._common(stack, home) as (place, common):
            return self.is_git(common, place)

    @contextmanager
    def _common(self, stack: Stack, home: str) -> Iterator[tuple[str, Stack]]:
        """The common git directory, where `commondir` names one."""
        with stack.child("commondir") as (fd, _):
            target = self._pointer(fd) if fd is not None and _is_file(fd) else None
        if target is None or self._tree is None:
            yield "", Stack((), "")
            return
        with self._tree.find(posixpath.join(home, target)) as (place, _, common):
            yield place, common

    def _pointer(self, fd: int, prefix: str = "") -> str | None:
        """The path in a file of one line."""
        content = self._reader.whole(fd, _POINTER)
        text = os.fsdecode(content or b"").strip("\r\n")
        return text.removeprefix(prefix).strip() if text.startswith(prefix) and text != prefix else None

    def _report(self, stack: Stack, path: str, home: str, view: str, *, known: bool) -> str | None:
        self._send({"k": "repository", "view": view, "path": path}, None)
        started = time.monotonic()
        reading = _Reading(view, path, self._bounds.git_files, self._bounds.git_bytes, started + self._seconds[known])
        try:
            self._read(reading, stack, home)
        finally:
            self._seconds[known] -= time.monotonic() - started
        for place in reading.stores if reading.stores != [f"{path}/objects"] else ():
            self._send({"k": "store", "view": view, "path": path, "place": place}, None)
        if reading.missing or reading.is_over():
            self._send({"k": "git", "view": view, "path": path, "name": "", "mode": 0, "truncated": True}, None)
        return f"{path}: the repository is too large; it was read in part" if reading.is_over() else None

    def _read(self, reading: _Reading, stack: Stack, home: str) -> None:
        with self._common(stack, home) as (place, common):
            if self.is_git(common, place):
                self._directory(reading, common, place, "", skip=_OWN)
        self._directory(reading, stack, home, "")

    def _directory(self, reading: _Reading, stack: Stack, home: str, inner: str, skip: tuple[str, ...] = ()) -> None:
        if inner.count("/") > _NESTING or not reading.step():
            return
        if inner == "objects/":
            reading.stores.append(home)
        # Objects last: however many there are, HEAD and refs were read.
        for name in sorted(stack.names(self._bounds.names), key=lambda name: (not inner and name == "objects", name)):
            if (not inner and name not in _GIT_FILES) or name in skip:
                continue
            if reading.is_over():
                return
            with stack.child(name) as (fd, below):
                if fd is not None:
                    self._entry(reading, fd, below, f"{home}/{name}", inner + name)

    def _entry(self, reading: _Reading, fd: int, below: Stack, place: str, name: str) -> None:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            self._directory(reading, below, place, f"{name}/")
        elif stat.S_ISLNK(mode):
            self._link(reading, fd, place, name)
        else:
            self._file(reading, fd, name, place)

    def _link(self, reading: _Reading, fd: int, place: str, name: str) -> None:
        target = os.readlink("", dir_fd=fd)
        # A symbolic ref of old, for which alone git takes a link HEAD, and a hook: what that runs is a file of its own.
        as_it_is = target.startswith("refs/") or name == "HEAD" or name.startswith("hooks/")
        if as_it_is or self._tree is None or reading.view != "now":
            self._take(reading, name, stat.S_IFLNK | 0o777, os.fsencode(target))
            return
        if not reading.step():
            return
        with self._tree.find(place) as (led, found, below):
            if found is None or place.startswith(f"{led}/"):
                reading.missing = True
                self._take(reading, name, stat.S_IFLNK | 0o777, os.fsencode(target))
            else:
                self._entry(reading, found, below, led, name)

    def _file(self, reading: _Reading, fd: int, name: str, place: str) -> None:
        status = os.fstat(fd)
        content = self._reader.whole(fd, max(0, reading.bytes)) if stat.S_ISREG(status.st_mode) else None
        self._take(reading, name, status.st_mode, content, status.st_size)
        if name == _ALTERNATES:
            self._alternates(reading, content or b"", posixpath.dirname(posixpath.dirname(place)), _CHAIN)

    def _take(self, reading: _Reading, name: str, mode: int, content: bytes | None, size: int = 0) -> None:
        reading.files -= 1
        reading.bytes -= size if content is None else len(content)
        self._send({"k": "git", "view": reading.view, "path": reading.path, "name": name, "mode": mode}, content)

    def _alternates(self, reading: _Reading, content: bytes, store: str, chain: int) -> None:
        """The objects of the directories that an object directory borrows from, and what those borrow."""
        for line in os.fsdecode(content).splitlines():
            if not reading.step():
                return
            if not line or line.startswith("#"):
                continue
            if self._tree is None or reading.view != "now" or not chain:
                reading.missing = True
                return
            with self._tree.find(posixpath.join(store, line)) as (place, _, stack):
                if not stack:
                    reading.missing = True
                elif place not in reading.stores:
                    self._directory(reading, stack, place, "objects/", skip=("info",))
                    with stack.child("info") as (_, info), info.child("alternates") as (fd, _):
                        more = self._reader.whole(fd, _POINTER) if fd is not None and _is_file(fd) else None
                    self._alternates(reading, more or b"", place, chain - 1)


def _is_file(fd: int) -> bool:
    return stat.S_ISREG(os.fstat(fd).st_mode)
