"""The scanner: reads a frozen workspace's file system by directory descriptor and reports what it finds, record by record.

Nothing is followed, executed or opened that could have a side effect: each name is first opened with `O_PATH`, and only
regular files and directories are then opened for reading, through the descriptor already held.

A final scan is told which paths the baseline knew. It visits those first and without a budget, so that a workspace filled
with a million files cannot make the known ones look deleted.

Records (`k` says which): `entry` a path (`view` is `now`, or `image` for what the image held and the baseline showed),
`cut` a path where the baseline hides the image, `repository` a git directory, `git` a file of it and `store` where its objects
lie if elsewhere, `part` a repository too large to be read whole, `mount` a mount that was read, `process`, `note`, and `done`.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from pytest_saber.sandbox.state import overlay, processes
from pytest_saber.sandbox.state.content import Bounds, ContentReader, Overtime
from pytest_saber.sandbox.state.gitscan import GitScanner, Tree
from pytest_saber.sandbox.state.overlay import LIST, PEEK, Stack
from pytest_saber.sandbox.state.wire import Emit, writer

Guide = dict[str, "Guide"]


@dataclass(frozen=True)
class Request:
    """What to scan. Paths are those that the scanning process sees."""

    pid: int
    """First process of the workspace, 0 when it ended."""
    container: str
    """Id in the control group of the workspace's processes; empty where the scanner shares only their process namespace."""
    upper: str
    lower: tuple[str, ...]
    userxattr: bool = False
    mounts: tuple[tuple[str, str], ...] = ()
    """Of a workspace that ended: where the content of a volume lies, and where it was mounted."""
    final: bool = False
    known: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    bounds: Bounds = Bounds()

    def dumps(self) -> bytes:
        """As `loads` reads it, in ASCII."""
        return json.dumps(asdict(self)).encode("ascii")

    @classmethod
    def loads(cls, data: bytes) -> Request:
        """From what `dumps` gave. Raises ValueError, KeyError, TypeError for anything else."""
        raw: dict[str, Any] = json.loads(data)
        lists = {name: tuple(raw[name]) for name in ("lower", "known", "cuts", "repositories")}
        mounts = tuple((source, point) for source, point in raw["mounts"])
        return cls(**{**raw, **lists, "mounts": mounts, "bounds": Bounds(**raw["bounds"])})


@dataclass(frozen=True)
class _Directory:
    """A directory on the way down. `image` is what the baseline showed of the image here, `merged` what shines through now."""

    fd: int
    path: str
    image: Stack
    merged: Stack
    depth: int
    device: int | None
    is_git: bool = False

    def path_of(self, name: str) -> str:
        return f"/{name}" if self.path == "/" else f"{self.path}/{name}"


class _Full(Exception):
    """The budget for unknown paths is used up."""


def scan(request: Request, emit: Emit) -> None:
    """Scan once. Raises OSError when the workspace's root cannot be opened; what is met inside becomes records and notes."""
    _Scanner(request, emit).run()


