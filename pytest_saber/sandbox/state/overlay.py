"""Overlay file systems: the mount table, and the read-only layers below a workspace, read by directory descriptor."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

PEEK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens anything without side effects: a device, FIFO or symbolic link is only named, never opened or followed."""
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

_UNREADABLE = frozenset({"devpts", "mqueue", "hugetlbfs", "proc", "sysfs", "cgroup", "cgroup2", "bpf", "nsfs"})
_COLON = re.compile(r"(?<!\\):")
_OCTAL = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A line of `/proc/PID/mountinfo`."""

    point: str
    fstype: str
    options: tuple[str, ...]
    super_options: tuple[str, ...]


@dataclass(frozen=True)
class Overlay:
    """The directories of a root file system: the writable upper one, and the image's, topmost first."""

    upper: str
    lower: tuple[str, ...]
    userxattr: bool = False


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """The mounts of a mount namespace (proc(5)). Lines that do not have the documented form are skipped."""
    mounts = []
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if not separator or len(fields) < 6 or len(tail) < 3:
            continue
        mounts.append(Mount(_unescape(fields[4]), tail[0], tuple(fields[5].split(",")), tuple(tail[2].split(","))))
    return tuple(mounts)


def root_overlay(mounts: Sequence[Mount]) -> Overlay | None:
    """The overlay mounted at `/`, or None. Relative layer names are relative to the engine's overlay folder."""
    root = next((mount for mount in reversed(mounts) if mount.point == "/"), None)
    if root is None or root.fstype != "overlay":
        return None
    upper, lower = "", []
    for option in root.super_options:
        name, _, value = option.partition("=")
        if name == "upperdir":
            upper = _plain(_unescape(value))
        elif name in {"lowerdir", "lowerdir+"}:
            lower += [_plain(part) for part in _COLON.split(_unescape(value)) if part]
    if not upper:
        return None
    base = os.path.dirname(os.path.dirname(upper))
    layers = tuple(os.path.realpath(os.path.join(base, layer)) for layer in lower)
    return Overlay(upper, layers, "userxattr" in root.super_options)


def writable_mounts(mounts: Sequence[Mount]) -> tuple[tuple[Mount, ...], tuple[str, ...]]:
    """The further mounts that processes of the workspace can write to, and notes on those left out.

    A FUSE server may be frozen with the workspace, so that reading from it would never end.
    """
    chosen: dict[str, Mount] = {}
    notes = []
    for mount in mounts:
        if mount.point == "/" or mount.point.startswith(("/proc/", "/sys/")) or mount.point in {"/proc", "/sys"}:
            continue
        if mount.fstype in _UNREADABLE or "ro" in mount.options:
            continue
        if mount.fstype.startswith("fuse"):
            notes.append(f"{mount.point}: not read, its file system ({mount.fstype}) is served by a process")
            continue
        chosen[mount.point] = mount
    return tuple(chosen.values()), tuple(notes)


def _unescape(text: str) -> str:
    """The kernel writes blanks, commas and backslashes as octal numbers."""
    return os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), os.fsencode(text)))


def _plain(path: str) -> str:
    """A colon within a layer's path has a backslash before it."""
    return path.replace("\\:", ":")


def is_whiteout(status: os.stat_result) -> bool:
    """A 0:0 character device marks a path as removed; the kernel lets nobody inside make one."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


class Stack:
    """One directory of the merged read-only layers: the descriptors of all layers that contribute to it, topmost first."""

    def __init__(self, fds: Sequence[int], prefix: str) -> None:
        self._fds = tuple(fds)
        self._prefix = prefix

    def __bool__(self) -> bool:
        return bool(self._fds)

    @classmethod
    @contextmanager
    def open(cls, layers: Sequence[str], prefix: str) -> Iterator[Stack]:
        """The root of `layers`. `prefix` is that of the overlay's extended attributes. Raises OSError."""
        with ExitStack() as opened:
            fds = []
            for layer in layers:
                fd = os.open(layer, LIST)
                opened.callback(os.close, fd)
                fds.append(fd)
            yield cls(fds, prefix)

    def names(self, limit: int) -> list[str]:
        """Names that exist in any layer, sorted, whiteouts included; at most about `limit`."""
        found: set[str] = set()
        for fd in self._fds:
            with os.scandir(fd) as entries:
                for entry in entries:
                    found.add(entry.name)
                    if len(found) >= limit:
                        break
        return sorted(found)

    def below(self, fd: int) -> Stack:
        """The same directory with one more layer, open as `fd`, on top."""
        return Stack((fd, *self._fds), self._prefix)

    @contextmanager
    def child(self, name: str) -> Iterator[tuple[int | None, Stack]]:
        """A descriptor (O_PATH) of the merged entry `name`, or None, and its stack, which is empty for what is no directory."""
        with ExitStack() as opened:
            top: int | None = None
            directories: list[int] = []
            for layer in self._fds:
                try:
                    fd = os.open(name, PEEK, dir_fd=layer)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                opened.callback(os.close, fd)
                status = os.fstat(fd)
                if is_whiteout(status):
                    break
                if not stat.S_ISDIR(status.st_mode):
                    if top is None:
                        top = fd
                    break
                listing = os.open(".", LIST, dir_fd=fd)
                opened.callback(os.close, listing)
                if top is None:
                    top = fd
                directories.append(listing)
                if opaque(fd, self._prefix):
                    break
            yield top, Stack(directories, self._prefix)

    @contextmanager
    def walk(self, path: str) -> Iterator[tuple[int | None, Stack]]:
        """As `child`, for a path of several components."""
        with ExitStack() as opened:
            top: int | None = None
            stack = self
            for name in path.strip("/").split("/"):
                top, stack = opened.enter_context(stack.child(name))
            yield top, stack


def attribute(fd: int, name: str) -> bytes | None:
    """An extended attribute of what an O_PATH descriptor names, or None."""
    try:
        return os.getxattr(f"/proc/self/fd/{fd}", name)
    except OSError:
        return None


def opaque(fd: int, prefix: str) -> bool:
    """Whether a directory hides what lies below it in lower layers."""
    return attribute(fd, f"{prefix}opaque") in {b"y", b"x"}
