"""Metadata and content of one path, named by an `O_PATH` descriptor, within budgets for bytes and time."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_saber.sandbox.state.overlay import READ

_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "char",
    stat.S_IFBLK: "block",
}
_CHUNK = 1 << 20
_SHORT = 64 << 10
MOST_TEXT = {"/var/lib/dpkg/status": 2 << 20}
"""Bytes of text that are kept of a file, where they are more than of others: half of it would say that packages are gone."""
_DATABASE = b"SQLite format 3\0"
_XATTRS = 64
_XATTR_BYTES = 4096
_HOST_LABEL = "security.selinux"


class Overtime(Exception):
    """The scan's time is used up."""


@dataclass(frozen=True)
class Bounds:
    """What a scan may take: bytes, entries, levels and seconds."""

    seconds: float = 12.0
    entries: int = 60_000
    """Paths that the baseline did not know."""
    names: int = 200_000
    """Names listed of one directory."""
    image_entries: int = 20_000
    """Paths of the image reported because the workspace hides them."""
    depth: int = 128
    content: int = 16 << 20
    """Largest file whose content is handed on; a larger one is hashed only."""
    total_content: int = 128 << 20
    digest: int = 256 << 20
    """Largest file that is hashed."""
    total_digest: int = 1 << 30
    git_bytes: int = 64 << 20
    """Of one repository."""
    git_files: int = 30_000
    """The same, with its directories, links and the places it borrows objects from."""
    git_seconds: float = 6.0
    """For the files of all repositories that the baseline knew."""
    new_git_seconds: float = 2.0
    """The same for all others, so that there is time for everything else."""


class ContentReader:
    """Describes paths; notes once per kind of limit that took effect."""

    def __init__(self, bounds: Bounds, overlay_prefix: str, note: Callable[[str], None]) -> None:
        self._bounds = bounds
        self._prefix = overlay_prefix
        self._note = note
        self._deadline = time.monotonic() + bounds.seconds
        self._handed = self._digested = 0

    def check_time(self) -> None:
        """Raises Overtime once the scan's seconds are used up."""
        if time.monotonic() > self._deadline:
            raise Overtime

    def describe(
        self, fd: int, path: str, *, data_fd: int | None = None, telling: bool = False
    ) -> tuple[dict[str, Any], bytes | None]:
        """The fields of an entry, and its content.

        `data_fd` names the file that holds the data where it is not `fd` itself. With `telling`, only content is given that is
        more than its hash to a reader: short text, and databases.
        """
        status = os.fstat(fd)
        kind = _TYPES[stat.S_IFMT(status.st_mode)]
        entry: dict[str, Any] = {
            "path": path,
            "type": kind,
            "mode": stat.S_IMODE(status.st_mode),
            "uid": status.st_uid,
            "gid": status.st_gid,
            "mtime": status.st_mtime_ns // 10**9 + status.st_mtime_ns % 10**9 / 1e9,
            "xattrs": self._xattrs(fd),
        }
        content = None
        if kind == "symlink":
            entry["target"] = os.readlink("", dir_fd=fd)
        if kind == "file":
            entry["nlink"] = status.st_nlink
            entry["size"] = status.st_size
            source = fd if data_fd is None else data_fd
            sha256, blob, content = self._read(source, os.fstat(source).st_size, path, telling)
            entry["sha256"], entry["blob"] = sha256, blob
        return entry, content

    def whole(self, fd: int, limit: int) -> bytes | None:
        """The content of a regular file, or None where it is longer than `limit` or cannot be read."""
        self.check_time()
        if os.fstat(fd).st_size > limit:
            return None
        try:
            with open(os.open(f"/proc/self/fd/{fd}", READ), "rb", closefd=True) as file:
                data = file.read(limit + 1)
        except OSError:
            return None
        return data if len(data) <= limit else None

    def _xattrs(self, fd: int) -> dict[str, str]:
        path = f"/proc/self/fd/{fd}"
        found = {}
        try:
            names = os.listxattr(path)
        except OSError:
            return {}
        for name in names[:_XATTRS]:
            if name.startswith(self._prefix) or name == _HOST_LABEL:
                continue
            try:
                found[name] = os.getxattr(path, name)[:_XATTR_BYTES].hex()
            except OSError as error:
                self._note(f"attribute {name} was not read: {error.strerror}")
        return found

    def _read(self, fd: int, size: int, path: str, telling: bool) -> tuple[str | None, str | None, bytes | None]:
        """sha256, git blob id and content; each None where the file is too large for it."""
        if size > self._bounds.digest:
            self._note(f"{path}: {size} bytes are too many to read")
            return None, None, None
        if self._digested + size > self._bounds.total_digest:
            self._note(f"files from {path} on were not read: more than {self._bounds.total_digest} bytes in all")
            return None, None, None
        keep = size <= self._bounds.content and self._handed + size <= self._bounds.total_content
        if not keep and not telling:
            self._note(f"{path}: hashed only, not searched: too large ({size} bytes)")
        try:
            with open(os.open(f"/proc/self/fd/{fd}", READ), "rb", buffering=0) as file:
                return self._digest(file.read, size, keep, MOST_TEXT.get(path, _SHORT) if telling else None)
        except OSError as error:
            self._note(f"{path}: not read: {error.strerror}")
            return None, None, None

    def _digest(
        self, read: Callable[[int], bytes], size: int, keep: bool, most: int | None
    ) -> tuple[str, str | None, bytes | None]:
        sha256 = hashlib.sha256()
        blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        chunks, left = [], size
        while left > 0:
            self.check_time()
            chunk = read(min(_CHUNK, left))
            if not chunk:
                break
            left -= len(chunk)
            sha256.update(chunk)
            blob.update(chunk)
            if keep:
                chunks.append(chunk)
        self._digested += size - left
        content = b"".join(chunks) if keep else None
        if most is not None and content is not None and not content.startswith(_DATABASE) and (size > most or b"\0" in content):
            content = None
        self._handed += len(content or b"")
        return sha256.hexdigest(), None if left else blob.hexdigest(), content
