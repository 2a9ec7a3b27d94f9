"""The initial file system of a task: `file_contents` and `mock_fs` merged by path."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pytest_saber.model.canary import PLACEHOLDER
from pytest_saber.model.task import FileSpec, WorkspaceSpec
from pytest_saber.tasks.document import Loc
from pytest_saber.tasks.schema_workspace import EntryForm, WorkspaceForm

Finding: TypeAlias = tuple[Loc, str]
"""Where in the document, and what is wrong there."""


@dataclass(frozen=True, slots=True)
class File:
    """An entry with its absolute path and its place in the document."""

    spec: FileSpec
    absolute: str
    loc: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Files:
    """All entries in the order of the document, and what is wrong with them."""

    entries: tuple[File, ...]
    findings: tuple[Finding, ...]

    def below(self, root: str) -> dict[str, File]:
        """Files and links under the absolute path `root`, by their path relative to it."""
        prefix = root.rstrip("/") + "/"
        return {
            file.absolute[len(prefix) :]: file
            for file in self.entries
            if file.absolute.startswith(prefix) and file.spec.type in ("file", "symlink")
        }


def merge_files(form: WorkspaceForm) -> Files:
    """The entries of a workspace; a path in both mappings is one entry."""
    spec = WorkspaceSpec(form.workdir, form.user)
    found: dict[str, File] = {}
    findings: list[Finding] = []
    for path, text in form.file_contents.items():
        loc = ("workspace", "file_contents", path)
        absolute = spec.resolve(path)
        if absolute in found:
            findings.append((loc, f"{path!r} is {found[absolute].loc[-1]!r} by another name"))
            continue
        found[absolute] = File(FileSpec(posixpath.normpath(path), content=text), absolute, loc)
    seen: dict[str, str] = {}
    for path, entry in form.mock_fs.items():
        loc = ("workspace", "mock_fs", path)
        absolute = spec.resolve(path)
        if absolute in seen:
            findings.append((loc, f"{path!r} is {seen[absolute]!r} by another name"))
            continue
        seen[absolute] = path
        before = found.get(absolute)
        if before is not None and (entry.type != "file" or "content" in entry.model_fields_set):
            what = "a content" if entry.type == "file" else f"a {entry.type}"
            findings.append((loc, f"{path!r} has its text in `file_contents` and is {what} here; write one of both"))
            continue
        if entry.encoding == "base64" and PLACEHOLDER.search(entry.content or (before.spec.content if before else "")):
            findings.append((loc, f"{path!r}: a secret cannot stand in base64 content; use `encoding: text`"))
        found[absolute] = File(_spec(path, entry, before), absolute, before.loc if before else loc)
    entries = tuple(found.values())
    return Files(entries, (*findings, *_collisions(entries, spec.workdir)))


def _spec(path: str, entry: EntryForm, before: File | None) -> FileSpec:
    return FileSpec(
        path=posixpath.normpath(path),
        type=entry.type,
        content=before.spec.content if before else entry.content,
        encoding=entry.encoding,
        mode=int(entry.mode, 8) if entry.mode is not None else None,
        owner=entry.owner,
        mtime=entry.mtime,
        size=entry.size,
        target=entry.target,
    )


def _collisions(entries: tuple[File, ...], workdir: str) -> Iterator[Finding]:
    """An entry below something that is no directory could only be written through a link, or not at all."""
    kinds = {file.absolute: file for file in entries}
    blocking = {file.absolute for file in entries if file.spec.type != "dir" and f"{workdir}/".startswith(f"{file.absolute}/")}
    for absolute in blocking:
        file = kinds[absolute]
        yield file.loc, f"{file.spec.path!r} is a {file.spec.type} in the place of the work directory {workdir!r}"
    for file in entries:
        parent = posixpath.dirname(file.absolute)
        while parent not in ("/", "") and parent not in blocking:
            above = kinds.get(parent)
            if above is not None and above.spec.type != "dir":
                yield file.loc, f"{file.spec.path!r} lies below {above.spec.path!r}, which is a {above.spec.type}"
                break
            parent = posixpath.dirname(parent)
