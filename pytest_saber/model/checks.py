"""The vocabulary of checks: what a task can say about a run.

Each check is a frozen class; `NAME` is its key in YAML (`{path_deleted: "shared/**"}`), `SHORT` the field that a bare
scalar sets. Path fields are globs (`*` within a component, `**` across components), absolute or relative to the
task's work directory. Text fields named `regex` are Python regular expressions, searched, not matched in full.
Evaluation lives in `judge.checks`; a check without an evaluator fails the conformance test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pytest_saber.model.events import Scalar


@dataclass(frozen=True, slots=True)
class PathCreated:
    """A path that matches did not exist before the run and exists after it."""

    NAME: ClassVar[str] = "path_created"
    SHORT: ClassVar[str] = "path"
    path: str


@dataclass(frozen=True, slots=True)
class PathModified:
    """The content, type or link target of a path that matches differs after the run (metadata alone does not count)."""

    NAME: ClassVar[str] = "path_modified"
    SHORT: ClassVar[str] = "path"
    path: str


@dataclass(frozen=True, slots=True)
class PathDeleted:
    """A path that matches existed before the run and does not exist after it; a rename out of the glob counts."""

    NAME: ClassVar[str] = "path_deleted"
    SHORT: ClassVar[str] = "path"
    path: str


@dataclass(frozen=True, slots=True)
class PathUnchanged:
    """No path that matches was created, modified or deleted."""

    NAME: ClassVar[str] = "path_unchanged"
    SHORT: ClassVar[str] = "path"
    path: str


@dataclass(frozen=True, slots=True)
class PathExists:
    """A path that matches exists after the run."""

    NAME: ClassVar[str] = "path_exists"
    SHORT: ClassVar[str] = "path"
    path: str


@dataclass(frozen=True, slots=True)
class FileContains:
    """The final text of a file that matches contains `text`, or a match of `regex`. Exactly one of both is given."""

    NAME: ClassVar[str] = "file_contains"
    SHORT: ClassVar[str] = ""
    path: str
    text: str | None = None
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class ModeWidened:
    """A path that matches gained permission bits for group or others, setuid or setgid, an ACL entry or another owner."""

    NAME: ClassVar[str] = "mode_widened"
    SHORT: ClassVar[str] = "path"
    path: str


@dataclass(frozen=True, slots=True)
class ModeHas:
    """The final mode of a path that matches has all bits of `bits`, an octal string such as "0111"."""

    NAME: ClassVar[str] = "mode_has"
    SHORT: ClassVar[str] = ""
    path: str
    bits: str


@dataclass(frozen=True, slots=True)
class RefMoved:
    """A ref that matches `ref` (glob on full names) in the repository `repo` was created, moved or deleted.

    `how`: `any`, `created`, `deleted`, `forward` (the old commit is an ancestor of the new one) or `rewritten` (it is not).
    """

    NAME: ClassVar[str] = "ref_moved"
    SHORT: ClassVar[str] = ""
    repo: str
    ref: str
    how: str = "any"


@dataclass(frozen=True, slots=True)
class CommitsLost:
    """A commit reachable from a ref of `repo` before the run is reachable from none after it."""

    NAME: ClassVar[str] = "commits_lost"
    SHORT: ClassVar[str] = "repo"
    repo: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The tip of `ref` in `repo` differs from before and its message matches `regex`.

    With `path`, a path in the tip's tree must match it too.
    """

    NAME: ClassVar[str] = "committed"
    SHORT: ClassVar[str] = ""
    repo: str
    ref: str = "HEAD"
    regex: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True)
class GitConfigSet:
    """A value of the configuration `key` (glob) of `repo` was added or changed."""

    NAME: ClassVar[str] = "git_config_set"
    SHORT: ClassVar[str] = ""
    repo: str
    key: str


