"""Builders for states, events, tasks and evidence, as small as a test can be."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_saber.judge import judge
from pytest_saber.model.checks import Check, FinalAnswer
from pytest_saber.model.events import Event, Payload, ToolCall, ToolResult
from pytest_saber.model.evidence import AgentIdentity, Evidence, RunKey, Termination
from pytest_saber.model.state import Commit, Database, FileEntry, FileType, GitRepo, Process, Sighting, State, Table
from pytest_saber.model.task import AgentBrief, HarmCheck, Judging, Reference, Scope, Source, Task, TaskTool, WorkspaceSpec
from pytest_saber.model.terms import Category, Cause, Scenario, TerminationReason
from pytest_saber.model.verdict import Rules, Verdict

WORKDIR = "/home/agent/app"
HOME = "/home/agent"
DONE = FinalAnswer("done")


def blob(text: str) -> str:
    """The git object id of a file's content."""
    data = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def file(text: str = "", mode: int = 0o644, uid: int = 1000, gid: int | None = None, **more: Any) -> FileEntry:
    """A regular text file."""
    data = text.encode("utf-8", "surrogateescape")
    return FileEntry(
        FileType.FILE,
        mode,
        uid,
        uid if gid is None else gid,
        len(data),
        0.0,
        hashlib.sha256(data).hexdigest(),
        blob(text),
        text=text,
        **more,
    )


def directory(mode: int = 0o755, uid: int = 1000, **more: Any) -> FileEntry:
    return FileEntry(FileType.DIRECTORY, mode, uid, uid, **more)


def link(target: str) -> FileEntry:
    return FileEntry(FileType.SYMLINK, 0o777, 1000, 1000, target=target)


def absolute(path: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = HOME + path[1:]
    return posixpath.normpath(posixpath.join(WORKDIR, path))


def files(entries: Mapping[str, FileEntry | str]) -> dict[str, FileEntry]:
    """Paths relative to the work directory (or `~`) to entries; a string is a text file. Parent directories are added."""
    found: dict[str, FileEntry] = {}
    for path, entry in entries.items():
        where = absolute(path)
        found[where] = file(entry) if isinstance(entry, str) else entry
    for where in list(found):
        parent = posixpath.dirname(where)
        while parent not in {"/", "/home"}:
            found.setdefault(parent, directory(uid=1000 if parent.startswith(HOME) else 0))
            parent = posixpath.dirname(parent)
    return found


def commit(message: str = "Start", parents: Sequence[str] = (), author: str = "Ana <ana@acme.dev>", time: int = 1) -> Commit:
    return Commit(tuple(parents), author, message, time)


def repo(
    tracked: Mapping[str, str] | None = None,
    *,
    path: str = f"{WORKDIR}/.git",
    refs: Mapping[str, str] | None = None,
    commits: Mapping[str, Commit] | None = None,
    bare: bool = False,
    blobs: Sequence[str] = (),
    **more: Any,
) -> GitRepo:
    """A repository whose HEAD holds `tracked`: path relative to the work tree to committed text."""
    tree = {name: blob(text) for name, text in (tracked or {}).items()}
    history = dict(commits or {"c1": commit()})
    tips = dict(refs if refs is not None else {"refs/heads/main": next(reversed(history))})
    return GitRepo(
        path=path,
        bare=bare,
        head="ref: refs/heads/main",
        refs=tips,
        commits=history,
        index=more.pop("index", {} if bare else tree),
        head_tree=tree,
        blobs=frozenset({*tree.values(), *blobs}),
        **more,
    )


def state(
    entries: Mapping[str, FileEntry | str] | None = None,
    *,
    git: Sequence[GitRepo] = (),
    databases: Mapping[str, Database] | None = None,
    processes: Sequence[Process] = (),
    sightings: Sequence[Sighting] = (),
) -> State:
    return State(
        files=files(entries or {}),
        git={r.path: r for r in git},
        databases={absolute(path): database for path, database in (databases or {}).items()},
        processes=tuple(processes),
        sightings=tuple(sightings),
    )


def table(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], schema: str | None = None) -> Table:
    text = schema if schema is not None else f"CREATE TABLE t ({columns[0]} INTEGER PRIMARY KEY, {', '.join(columns[1:])})"
    return Table(text, tuple(columns), len(rows), tuple(rows))


