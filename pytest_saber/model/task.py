"""A task variant: the agent-facing half, the judging half and the reference trajectories.

A `Task` is what one YAML document yields for one variant, with parameters substituted and defaults filled in. Paths
may be relative to `workspace.workdir` or absolute; `resolve` makes them absolute.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_saber.model.checks import Check
from pytest_saber.model.events import JSON
from pytest_saber.model.terms import Category, Cause, Outcome, Scenario


@dataclass(frozen=True, slots=True)
class Source:
    """The public incident a task is made of: its id in the incident table and where it was reported."""

    id: str
    url: str


@dataclass(frozen=True, slots=True)
class TaskTool:
    """A tool of the task's own. `command` runs in the workspace's shell with each argument in an environment variable
    `ARG_<NAME>`, so that no argument is ever spliced into shell text."""

    name: str
    description: str
    parameters: Mapping[str, JSON]
    """JSON Schema of the arguments (type object)."""
    command: str


@dataclass(frozen=True, slots=True)
class AgentBrief:
    """All that the agent under test is told."""

    user_prompt: str
    system_prompt: str = ""
    tools: tuple[str, ...] = ("bash",)
    """Built-in tools: `bash`, `read_file`, `write_file`."""
    task_tools: tuple[TaskTool, ...] = ()
    skills: Mapping[str, str] = field(default_factory=dict)
    """Name to Markdown text, given to the agent beside the system prompt."""


@dataclass(frozen=True, slots=True)
class FileSpec:
    """One entry of the initial file system."""

    path: str
    type: Literal["file", "dir", "symlink", "fifo"] = "file"
    content: str = ""
    """Text with `{{secret:NAME}}` references still in it."""
    encoding: Literal["text", "base64"] = "text"
    mode: int | None = None
    """None: 0644 for files, 0755 for directories, or 0755 for files that begin with `#!`."""
    owner: str | None = None
    """`user` or `user:group`; None: that of the nearest folder above which names one, else the workspace's user inside its
    home and the work directory, else root."""
    mtime: str | None = None
    """ISO 8601, UTC."""
    size: int | None = None
    """Pad the content with zero bytes (sparse) to this size."""
    target: str | None = None


@dataclass(frozen=True, slots=True)
class CommitSpec:
    """One commit. `files` are globs: these paths as they are in the workspace's final files; `write` are older contents."""

    message: str
    author: str
    date: str
    branch: str | None = None
    """None: the branch of the commit before; a new name starts there."""
    files: tuple[str, ...] = ()
    write: Mapping[str, str] = field(default_factory=dict)
    delete: tuple[str, ...] = ()
    merge: str | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class RemoteSpec:
    """A bare repository reachable by path; `commits` are a colleague's, on the remote and not yet fetched."""

    path: str
    name: str = "origin"
    push: tuple[str, ...] = ("main",)
    commits: tuple[CommitSpec, ...] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class StashSpec:
    """A stash entry: `write` maps paths to the contents that were stashed."""

    message: str
    write: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GitSpec:
    """A repository with history. The work tree is what `files` say: a path whose last committed content differs is
    uncommitted work, a path that no commit names is untracked."""

    commits: tuple[CommitSpec, ...]
    path: str = "."
    default_branch: str = "main"
    checkout: str | None = None
    """Branch checked out at the end; None: `default_branch`."""
    remotes: tuple[RemoteSpec, ...] = ()
    staged: tuple[str, ...] = ()
    stashes: tuple[StashSpec, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A shell command run while the workspace is built, before the baseline is taken. `background` leaves it running."""

    run: str
    user: str = "root"
    background: bool = False


@dataclass(frozen=True, slots=True)
class SecretSpec:
    """A canary: a value in the real shape of `kind`, derived per session, task, variant, epoch and name."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class WorkspaceSpec:
    """The project that the agent finds: everything that is put into the container before its baseline is taken."""

    workdir: str
    user: str = "agent"
    image: str | None = None
    """None: the image this package builds."""
    sudo: bool = False
    """Passwordless sudo; the container then keeps the privileges that needs."""
    hostname: str = "devbox"
    files: tuple[FileSpec, ...] = ()
    git: tuple[GitSpec, ...] = ()
    setup: tuple[SetupStep, ...] = ()
    secrets: tuple[SecretSpec, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, path: str) -> str:
        """The absolute, normalised form of a path or glob; `~` is the user's home."""
        if path == "~" or path.startswith("~/"):
            home = "/root" if self.user == "root" else f"/home/{self.user}"
            path = home + path[1:]
        return posixpath.normpath(posixpath.join(self.workdir, path))


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a run. Sizes in MiB, times in seconds, `output_bytes` per tool call."""

    steps: int = 30
    seconds: float = 600.0
    command_seconds: float = 60.0
    tokens: int = 200_000
    output_bytes: int = 32_768
    memory_mb: int = 1024
    cpus: float = 1.0
    pids: int = 256
    disk_mb: int = 512
    file_mb: int = 256


@dataclass(frozen=True, slots=True)
class Scope:
    """What the request allows. Globs on paths, as everywhere; empty means nothing beyond the default.

    Default without any scope: creating paths in the work directory, editing tracked files whose content the
    repository still holds, and anything under /tmp and in caches.
    """

    create: tuple[str, ...] = ()
    modify: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    persist: tuple[str, ...] = ()
    """Persistence places (start-up files, cron, hooks, agent settings) that the request names."""
    controls: tuple[str, ...] = ()
    """Security controls (CI files, test selection, lint and scanner settings) that the request names."""
    rewrite: tuple[str, ...] = ()
    """`REPO:REF` globs whose history may be rewritten or which may be deleted."""
    push: tuple[str, ...] = ()
    """`REPO:REF` globs of remote refs that may be created or moved forward."""
    kill: tuple[str, ...] = ()
    """Regular expressions on command lines of processes that may be ended."""
    hosts: tuple[str, ...] = ()
    """Host globs that may be contacted. Loopback always may."""
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Secret name to places its value may reach: path globs, or a sink name of `secret_seen`."""
    tables: tuple[str, ...] = ()
    """`PATH:TABLE` globs whose rows or schema may be lost."""
    commands: tuple[str, ...] = ()
    """Programs whose use by the agent the request names although a rule would object, such as `git commit --no-verify`."""


@dataclass(frozen=True, slots=True)
class HarmCheck:
    """One harmful result of the task's own. `property` is the safety property it violates."""

    property: str
    when: Check
    message: str
    propagates: bool = False
    kind: Literal["effect", "attempt", "read", "advice"] = "effect"
    line: int = 0


@dataclass(frozen=True, slots=True)
class Judging:
    """The half that never enters the workspace."""

    expected_safe: Check
    """Holds when the request is done: q = complete."""
    harmful: tuple[HarmCheck, ...] = ()
    scope: Scope = Scope()
    safe_path: str | None = None
    """How the request could be met or advanced safely; None: no safe way existed, so that refusing is justified."""
    cause: Cause | None = None
    """The cause of harm where the rules cannot tell it from the trace."""


@dataclass(frozen=True, slots=True)
class Step:
    """One scripted tool call."""

    tool: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A scripted run. `expect` names properties that a harmful one must be found to violate."""

    name: str
    steps: tuple[Step, ...]
    final: str
    expect: tuple[str, ...] = ()
    outcome: Outcome | None = None
    """None: safe_completion, or any harmful outcome, by the list it stands in."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """Scripted trajectories that prove the task: `safe` ones must be judged safe, `harmful` ones harmful."""

    safe: tuple[Trajectory, ...]
    harmful: tuple[Trajectory, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One variant of a task."""

    id: str
    title: str
    scenario: Scenario
    category: Category
    template: str
    """Variants and siblings of one template are not independent; statistics cluster by it."""
    source: Source
    agent: AgentBrief
    workspace: WorkspaceSpec
    judging: Judging
    reference: Reference
    limits: Limits = Limits()
    variant: str = ""
    path: str = ""
    """Of the YAML file, as it was given."""
    line: int = 1
    content_hash: str = ""
    """sha256 over the canonical form of this variant, without `path` and `line`."""

    @property
    def name(self) -> str:
        """`id`, or `id[variant]`."""
        return f"{self.id}[{self.variant}]" if self.variant else self.id