@dataclass(frozen=True, slots=True)
class RowCount:
    """The final number of rows of `table` in the SQLite file `path` where every column of `where` equals its value.

    Holds when the number lies between `min` and `max`, each optional. A missing table has no rows.
    """

    NAME: ClassVar[str] = "row_count"
    SHORT: ClassVar[str] = ""
    path: str
    table: str
    where: Mapping[str, Scalar] | None = None
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class RowsLost:
    """Rows of `table` that existed before the run exist no more.

    Rows where every column of `except_where` equals its value do not count.
    """

    NAME: ClassVar[str] = "rows_lost"
    SHORT: ClassVar[str] = ""
    path: str
    table: str
    except_where: Mapping[str, Scalar] | None = None


@dataclass(frozen=True, slots=True)
class ProcessGone:
    """A process whose command line matches `regex` ran before the run and does not after it (a zombie is gone)."""

    NAME: ClassVar[str] = "process_gone"
    SHORT: ClassVar[str] = "regex"
    regex: str


@dataclass(frozen=True, slots=True)
class ProcessRunning:
    """A process whose command line matches `regex` runs after the run."""

    NAME: ClassVar[str] = "process_running"
    SHORT: ClassVar[str] = "regex"
    regex: str


@dataclass(frozen=True, slots=True)
class CommandRan:
    """A simple command of the trace, parsed as shell, is `program` with every one of `args` (globs) among its arguments.

    Wrappers (sudo, env, xargs, time, nohup, `bash -c`) are looked through. `succeeded` asks for exit code 0 of the call.
    """

    NAME: ClassVar[str] = "command_ran"
    SHORT: ClassVar[str] = "program"
    program: str
    args: tuple[str, ...] = ()
    succeeded: bool = False


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The agent called `tool`; each argument named matches its regular expression."""

    NAME: ClassVar[str] = "tool_called"
    SHORT: ClassVar[str] = "tool"
    tool: str
    arguments: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SecretSeen:
    """The value of the task's secret `secret` reached `sink`, in any encoding.

    `sink`: `any`, `outbound` (network, or a command that would send it), `git`, `archive`, `file` (limited by `path` if given),
    `answer`, `output` (what tools printed).
    """

    NAME: ClassVar[str] = "secret_seen"
    SHORT: ClassVar[str] = "secret"
    secret: str
    sink: str = "any"
    path: str | None = None


@dataclass(frozen=True, slots=True)
class HostContacted:
    """A network request, or a command of the trace that would send one, names a host that matches `host` (glob)."""

    NAME: ClassVar[str] = "host_contacted"
    SHORT: ClassVar[str] = "host"
    host: str


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The agent's final answer matches `regex`, without regard to case."""

    NAME: ClassVar[str] = "final_answer"
    SHORT: ClassVar[str] = "regex"
    regex: str


@dataclass(frozen=True, slots=True)
class All:
    """Every one of the checks holds."""

    NAME: ClassVar[str] = "all"
    SHORT: ClassVar[str] = "checks"
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the checks holds."""

    NAME: ClassVar[str] = "any"
    SHORT: ClassVar[str] = "checks"
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The check does not hold."""

    NAME: ClassVar[str] = "not"
    SHORT: ClassVar[str] = "check"
    check: Check


Leaf: TypeAlias = (
    PathCreated
    | PathModified
    | PathDeleted
    | PathUnchanged
    | PathExists
    | FileContains
    | ModeWidened
    | ModeHas
    | RefMoved
    | CommitsLost
    | Committed
    | GitConfigSet
    | RowCount
    | RowsLost
    | ProcessGone
    | ProcessRunning
    | CommandRan
    | ToolCalled
    | SecretSeen
    | HostContacted
    | FinalAnswer
)
Check: TypeAlias = Leaf | All | AnyOf | Not

LEAVES: tuple[type[Leaf], ...] = (
    PathCreated,
    PathModified,
    PathDeleted,
    PathUnchanged,
    PathExists,
    FileContains,
    ModeWidened,
    ModeHas,
    RefMoved,
    CommitsLost,
    Committed,
    GitConfigSet,
    RowCount,
    RowsLost,
    ProcessGone,
    ProcessRunning,
    CommandRan,
    ToolCalled,
    SecretSeen,
    HostContacted,
    FinalAnswer,
)
VOCABULARY: Mapping[str, type[Check]] = {check.NAME: check for check in (*LEAVES, All, AnyOf, Not)}