def database(**tables: Table) -> Database:
    return Database("sqlite", dict(tables))


def process(pid: int, *argv: str, uid: int = 1000, ppid: int = 40, **more: Any) -> Process:
    """A child of the session's shell, which has number 40."""
    return Process(pid, ppid, uid, tuple(argv), start=pid * 10, **more)


def events(*steps: str | tuple[str, str] | tuple[str, str, int] | Payload) -> tuple[Event, ...]:
    """A string is a shell command that succeeded, `(command, output[, exit code])` says what came back, payloads stand."""
    payloads: list[Payload] = []
    for number, step in enumerate(steps, 1):
        if isinstance(step, str):
            step = (step, "")
        if isinstance(step, tuple):
            payloads.append(ToolCall(f"call-{number}", "bash", {"command": step[0]}))
            payloads.append(ToolResult(f"call-{number}", step[1], step[2] if len(step) > 2 else 0))
        else:
            payloads.append(step)
    return tuple(Event(seq, float(seq), payload) for seq, payload in enumerate(payloads, 1))


def task(
    *,
    scope: Scope | None = None,
    harmful: Sequence[HarmCheck] = (),
    expected_safe: Check = DONE,
    safe_path: str | None = "A safe way.",
    cause: Cause | None = None,
    scenario: Scenario = Scenario.RISKY_SELF_SELECTION,
    category: Category = Category.FILESYSTEM_DESTRUCTION,
    prompt: str = "Please do it.",
    user: str = "agent",
    sudo: bool = False,
    env: Mapping[str, str] | None = None,
    tools: Sequence[TaskTool] = (),
) -> Task:
    return Task(
        id="t",
        title="T",
        scenario=scenario,
        category=category,
        template="t",
        source=Source("I000", "https://example.org"),
        agent=AgentBrief(prompt, task_tools=tuple(tools)),
        workspace=WorkspaceSpec(WORKDIR, user=user, sudo=sudo, env=dict(env or {})),
        judging=Judging(expected_safe, tuple(harmful), scope or Scope(), safe_path, cause),
        reference=Reference((), ()),
    )


def evidence(
    for_task: Task,
    *steps: Any,
    before: State | None = None,
    after: State | None = None,
    answer: str = "All done.",
    reason: TerminationReason = TerminationReason.ANSWERED,
    **more: Any,
) -> Evidence:
    """`after` None: nothing changed."""
    baseline = before or State()
    return Evidence(
        RunKey("s", "t", "", 1),
        for_task,
        AgentIdentity("test", "test/test"),
        events(*steps),
        baseline,
        more.pop("final", after if after is not None else baseline),
        answer,
        Termination(reason),
        **more,
    )


def verdict(*steps: Any, rules: Rules | None = None, for_task: Task | None = None, **more: Any) -> Verdict:
    """Judge a run: keywords of `task` and of `evidence` together."""
    names = {
        "scope",
        "harmful",
        "expected_safe",
        "safe_path",
        "cause",
        "scenario",
        "category",
        "prompt",
        "user",
        "sudo",
        "env",
        "tools",
    }
    chosen = for_task or task(**{name: more.pop(name) for name in list(more) if name in names})
    return judge(chosen, evidence(chosen, *steps, **more), rules or Rules())


def properties(result: Verdict) -> list[str]:
    """The properties found, sorted, each once."""
    return sorted({finding.property for finding in result.findings})


def changed(before: State, entries: Mapping[str, FileEntry | str | None], **surfaces: Any) -> State:
    """`before` with paths replaced, added, or (None) removed, and whole surfaces replaced."""
    kept = dict(before.files)
    for path, entry in entries.items():
        where = absolute(path)
        if entry is None:
            for known in [name for name in kept if name == where or name.startswith(where + "/")]:
                del kept[known]
        else:
            kept.update(files({path: entry}))
    return replace(before, files=kept, **surfaces)
