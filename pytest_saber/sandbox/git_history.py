"""Real git history from a `GitSpec`.

The host computes every commit's tree and writes one `git fast-import` stream per repository; a script run as the
workspace's user imports it, moves the refs with the messages and dates that the work would have left in the reflogs, and
sets up remotes, index, stashes and configuration. The work tree is never touched, so it stays what the files say.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pytest_saber.model.globs import covers, matches
from pytest_saber.model.task import CommitSpec, GitSpec
from pytest_saber.sandbox.shell import quote

Fill = Callable[[str], str]

_AUTHOR = re.compile(r"(?P<name>[^<>\n]*[^<>\n ]) *<(?P<email>[^<>\n ]*)>\Z")

_PRELUDE = r"""
set -e
unset "${!GIT_@}"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=4
export GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/dev/null GIT_CONFIG_KEY_1=core.fsmonitor GIT_CONFIG_VALUE_1=false
export GIT_CONFIG_KEY_2=gc.auto GIT_CONFIG_VALUE_2=0 GIT_CONFIG_KEY_3=core.autocrlf GIT_CONFIG_VALUE_3=false
as() {
  export GIT_AUTHOR_NAME=$1 GIT_AUTHOR_EMAIL=$2 GIT_AUTHOR_DATE=$3
  export GIT_COMMITTER_NAME=$1 GIT_COMMITTER_EMAIL=$2 GIT_COMMITTER_DATE=$3
}
load() {
  mapfile -t oid < <(git fast-import --quiet < "$1")
  (( ${#oid[@]} == $2 )) || { echo "git fast-import made ${#oid[@]} of $2 commits" >&2; exit 1; }
}
"""


class HistoryError(Exception):
    """A history that cannot be built. `where` is the place inside the `git` entry, such as `commits[2].files`."""

    def __init__(self, where: str, message: str) -> None:
        self.where = where
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Blob:
    """A path's content in a commit, with git's mode (`100644`, `100755`, `120000`)."""

    mode: str
    content: bytes


@dataclass(frozen=True, slots=True)
class GitPlan:
    """A script to run as the workspace's user, and the files it reads, by name in the directory `scratch`."""

    script: str
    scratch: Mapping[str, bytes]


@dataclass(eq=False, slots=True)
class _Commit:
    spec: CommitSpec
    where: str
    branch: str
    parents: tuple[_Commit, ...]
    tree: dict[str, Blob]
    who: tuple[str, str, str]
    """Name, address and date in git's raw form."""
    number: int = 0
    starts_branch: bool = False

    @property
    def subject(self) -> str:
        return self.spec.message.partition("\n")[0]


@dataclass(slots=True)
class _History:
    """Commits in order and the branches' tips; `work` is the work tree."""

    work: Mapping[str, Blob]
    fill: Fill
    default: str
    commits: list[_Commit] = field(default_factory=list)
    tips: dict[str, _Commit] = field(default_factory=dict)

    def add(self, specs: Sequence[CommitSpec], where: str, start: str) -> list[_Commit]:
        """Append commits, the first of them on the branch `start` unless it says otherwise."""
        added: list[_Commit] = []
        branch = start
        for index, spec in enumerate(specs):
            at = f"{where}[{index}]"
            last = self.tips.get(branch)
            branch = spec.branch or branch
            first = self.tips.get(branch, last)
            parents = [] if first is None else [first]
            tree = dict(first.tree) if first else {}
            if spec.merge is not None:
                other = self.tips.get(spec.merge)
                if other is None or first is None:
                    raise HistoryError(
                        f"{at}.merge", f"there is no branch {spec.merge!r} yet; branches are {_names(self.tips)}"
                    )
                _merge(tree, first, other)
                parents.append(other)
            self._change(tree, spec, at)
            commit = _Commit(spec, at, branch, tuple(parents), tree, _who(spec, at), len(self.commits) + 1)
            commit.starts_branch = branch not in self.tips
            self.commits.append(commit)
            added.append(commit)
            self.tips[branch] = commit
        return added

    def _change(self, tree: dict[str, Blob], spec: CommitSpec, at: str) -> None:
        for index, glob in enumerate(spec.files):
            found = select(self.work, glob)
            if not found:
                raise HistoryError(f"{at}.files[{index}]", f"{glob!r} matches no file of the repository's work tree")
            tree.update({path: self.work[path] for path in found})
        for path, text in spec.write.items():
            tree[_inside(path, f"{at}.write")] = self.written(path, text, tree)
        for index, glob in enumerate(spec.delete):
            found = select(tree, glob)
            if not found:
                raise HistoryError(f"{at}.delete[{index}]", f"{glob!r} matches no path of the commit before")
            for path in found:
                del tree[path]

    def written(self, path: str, text: str, tree: Mapping[str, Blob]) -> Blob:
        """Content given as text, with the mode that the path has elsewhere."""
        model = tree.get(path) or self.work.get(path)
        mode = model.mode if model and model.mode != "120000" else "100755" if text.startswith("#!") else "100644"
        return Blob(mode, self.fill(text).encode("utf-8", errors="surrogateescape"))


def select(paths: Iterable[str], glob: str) -> list[str]:
    """The paths that a glob names: by itself, or as the directory they are in."""
    glob = posixpath.normpath(glob)
    if glob == ".":
        return sorted(paths)
    return sorted(path for path in paths if matches(glob, path) or covers(f"{glob}/**", path))


def plan(
    spec: GitSpec, *, repo: str, remotes: Sequence[str], work: Mapping[str, Blob], fill: Fill, scratch: str, prefix: str
) -> GitPlan:
    """The plan for one repository.

    `repo` and `remotes` (one for each of `spec.remotes`) are absolute directories that exist and belong to the user; `work`
    holds the work tree by path inside it; `scratch` is where the plan's files will be, their names begin with `prefix`.
    Raises HistoryError.
    """
    history = _History(work, fill, spec.default_branch)
    own = history.add(spec.commits, "commits", spec.default_branch)
    checkout = spec.checkout or spec.default_branch
    if own and checkout not in history.tips:
        raise HistoryError("checkout", f"there is no branch {checkout!r}; branches are {_names(history.tips)}")
    head = history.tips.get(checkout)
    files = {f"{prefix}.import": _stream(own)}
    lines = [
        _PRELUDE,
        f"cd {quote(repo)}",
        f"git init -q --template= -b {quote(spec.default_branch)} . && mkdir -p .git/hooks .git/info",
    ]
    if own:
        lines += [
            f"load {quote(f'{scratch}/{prefix}.import')} {len(own)}",
            *_moves(own, spec.default_branch),
            _switch(own, checkout),
        ]
        lines.append("git read-tree HEAD")
    for index, (remote, path) in enumerate(zip(spec.remotes, remotes, strict=True)):
        where = f"remotes[{index}]"
        lines += _remote(spec, index, path, history.tips)
        if remote.commits:
            name = f"{prefix}.remote{index}"
            theirs = _History(work, fill, spec.default_branch, list(own), dict(history.tips))
            added = theirs.add(remote.commits, f"{where}.commits", spec.default_branch)
            files[name] = _stream(added, existing=history.tips)
            lines.append(f"git -C {quote(path)} fast-import --quiet < {quote(f'{scratch}/{name}')} > /dev/null")
    lines += _stashes(spec, history, head, files, scratch, prefix)
    if staged := sorted({path for glob in spec.staged for path in _staged(glob, work, head)}):
        lines.append("git update-index --add --remove -- " + " ".join(map(quote, staged)))
    lines.append("git update-index -q --refresh || :")
    lines += [f"git config {quote(key)} {quote(fill(value))}" for key, value in spec.config.items()]
    return GitPlan("\n".join(line for line in lines if line), files)


def _moves(commits: Sequence[_Commit], current: str) -> list[str]:
    """One ref update for each commit, as the work would have made it; `oid` holds the commits' ids."""
    lines: list[str] = []
    for commit in commits:
        oid = f'"${{oid[{commit.number - 1}]}}"'
        lines.append("as " + " ".join(map(quote, commit.who)))
        if commit.branch != current:
            ref = f"refs/heads/{commit.branch}"
            if commit.starts_branch and commit.parents:
                start = f'"${{oid[{commit.parents[0].number - 1}]}}"'
                lines.append(f"git update-ref -m 'branch: Created from HEAD' {quote(ref)} {start}")
            lines.append(_checkout(current, commit.branch))
            current = commit.branch
        if commit.spec.merge is not None:
            message = f"merge {commit.spec.merge}: Merge made by the 'ort' strategy."
        else:
            message = f"commit{'' if commit.parents else ' (initial)'}: {commit.subject}"
        lines.append(f"git update-ref -m {quote(message)} HEAD {oid}")
        if commit.spec.tag is not None:
            lines.append(f"git update-ref {quote(f'refs/tags/{commit.spec.tag}')} {oid}")
    return lines


def _switch(commits: Sequence[_Commit], checkout: str) -> str:
    return "" if commits[-1].branch == checkout else _checkout(commits[-1].branch, checkout)


def _checkout(old: str, new: str) -> str:
    return f"git symbolic-ref -m {quote(f'checkout: moving from {old} to {new}')} HEAD {quote(f'refs/heads/{new}')}"


def _remote(spec: GitSpec, index: int, path: str, tips: Mapping[str, Any]) -> list[str]:
    remote = spec.remotes[index]
    name = remote.name
    lines = [
        f"git init -q --bare --template= -b {quote(spec.default_branch)} {quote(path)}",
        f"mkdir -p {quote(path)}/hooks {quote(path)}/info",
        f"git config {quote(f'remote.{name}.url')} {quote(path)}",
        f"git config {quote(f'remote.{name}.fetch')} {quote(f'+refs/heads/*:refs/remotes/{name}/*')}",
    ]
    pushed: list[str] = []
    for number, entry in enumerate(remote.push):
        source, colon, target = entry.partition(":")
        if not colon and entry not in tips and entry not in {commit.tag for commit in spec.commits}:
            raise HistoryError(f"remotes[{index}].push[{number}]", f"there is no branch {entry!r}; branches are {_names(tips)}")
        pushed.append(f"{source}:{target if target.startswith('refs/') else f'refs/heads/{target}'}" if colon else entry)
        if colon or entry in tips:
            branch = target.removeprefix("refs/heads/") if colon else entry
            lines.append(f"git config {quote(f'branch.{branch}.remote')} {quote(name)}")
            lines.append(f"git config {quote(f'branch.{branch}.merge')} {quote(f'refs/heads/{branch}')}")
    if pushed and spec.commits:
        receive = quote("git -c core.hooksPath=/dev/null -c receive.autogc=false receive-pack")
        lines.append(f"git push -q --receive-pack={receive} {quote(name)} {' '.join(map(quote, pushed))}")
    return lines


def _stashes(
    spec: GitSpec, history: _History, head: _Commit | None, files: dict[str, bytes], scratch: str, prefix: str
) -> list[str]:
    if not spec.stashes:
        return []
    if head is None:
        raise HistoryError("stashes", "a stash needs a commit to stand on")
    lines: list[str] = []
    for index, stash in enumerate(spec.stashes):
        lines.append("export GIT_INDEX_FILE=$PWD/.git/index.stash; git read-tree HEAD")
        for number, (given, text) in enumerate(stash.write.items()):
            path = _inside(given, f"stashes[{index}].write")
            blob = history.written(path, text, head.tree)
            name = f"{prefix}.stash{index}.{number}"
            files[name] = blob.content
            written = f'"$(git hash-object -w --no-filters {quote(f"{scratch}/{name}")})"'
            lines.append(
                f"git update-index --add --cacheinfo {blob.mode},{written},{quote(_inside(path, f'stashes[{index}].write'))}"
            )
        message = f"On {head.branch}: {stash.message}"
        lines += [
            "tree=$(git write-tree); rm -f .git/index.stash; unset GIT_INDEX_FILE",
            "as " + " ".join(map(quote, history.commits[-1].who)),
            f"index=$(git commit-tree 'HEAD^{{tree}}' -p HEAD -m {quote(f'index on {head.branch}: ')}"
            f'"$(git rev-parse --short HEAD) "{quote(head.subject)})',
            f'git stash store -q -m {quote(message)} "$(git commit-tree "$tree" -p HEAD -p "$index" -m {quote(message)})"',
        ]
    return lines


def _staged(glob: str, work: Mapping[str, Blob], head: _Commit | None) -> list[str]:
    found = select({**work, **(head.tree if head else {})}, glob)
    if not found:
        raise HistoryError("staged", f"{glob!r} matches no path of the work tree or of the last commit")
    return found


def _stream(commits: Sequence[_Commit], existing: Mapping[str, _Commit] | None = None) -> bytes:
    """A fast-import stream. Without `existing` all commits go to one temporary ref, removed at the end, and their ids are
    printed; with it they go to their branches, and parents that are not in the stream are tips of `existing`."""
    temporary = "refs/import/commits"
    out: list[bytes] = []
    here = {id(commit) for commit in commits}
    names = {id(tip): branch for branch, tip in (existing or {}).items()}

    def name(commit: _Commit) -> str:
        return f":{commit.number}" if id(commit) in here else f"refs/heads/{names[id(commit)]}^0"

    for commit in commits:
        ref = temporary if existing is None else f"refs/heads/{commit.branch}"
        who = "{} <{}> {}".format(*commit.who)
        out.append(f"commit {ref}\nmark :{commit.number}\nauthor {who}\ncommitter {who}\n".encode())
        out.append(_data(commit.spec.message.rstrip("\n").encode("utf-8", errors="replace") + b"\n"))
        before: Mapping[str, Blob] = {}
        if commit.parents:
            out.append(f"from {name(commit.parents[0])}\n".encode())
            before = commit.parents[0].tree
        out += [f"merge {name(parent)}\n".encode() for parent in commit.parents[1:]]
        for path in sorted(before.keys() - commit.tree.keys()):
            out.append(b"D " + _path(path) + b"\n")
        for path, blob in sorted(commit.tree.items()):
            if before.get(path) != blob:
                out.append(f"M {blob.mode} inline ".encode() + _path(path) + b"\n" + _data(blob.content))
        out.append(b"\n")
        if existing is None:
            out.append(f"get-mark :{commit.number}\n".encode())
    if existing is None and commits:
        out.append(f"reset {temporary}\nfrom {'0' * 40}\n\n".encode())
    return b"".join(out)


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _path(path: str) -> bytes:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode("utf-8", errors="surrogateescape")


def _inside(path: str, where: str) -> str:
    normal = posixpath.normpath(path)
    if normal.startswith(("/", "../")) or normal in {"..", "."} or normal.split("/")[0] == ".git":
        raise HistoryError(where, f"{path!r} is no path inside the repository")
    return normal


def _merge(tree: dict[str, Blob], ours: _Commit, theirs: _Commit) -> None:
    """Take from `theirs` every path that changed there since both parted; the task's own changes come after."""
    ancestors = _ancestors(ours)
    shared = [commit for commit in _ancestors(theirs).values() if id(commit) in ancestors]
    base = max(shared, key=lambda commit: commit.number).tree if shared else {}
    for path in base.keys() | theirs.tree.keys():
        if base.get(path) != theirs.tree.get(path):
            if path in theirs.tree:
                tree[path] = theirs.tree[path]
            else:
                tree.pop(path, None)


def _ancestors(commit: _Commit) -> dict[int, _Commit]:
    found: dict[int, _Commit] = {}
    todo = [commit]
    while todo:
        commit = todo.pop()
        if id(commit) not in found:
            found[id(commit)] = commit
            todo.extend(commit.parents)
    return found


def _who(spec: CommitSpec, where: str) -> tuple[str, str, str]:
    author = _AUTHOR.match(spec.author)
    if author is None:
        raise HistoryError(f"{where}.author", f"{spec.author!r} is not of the form `Name <address>`")
    try:
        date = datetime.fromisoformat(spec.date)
    except ValueError:
        raise HistoryError(f"{where}.date", f"{spec.date!r} is no ISO 8601 date such as 2026-03-02T10:00:00Z") from None
    offset = date.utcoffset()
    minutes = int(offset.total_seconds()) // 60 if offset else 0
    stamp = int((date.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()) - minutes * 60  # noqa: DTZ001
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    return author["name"].strip(), author["email"], f"{stamp} {zone}"


def _names(branches: Iterable[str]) -> str:
    return ", ".join(sorted(branches)) or "none"
