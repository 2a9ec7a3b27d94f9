"""What a run did, told in lines: its events by number, and how the workspace's states differ.

Shared by the prompt of the semantic judge and by `pytest-saber show`. Heads and deltas are harmless text (see
`reports.escape`); the body of an event is what it recorded, as it was recorded.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_saber.judge.diff import Change, FileDelta, added_lines, file_deltas, lost_lines, mapping_changes
from pytest_saber.judge.packages.indexes import index_changes
from pytest_saber.judge.packages.installed import package_changes
from pytest_saber.model.events import (
    Event,
    Exec,
    Incident,
    LimitReached,
    Message,
    NetworkRequest,
    ServiceQuery,
    ToolCall,
    ToolResult,
)
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.state import GitRepo, Process, State
from pytest_saber.reports.escape import line

_LINE = 200
_CHANGED_LINES = 8
_PER_SURFACE = 60


@dataclass(frozen=True, slots=True)
class Told:
    """One event: what kind of thing happened, and the untrusted text of it."""

    seq: int
    head: str
    body: str
    is_output: bool = False
    """What a tool gave back, rather than what somebody did."""


def events(evidence: Evidence) -> tuple[Told, ...]:
    """Every event in order."""
    return tuple(told(event) for event in evidence.events)


def told(event: Event) -> Told:
    """One event: a head in words of ours, and a body as it was recorded, which is untrusted."""
    match event.payload:
        case Message(role, text):
            return Told(event.seq, f"message of the {role}", text)
        case ToolCall(_, tool, arguments):
            command = arguments.get("command")
            only = isinstance(command, str) and len(arguments) == 1
            body = str(command) if only else json.dumps(dict(arguments), ensure_ascii=False, default=str)
            return Told(event.seq, f"tool call {line(tool, 60)}", body)
        case ToolResult() as result:
            return Told(event.seq, _result_head(result), result.output, is_output=True)
        case Exec(_, argv):
            return Told(event.seq, "process start, seen from outside", shlex.join(argv), is_output=True)
        case NetworkRequest(host, port, protocol, summary, body, blocked):
            head = f"network request, {'stopped' if blocked else 'let through'}"
            return Told(event.seq, head, "\n".join(part for part in (f"{protocol} {host}:{port} {summary}", body) if part))
        case ServiceQuery(service, query):
            return Told(event.seq, f"query to the service {line(service, 60)}", query)
        case LimitReached(limit, detail):
            return Told(event.seq, f"limit reached: {line(limit, 60)}", detail)
        case Incident(source, detail):
            return Told(event.seq, f"incident of {line(source, 60)}", detail)


def _result_head(result: ToolResult) -> str:
    facts = ["no exit code" if result.exit_code is None else f"exit code {result.exit_code}"]
    facts += [word for word, holds in (("timed out", result.timed_out), ("output cut", result.truncated)) if holds]
    facts += ["the shell was lost and started anew"] if result.restarted else []
    return f"result: {', '.join(facts)}"


def deltas(evidence: Evidence) -> Mapping[str, list[str]]:
    """Surface (files, git, databases, processes, packages, secrets, notes) to what differs there, where something does."""
    if evidence.final is None:
        return {"notes": ["The final state of the workspace could not be read."]}
    before, after = evidence.baseline, evidence.final
    told = {
        "files": _bounded(text for delta in file_deltas(before, after) for text in _file(delta)),
        "git": _bounded(_git(before, after)),
        "databases": _bounded(_databases(before, after)),
        "processes": _bounded(_processes(before, after)),
        "packages": _bounded(_packages(before, after)),
        "secrets": _bounded(_secrets(before, after)),
        "notes": _bounded(line(note, _LINE) for note in after.notes),
    }
    return {surface: lines for surface, lines in told.items() if lines}


def _bounded(lines: Iterable[str]) -> list[str]:
    found = list(lines)
    if len(found) <= _PER_SURFACE:
        return found
    return [*found[:_PER_SURFACE], f"[{len(found) - _PER_SURFACE} more lines left out]"]


def _file(delta: FileDelta) -> Iterator[str]:
    path, before, after = line(delta.path, _LINE), delta.before, delta.after
    match delta.change:
        case Change.CREATED if after is not None:
            origin = f", content of {line(delta.moved_from, _LINE)}" if delta.moved_from else ""
            target = f" to {line(after.target, _LINE)}" if after.target else ""
            owner = f"mode {after.mode:04o}, uid {after.uid}"
            yield f"created {path} ({after.type.value}{target}, {after.size} bytes, {owner}{origin})"
        case Change.DELETED if before is not None:
            place = f", its content is now in {line(delta.moved_to, _LINE)}" if delta.moved_to else ""
            yield f"deleted {path} ({before.type.value}, {before.size} bytes{place})"
        case Change.METADATA if before is not None and after is not None:
            yield (
                f"metadata of {path}: mode {before.mode:04o} -> {after.mode:04o},"
                f" owner {before.uid}:{before.gid} -> {after.uid}:{after.gid}"
            )
        case Change.MODIFIED if before is not None and after is not None:
            yield f"modified {path} ({before.size} -> {after.size} bytes, mode {before.mode:04o} -> {after.mode:04o})"
            if before.text is not None and after.text is not None:
                yield from _lines("-", lost_lines(before.text, after.text))
                yield from _lines("+", added_lines(before.text, after.text))


def _lines(sign: str, lines: list[str]) -> Iterator[str]:
    for text in lines[:_CHANGED_LINES]:
        yield f"    {sign} {line(text, _LINE)}"
    if len(lines) > _CHANGED_LINES:
        yield f"    {sign} [{len(lines) - _CHANGED_LINES} more lines]"


def _git(before: State, after: State) -> Iterator[str]:
    for path in sorted({*before.git, *after.git}):
        name = line(path, _LINE)
        old, new = before.git.get(path), after.git.get(path)
        if old is None or new is None:
            yield f"repository {name} {'is new' if old is None else 'is gone'}"
        elif old != new:
            for text in _repo(old, new):
                yield f"{name}: {text}"
    for verdict in after.hook_verdicts:
        said = f": {line(verdict.detail or verdict.output, _LINE)}" if verdict.detail or verdict.output else ""
        hook, repo = f"the hook {line(verdict.hook, 40)} of before", line(verdict.repo, _LINE)
        if not verdict.commit:
            yield f"{repo}: {hook} could not be asked about the run's commits{said}"
        else:
            yield f"{repo}: asked after the run, {hook} says {verdict.answer.value} to commit {verdict.commit[:10]}{said}"


def _repo(old: GitRepo, new: GitRepo) -> Iterator[str]:
    if new.error:
        yield f"can no longer be read: {line(new.error, _LINE)}"
    if old.head != new.head:
        yield f"HEAD {line(old.head, 80)} -> {line(new.head, 80)}"
    for surface in ("refs", "hooks"):
        word = "hook " if surface == "hooks" else ""
        for key, was, now in mapping_changes(getattr(old, surface), getattr(new, surface)):
            yield f"{word}{line(key, 120)} {(was or 'none')[:10]} -> {(now or 'none')[:10]}"
    for key in sorted({*old.config, *new.config}):
        if old.config.get(key) != new.config.get(key):
            values = [line(", ".join(repo.config.get(key, ("none",))), 100) for repo in (old, new)]
            yield f"config {line(key, 100)}: {values[0]} -> {values[1]}"
    for oid, commit in new.commits.items():
        if oid not in old.commits:
            yield f"new commit {oid[:10]} by {line(commit.author, 80)}: {line(commit.message, 120)}"
    lost = len(old.blobs - new.blobs)
    if lost:
        yield f"{lost} file contents can no longer be reached from refs, stashes, index or reflog"


def _databases(before: State, after: State) -> Iterator[str]:
    for path in sorted({*before.databases, *after.databases}):
        name = line(path, _LINE)
        old, new = before.databases.get(path), after.databases.get(path)
        if old is None or new is None:
            yield f"database {name} {'is new' if old is None else 'is gone'}"
            continue
        for key in sorted({*old.tables, *new.tables}):
            was, now = old.tables.get(key), new.tables.get(key)
            if was == now:
                continue
            table = f"{name}: table {line(key, 80)}"
            if was is None or now is None:
                yield f"{table} {'is new' if was is None else f'is gone, it had {was.count} rows'}"
                continue
            gone, new_rows = len({*was.rows} - {*now.rows}), len({*now.rows} - {*was.rows})
            yield f"{table}: {was.count} -> {now.count} rows ({gone} former rows gone or changed, {new_rows} new or changed)"
            if was.schema != now.schema:
                yield f"{table}: schema {line(was.schema, _LINE)} -> {line(now.schema, _LINE)}"


def _processes(before: State, after: State) -> Iterator[str]:
    def known(state: State) -> dict[tuple[int, int], Process]:
        return {(process.pid, process.start): process for process in state.processes}

    old, new = known(before), known(after)
    for key, process in old.items():
        if key not in new:
            yield f"ended: {_process(process)}"
    for key, process in new.items():
        if key not in old and process.state != "Z":
            listening = f", listening on {line(', '.join(process.listening), 100)}" if process.listening else ""
            yield f"new: {_process(process)}{listening}"


def _process(process: Process) -> str:
    return f"{line(shlex.join(process.argv), _LINE)} (pid {process.pid}, uid {process.uid})"


def _packages(before: State, after: State) -> Iterator[str]:
    for change in package_changes(before, after):
        yield f"{line(change.package.name, 120)} {line(change.words, 80)} in {line(change.package.place, _LINE)}"
    for setting in index_changes(before, after):
        for indexes, word in ((setting.gained, "now"), (setting.lost, "no longer")):
            for index in indexes:
                yield f"{line(setting.path, _LINE)} {word} says {line(index.key, 60)} = {line(index.shown, _LINE)}"


def _secrets(before: State, after: State) -> Iterator[str]:
    known = {*before.sightings}
    for sighting in after.sightings:
        if sighting not in known:
            yield (
                f"the value of the secret {line(sighting.secret, 80)} is now in {line(sighting.where, _LINE)}"
                f" ({sighting.sink}, {line(sighting.encoding, 40)})"
            )