class _Scanner:
    def __init__(self, request: Request, emit: Emit) -> None:
        self._request = request
        self._bounds = request.bounds
        self._send = emit
        self._prefix = "user.overlay." if request.userxattr else "trusted.overlay."
        self._reader = ContentReader(request.bounds, self._prefix, self._note)
        self._nothing = Stack((), self._prefix)
        self._git_before = self._git_now = GitScanner(request.bounds, self._reader, emit, None)
        self._known = frozenset(request.known)
        self._cuts = frozenset(request.cuts)
        self._seen: set[tuple[str, str]] = set()
        self._points: frozenset[str] = frozenset()
        self._fresh = self._images = self._notes = 0

    def run(self) -> None:
        known_read, unread = False, ""
        try:
            if self._request.pid:
                for process in processes.read(self._request.pid, self._request.container, self._note):
                    self._send({"k": "process", **process}, None)
            with ExitStack() as opened:
                roots = tuple(self._roots(opened))
                if self._known:
                    self._walk(roots, _guide(self._request.known))
                known_read = True
                self._repositories_elsewhere()
                self._walk(roots, None)
        except Overtime:
            what = "the rest was not read" if known_read else "paths not reached count as unchanged"
            unread = f"the scan took longer than {self._bounds.seconds:g} s: {what}"
        except _Full:
            unread = f"more than {self._bounds.entries} new paths: the rest was not read"
        if unread:
            self._note(unread)
        self._send({"k": "done", "known_read": known_read, "unread": unread}, None)

    def _note(self, text: str) -> None:
        self._notes += 1
        if self._notes <= 200:
            self._send({"k": "note", "text": text[:1000]}, None)

    # --- the roots: the overlay's upper directory, and each writable mount -------------------------------------

    def _roots(self, opened: ExitStack) -> Iterator[tuple[_Directory, str]]:
        """(directory, name in it to read; empty for the directory itself)."""
        upper = os.open(self._request.upper, LIST)
        opened.callback(os.close, upper)
        image = opened.enter_context(Stack.open(self._request.lower, self._prefix))
        mounts = list(self._mounts(opened))
        places = {directory.path_of(name): directory.fd for directory, name in mounts}
        self._points = frozenset(places)
        self._git_now = GitScanner(self._bounds, self._reader, self._send, Tree(image.below(upper), places))
        for point in sorted(self._points):
            self._send({"k": "mount", "path": point}, None)
        yield _Directory(upper, "/", image, image, 0, None), ""
        yield from mounts

    def _mounts(self, opened: ExitStack) -> Iterator[tuple[_Directory, str]]:
        for point, fd in self._volumes(opened) if not self._request.pid else self._live_mounts(opened):
            yield _Directory(fd, os.path.dirname(point), self._nothing, self._nothing, 0, None), os.path.basename(point)

    def _volumes(self, opened: ExitStack) -> Iterator[tuple[str, int]]:
        for source, point in self._request.mounts:
            try:
                fd = os.open(source, PEEK)
            except OSError as error:
                self._note(f"{point}: volume not read: {error.strerror}")
                continue
            opened.callback(os.close, fd)
            yield point, fd

    def _live_mounts(self, opened: ExitStack) -> Iterator[tuple[str, int]]:
        with open(f"/proc/{self._request.pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts, notes = overlay.writable_mounts(overlay.parse_mountinfo(file.read()))
        for note in notes:
            self._note(note)
        root = os.open(f"/proc/{self._request.pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, root)
        for mount in mounts:
            fd = root
            try:
                for part in mount.point.strip("/").split("/"):
                    fd = os.open(part, PEEK, dir_fd=fd)
                    opened.callback(os.close, fd)
            except OSError as error:
                self._note(f"{mount.point}: mount not read: {error.strerror}")
                continue
            yield mount.point, fd

    def _walk(self, roots: tuple[tuple[_Directory, str], ...], guide: Guide | None) -> None:
        for directory, name in roots:
            if not name:
                self._list(directory, guide)
                continue
            below = guide
            for part in directory.path_of(name).strip("/").split("/"):
                below = below.get(part, {}) if below is not None else None
            self._visit(directory, name, below, os.dup(directory.fd))

    # --- going down --------------------------------------------------------------------------------------------

    def _list(self, directory: _Directory, guide: Guide | None) -> None:
        for name in self._names(directory) if guide is None else sorted(guide):
            path = directory.path_of(name)
            if path in self._points or (directory.is_git and name == "objects"):
                continue
            self._reader.check_time()
            try:
                fd = os.open(name, PEEK, dir_fd=directory.fd)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._note(f"{path}: not read: {error.strerror}")
                continue
            self._visit(directory, name, None if guide is None else guide[name], fd)

    def _names(self, directory: _Directory) -> list[str]:
        names = []
        try:
            with os.scandir(directory.fd) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if len(names) >= self._bounds.names:
                        self._note(f"{directory.path}: more than {self._bounds.names} names; the rest was not read")
                        break
        except OSError as error:
            self._note(f"{directory.path}: not listed: {error.strerror}")
        return sorted(names)

    def _visit(self, parent: _Directory, name: str, guide: Guide | None, fd: int) -> None:
        """Report the path that `fd` names, and what lies below it. Closes `fd`."""
        path = parent.path_of(name)
        with ExitStack() as opened:
            opened.callback(os.close, fd)
            status = os.fstat(fd)
            image_fd, image = (None, self._nothing)
            if path not in self._cuts:
                image_fd, image = opened.enter_context(parent.image.child(name))
            below_fd, merged = self._below(opened, parent.merged, name, fd)
            first = ("now", path) not in self._seen
            self._seen.add(("now", path))
            if first:
                self._report(fd, status, path, below_fd)
                self._compare(fd, status, path, image_fd, image)
            if not stat.S_ISDIR(status.st_mode) or (guide is not None and not guide):
                return
            if parent.device is not None and status.st_dev != parent.device:
                return
            if parent.depth >= self._bounds.depth:
                self._note(f"{path}: deeper than {self._bounds.depth} levels; not read")
                return
            try:
                listing = os.open(".", LIST, dir_fd=fd)
            except OSError as error:
                self._note(f"{path}: not listed: {error.strerror}")
                return
            opened.callback(os.close, listing)
            is_git = self._repository(merged.below(listing), image, path)
            self._list(_Directory(listing, path, image, merged, parent.depth + 1, status.st_dev, is_git), guide)
            if guide is None and overlay.attribute(fd, f"{self._prefix}redirect"):
                self._image_tree(merged, path, "now")

    def _below(self, opened: ExitStack, merged: Stack, name: str, fd: int) -> tuple[int | None, Stack]:
        """What of the lower layers shines through the upper entry `fd`."""
        if overlay.opaque(fd, self._prefix):
            return None, self._nothing
        redirect = overlay.attribute(fd, f"{self._prefix}redirect")
        if redirect is None:
            return opened.enter_context(merged.child(name))
        target = os.fsdecode(redirect)
        if not target.startswith("/"):
            return opened.enter_context(merged.child(target))
        root = opened.enter_context(Stack.open(self._request.lower, self._prefix))
        return opened.enter_context(root.walk(target))

    # --- reporting ---------------------------------------------------------------------------------------------

    def _report(self, fd: int, status: os.stat_result, path: str, below_fd: int | None) -> None:
        if overlay.is_whiteout(status):
            return
        if path not in self._known:
            self._fresh += 1
            if self._fresh > self._bounds.entries:
                raise _Full
        data_fd = None
        if below_fd is not None and overlay.attribute(fd, f"{self._prefix}metacopy") is not None:
            data_fd = below_fd
        entry, content = self._reader.describe(fd, path, data_fd=data_fd)
        self._send({"k": "entry", "view": "now", **entry}, content)

    def _compare(self, fd: int, status: os.stat_result, path: str, image_fd: int | None, image: Stack) -> None:
        """Report what the image held here, where the baseline showed it and the final state may not."""
        hides = not stat.S_ISDIR(status.st_mode) or overlay.opaque(fd, self._prefix)
        if image_fd is None:
            return
        if not self._request.final:
            if hides:
                self._send({"k": "cut", "path": path}, None)
            return
        self._image_entry(image_fd, path, "image")
        if hides:
            self._image_tree(image, path, "image")

    def _image_entry(self, fd: int, path: str, view: str) -> None:
        if (view, path) in self._seen or (view == "image" and path in self._known):
            return
        self._seen.add((view, path))
        self._images += 1
        entry, content = self._reader.describe(fd, path, telling=True)
        self._send({"k": "entry", "view": view, **entry}, content)

    def _image_tree(self, stack: Stack, path: str, view: str, depth: int = 0) -> None:
        """Report all that lies below a directory of the image, as far as the baseline showed it."""
        if not stack or depth > self._bounds.depth:
            return
        is_git = view == "image" and self._repository(self._nothing, stack, path)
        for name in stack.names(self._bounds.image_entries):
            child = f"{path}/{name}"
            if (view == "image" and child in self._cuts) or (is_git and name == "objects"):
                continue
            self._reader.check_time()
            if self._images >= self._bounds.image_entries:
                self._note(f"{path}: of what the image held here, not more than {self._bounds.image_entries} paths are listed")
                return
            with stack.child(name) as (fd, below):
                if fd is not None:
                    self._image_entry(fd, child, view)
                    self._image_tree(below, child, view, depth + 1)

    # --- git ---------------------------------------------------------------------------------------------------

    def _repository(self, merged: Stack, image: Stack, path: str) -> bool:
        """Whether a directory is a git directory, now or in the image. Reports its files when it is met first."""
        now = self._git_now.is_git(merged, path)
        known = self._request.final and path not in self._request.repositories and path not in self._cuts
        before = known and self._git_before.is_git(image, path)
        for present, scanner, stack, view in ((now, self._git_now, merged, "now"), (before, self._git_before, image, "image")):
            if present and (f"{view} git", path) not in self._seen:
                self._seen.add((f"{view} git", path))
                expected = not self._request.final or path in self._request.repositories
                self._note_part(path, scanner.report(stack, path, view, known=expected))
        return now or before or path in self._request.repositories

    def _repositories_elsewhere(self) -> None:
        """Repositories of the baseline whose place now is, or lies behind, a link or a file that names another directory."""
        for path in self._request.repositories:
            if ("now git", path) not in self._seen:
                found, note = self._git_now.report_elsewhere(path)
                if found:
                    self._seen.add(("now git", path))
                self._note_part(path, note)

    def _note_part(self, path: str, note: str | None) -> None:
        if note is not None:
            self._note(note)
            self._send({"k": "part", "path": path}, None)


def _guide(paths: tuple[str, ...]) -> Guide:
    guide: Guide = {}
    for path in paths:
        node = guide
        for part in path.strip("/").split("/"):
            node = node.setdefault(part, {})
    return guide


def main(folder: str) -> None:
    """Entry point inside the helper container: a request in a file of `folder`, records on the standard output."""
    with open(f"{folder}/request.json", "rb") as file:
        request = Request.loads(file.read())
    scan(request, writer(sys.stdout.buffer))
    sys.stdout.buffer.flush()
