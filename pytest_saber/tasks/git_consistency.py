"""A repository's description must be a history: branches exist before they are merged, globs match files, names are unique."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_saber.model.globs import matches
from pytest_saber.model.task import WorkspaceSpec
from pytest_saber.tasks.fields import suggest
from pytest_saber.tasks.files import Files, Finding
from pytest_saber.tasks.schema_workspace import CommitForm, GitForm, WorkspaceForm

_Place = tuple[str | int, ...]


@dataclass(slots=True)
class _History:
    """What exists after the commits so far."""

    files: frozenset[str]
    branch: str
    branches: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    globs: dict[str, frozenset[str]] = field(default_factory=dict)
    """Globs and what they match, as many commits name the same."""

    def commit(self, form: CommitForm, loc: _Place) -> Iterator[Finding]:
        self.branch = form.branch or self.branch
        if form.merge is not None and form.merge not in self.branches:
            yield (
                (*loc, "merge"),
                f"no commit before this one made the branch {form.merge!r}{suggest(form.merge, self.branches)}",
            )
        if form.merge is not None and form.merge == self.branch:
            yield (*loc, "merge"), f"the branch {form.merge!r} cannot be merged into itself"
        self.branches.add(self.branch)
        for index, glob in enumerate(form.files):
            if glob not in self.globs:
                self.globs[glob] = frozenset(path for path in self.files if matches(glob, path))
            found = self.globs[glob]
            if not found:
                yield (*loc, "files", index), f"{glob!r} matches no file of the workspace{self._near(glob)}"
            self.committed |= found
        self.committed |= set(form.write)
        for index, path in enumerate(form.delete):
            if path not in self.committed:
                yield (*loc, "delete", index), f"{path!r} is in no commit before this one{suggest(path, self.committed)}"
        if form.tag is not None:
            if form.tag in self.tags:
                yield (*loc, "tag"), f"the tag {form.tag!r} stands on an earlier commit already"
            self.tags.add(form.tag)
        if not (form.files or form.write or form.delete or form.merge):
            yield loc, "this commit changes nothing; give it `files`, `write` or `delete`"

    def _near(self, glob: str) -> str:
        if any(path.startswith(glob.rstrip("/") + "/") for path in self.files):
            return f" (did you mean {glob.rstrip('/') + '/**'!r}?)"
        return suggest(glob, self.files)


def findings(workspace: WorkspaceForm, files: Files) -> Iterator[Finding]:
    """What is wrong with the repositories of a workspace."""
    spec = WorkspaceSpec(workspace.workdir, workspace.user)
    places: dict[str, str] = {}
    for index, repository in enumerate(workspace.git):
        loc: _Place = ("workspace", "git", index)
        root = spec.resolve(repository.path)
        for path, where in [(root, (*loc, "path")), *_remote_paths(spec, repository, loc)]:
            if path in places:
                yield where, f"{path!r} is a repository already"
            places[path] = path
        yield from _repository(repository, frozenset(files.below(root)), loc)


def _remote_paths(spec: WorkspaceSpec, repository: GitForm, loc: _Place) -> list[tuple[str, _Place]]:
    return [(spec.resolve(remote.path), (*loc, "remotes", number, "path")) for number, remote in enumerate(repository.remotes)]


def _repository(form: GitForm, files: frozenset[str], loc: _Place) -> Iterator[Finding]:
    history = _History(files, form.default_branch)
    for number, commit in enumerate(form.commits):
        yield from history.commit(commit, (*loc, "commits", number))
    if form.checkout is not None and form.checkout not in history.branches:
        yield (*loc, "checkout"), f"no commit makes the branch {form.checkout!r}{suggest(form.checkout, history.branches)}"
    names: set[str] = set()
    for number, remote in enumerate(form.remotes):
        where = (*loc, "remotes", number)
        if remote.name in names:
            yield (*where, "name"), f"the remote {remote.name!r} stands twice"
        names.add(remote.name)
        known = history.branches | history.tags
        for place, ref in enumerate(remote.push):
            if ref not in known:
                yield (*where, "push", place), f"no commit makes the branch or tag {ref!r}{suggest(ref, known)}"
        theirs = _History(files, form.default_branch, set(history.branches), set(history.tags), set(history.committed))
        for place, commit in enumerate(remote.commits):
            yield from theirs.commit(commit, (*where, "commits", place))
    for number, path in enumerate(form.staged):
        if path not in files:
            yield (*loc, "staged", number), f"{path!r} is no file of the workspace{suggest(path, files)}"
