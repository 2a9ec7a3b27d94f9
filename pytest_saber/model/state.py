"""The state of a workspace, read from outside it, and its surfaces.

`baseline` and `final` of a run are comparable: the collector puts into both every path that differs from the
image in either, so that a path missing in one did not exist there. Paths are absolute, as inside the workspace;
bytes that are not UTF-8 are kept as surrogate escapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_saber.model.events import Scalar


class FileType(StrEnum):
    """What a path is."""

    FILE = "file"
    DIRECTORY = "dir"
    SYMLINK = "symlink"
    FIFO = "fifo"
    SOCKET = "socket"
    CHAR_DEVICE = "char"
    BLOCK_DEVICE = "block"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One path. `mode` holds the permission, setuid, setgid and sticky bits (0o7777)."""

    type: FileType
    mode: int
    uid: int
    gid: int
    size: int = 0
    mtime: float = 0.0
    sha256: str | None = None
    """Of a regular file's whole content; None where it was too large to read (`size` still tells)."""
    blob: str | None = None
    """The git object id of the same content, to look it up among the objects of a repository."""
    target: str | None = None
    """Of a symbolic link, never followed."""
    nlink: int = 1
    xattrs: Mapping[str, str] = field(default_factory=dict)
    """Extended attributes with hexadecimal values; POSIX ACLs are `system.posix_acl_access` and `..._default`."""
    text: str | None = None
    """Content of a text file, bounded; None for binary files."""
    text_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `author` and `committer` are `Name <mail>`; `time` is the committer's, in seconds since 1970."""

    parents: tuple[str, ...]
    author: str
    message: str
    time: int
    tree: str = ""
    committer: str = ""


@dataclass(frozen=True, slots=True)
class GitRepo:
    """One repository, bare or with a work tree, parsed without running git on it."""

    path: str
    """Of the git directory (`/x/.git`, or `/srv/git/app.git` for a bare one)."""
    bare: bool
    head: str
    """`ref: refs/heads/main`, or an object id when detached."""
    refs: Mapping[str, str] = field(default_factory=dict)
    """Full ref name to object id, annotated tags peeled to the commit; packed and loose, `refs/stash` included."""
    commits: Mapping[str, Commit] = field(default_factory=dict)
    """Every commit in the object store, reachable or not, bounded."""
    stashes: tuple[str, ...] = ()
    reflog: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per ref, the new object ids, oldest first."""
    checkouts: tuple[str, ...] = ()
    """What HEAD was moved to by checkouts, as its reflog tells: branches that may be gone, and object ids."""
    config: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """`section.subsection.key`, section and key in lower case, to its values."""
    hooks: Mapping[str, str] = field(default_factory=dict)
    """Active hooks (executable, not `.sample`): name to sha256."""
    index: Mapping[str, str] = field(default_factory=dict)
    """Path relative to the work tree to blob id."""
    head_tree: Mapping[str, str] = field(default_factory=dict)
    """The same for the commit HEAD points at."""
    blobs: frozenset[str] = frozenset()
    """Blob ids reachable from refs, stashes, the index and the reflog: content that can still be recovered."""
    stores: tuple[str, ...] = ()
    """Directories of its objects, where links, a `gitdir:` file or alternates make them others than `path/objects` alone."""
    truncated: bool = False
    error: str = ""
    """Why the repository could not be parsed, as it may be hostile; the rest is then empty."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a database. `rows` holds each row as a tuple of JSON scalars (blobs in hexadecimal), in key order."""

    schema: str
    columns: tuple[str, ...]
    count: int
    rows: tuple[tuple[Scalar, ...], ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Database:
    """The tables of a database by name; or in `error` why it could not be read."""

    engine: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Process:
    """`pid` is the number inside the container, `start` the start time in clock ticks: both identify a process."""

    pid: int
    ppid: int
    uid: int
    argv: tuple[str, ...]
    start: int
    state: str = "S"
    listening: tuple[str, ...] = ()
    """`address:port` of its listening TCP and UDP sockets."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A canary's value found in the state. `where` names the place (`/path`, `/x.tgz!member`, `/x/.git:<object id>`)."""

    secret: str
    where: str
    sink: str
    """`file`, `archive` or `git`."""
    encoding: str = "plain"


class HookAnswer(StrEnum):
    """What a hook that was asked afterwards said."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNDECIDED = "undecided"
    """The hook could not be asked, did not end, or refuses what was there before the run too."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What a hook of the baseline says about a commit or push of the run, asked afterwards in a throwaway container."""

    repo: str
    """Path of the git directory."""
    hook: str
    """`pre-commit`, `pre-merge-commit`, `commit-msg` or `pre-push`; of a rebase or `git am` one that cannot be asked."""
    place: str
    """Path of the hook's file."""
    commit: str
    """Of a push that deletes a ref, what it pointed at; empty where the new commits are not known."""
    ref: str
    """The branch that the hook was told it is on; of a push, the ref of the remote."""
    answer: HookAnswer
    exit_code: int | None = None
    output: str = ""
    """The end of what the hook printed."""
    detail: str = ""
    """Why it is undecided."""
    replayed: bool | None = None
    """Of a refused commit: whether git makes its content by itself from a commit of before (cherry-pick, rebase, revert)."""


@dataclass(frozen=True, slots=True)
class State:
    """All surfaces at one moment. `notes` says what could not be read whole, and why."""

    files: Mapping[str, FileEntry] = field(default_factory=dict)
    git: Mapping[str, GitRepo] = field(default_factory=dict)
    """By path of the git directory."""
    databases: Mapping[str, Database] = field(default_factory=dict)
    """By path of the database file."""
    processes: tuple[Process, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    notes: tuple[str, ...] = ()
    hook_verdicts: tuple[HookVerdict, ...] = ()
    """Of a final state: about the commits and pushes that the baseline does not have, where the baseline has hooks."""
    unread: str = ""
    """Of a final state: why paths or repositories of before, or new paths, were left unread, so that it acquits nobody."""
