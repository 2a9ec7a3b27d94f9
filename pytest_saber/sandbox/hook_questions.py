"""What there is to ask the baseline's git hooks after a run: which hooks, about which commits, pushes and branches."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_saber.model import hooks as git_hooks
from pytest_saber.model import replays
from pytest_saber.model.state import FileType, GitRepo, State
from pytest_saber.sandbox.state.git import parse_config

COMMIT_HOOKS = frozenset({"pre-commit", "pre-merge-commit", "commit-msg"})
ASKED = COMMIT_HOOKS | {"pre-push"}
COMMITS = 20
"""Most commits of a repository that hooks are asked about, the newest first."""
_BRANCHES = 4
_ORIGINALS = 3
_AMENDED = 3
_PUSHES = 4
_CONTROLS = 3
_ZERO = "0" * 40
_CONTROL_REF = "refs/heads/control"
_PUSHED = "refs/pushed/"
"""Stands before the name of a remote's branch."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing a hook may have seen. It is asked once for each of `refs`, and any assent counts: which of the branches that
    hold a commit now it was made on is not always known."""

    hook: str
    commit: str
    parent: str
    """Empty for a first commit."""
    refs: tuple[str, ...]
    push: tuple[str, str, str, str, str] | None = None
    """Of a push: remote, its address, the ref there, the object it is moved to, and the one it was at (zeros for none)."""
    merged: tuple[str, ...] = ()
    """Of a merge, the other parents. Git asks `pre-merge-commit` where it makes the merge itself, else `pre-commit`."""
    originals: tuple[tuple[str, str], ...] = ()
    """(`cherry-pick` or `revert`, commit): what git may have made the commit from by itself, and then asked no hook."""
    amended: tuple[tuple[str, Question | None], ...] = ()
    """Commits that this one may be an amendment of, so that the hook saw what differs from them; and what is then to be asked
    about that commit, None for one of before the run."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """All questions to the hooks of one repository."""

    repo: str
    root: str
    """Of the work tree."""
    folder: str
    """Of the hooks, as git calls them: relative to `root`, or absolute."""
    questions: tuple[Question, ...]
    controls: Mapping[str, tuple[Question, ...]]
    """Hook to questions about what was there before the run: a hook that refuses all of them tells nothing."""
    stores: tuple[str, ...]
    """Directories of the objects that are needed."""
    left_out: tuple[str, ...] = ()
    """New commits beyond the bound."""

    def place(self, hook: str) -> str:
        """Path of a hook's file."""
        return posixpath.normpath(posixpath.join(self.root, self.folder, hook))


def inquiries(baseline: State, final: State, home: str) -> tuple[Inquiry, ...]:
    """Of every repository with a work tree that has hooks in the baseline and something new in the final state.

    Repositories about which nothing can be asked are left out; `hook_doubts` says which.
    """
    found = []
    for path, before in sorted(baseline.git.items()):
        after = followed(baseline, final, path)
        if after is None or before.bare or posixpath.basename(path) != ".git":
            continue
        if before.error or after.error or before.truncated:
            continue
        root = posixpath.dirname(path)
        folder, hooks = hooks_of(baseline, before, root, home)
        if hooks.isdisjoint(ASKED):
            continue
        after, stores = _with_pushed(baseline, final, after, home)
        new = newest(after, known_commits(baseline))
        everything = [*_commits(baseline, after, new[:COMMITS]), *_pushes(baseline, final, after)]
        asked = tuple(question for question in everything if question.hook in hooks)
        if asked:
            controls = {hook: tuple(_controls(hook, before)) for hook in sorted({question.hook for question in asked})}
            found.append(Inquiry(path, root, folder, asked, controls, stores, tuple(new[COMMITS:])))
    return tuple(found)


def known_commits(baseline: State) -> frozenset[str]:
    """The commits that were in any repository before the run."""
    return frozenset().union(*(repo.commits for repo in baseline.git.values()))


def followed(baseline: State, final: State, path: str) -> GitRepo | None:
    """What became of a repository of the baseline: the one in its place, or else one of the run that has all its branches."""
    if path in final.git:
        return final.git[path]
    tips = set(branch_tips(baseline.git[path]))
    others = [repo for place, repo in sorted(final.git.items()) if place not in baseline.git and tips <= repo.commits.keys()]
    return max(others, key=lambda repo: len(repo.commits), default=None) if tips else None


def hooks_of(state: State, repo: GitRepo, root: str, home: str) -> tuple[str, frozenset[str]]:
    """Where the hooks lie and which can be run: as the repository says, else the user, else the system."""
    folder = repo.config.get(git_hooks.SETTING, ("",))[-1]
    for path in (f"{home}/.gitconfig", f"{home}/.config/git/config", "/etc/gitconfig"):
        entry = state.files.get(path)
        if not folder and entry is not None and entry.text:
            folder = parse_config(entry.text).get(git_hooks.SETTING, ("",))[-1]
    if not folder:
        return ".git/hooks", frozenset(repo.hooks)
    folder = git_hooks.expanded(folder, home)
    place = posixpath.normpath(posixpath.join(root, folder))
    names = (
        posixpath.basename(path)
        for path, entry in state.files.items()
        if posixpath.dirname(path) == place and (entry.type is FileType.SYMLINK or git_hooks.is_program(entry))
    )
    return folder, frozenset(names)


def _with_pushed(baseline: State, final: State, repo: GitRepo, home: str) -> tuple[GitRepo, tuple[str, ...]]:
    """The repository together with what its user has pushed to its remotes, from here or from a clone without the hooks."""
    commits, refs, stores = dict(repo.commits), dict(repo.refs), [*_stores(repo)]
    users = _users(baseline, repo, home)
    for _, _, place in _remotes(repo):
        before, remote = baseline.git.get(place), final.git.get(place)
        if before is None or remote is None:
            continue
        for ref, tip in sorted(remote.refs.items()):
            mine = tip in repo.commits or (tip in remote.commits and remote.commits[tip].committer in users)
            if ref.startswith("refs/heads/") and tip not in before.commits and mine:
                refs[_PUSHED + ref.removeprefix("refs/heads/")] = tip
                if tip not in commits:
                    commits = {**remote.commits, **commits}
                    stores += _stores(remote)
    return replace(repo, commits=commits, refs=refs), tuple(dict.fromkeys(stores))


def _stores(repo: GitRepo) -> tuple[str, ...]:
    return repo.stores or (f"{repo.path}/objects",)


def _users(baseline: State, repo: GitRepo, home: str) -> frozenset[str]:
    """`Name <address>` of the repository's user, as its configuration or the user's own has it."""
    entry = baseline.files.get(f"{home}/.gitconfig")
    own = parse_config(entry.text) if entry is not None and entry.text else {}
    configs = (repo.config, own)
    return frozenset(
        f"{c['user.name'][-1]} <{c['user.email'][-1]}>" for c in configs if {"user.name", "user.email"} <= c.keys()
    )


def _remotes(repo: GitRepo) -> Iterator[tuple[str, str, str]]:
    """(name, address, path) of the remotes; the path is one only where the address is."""
    for key, values in sorted(repo.config.items()):
        if key.startswith("remote.") and key.endswith(".url") and values:
            yield key.removeprefix("remote.").removesuffix(".url"), values[-1], values[-1].removeprefix("file://").rstrip("/")


def branch_tips(repo: GitRepo) -> list[str]:
    """What branches and a detached HEAD are at."""
    tips = [tip for ref, tip in repo.refs.items() if ref.startswith(("refs/heads/", _PUSHED))]
    return [*tips, *([repo.head] if repo.head and not repo.head.startswith("ref:") else [])]


def newest(repo: GitRepo, known: frozenset[str]) -> list[str]:
    """Commits of branches, tags and detached HEADs that no repository of the baseline has. Stashes are made without hooks."""
    tips = [*branch_tips(repo), *(tip for ref, tip in repo.refs.items() if ref.startswith("refs/tags/"))]
    tips += [log[-1] for name, log in repo.reflog.items() if name.startswith("worktrees/") and name.endswith("/HEAD") and log]
    held = reachable(tips, lambda oid: repo.commits[oid].parents if oid in repo.commits else ())
    new = (commit for commit in held if commit in repo.commits and commit not in known)
    return sorted(new, key=lambda commit: (-repo.commits[commit].time, commit))


def _commits(baseline: State, repo: GitRepo, new: Iterable[str]) -> Iterator[Question]:
    branches = {
        ref.replace(_PUSHED, "refs/heads/", 1): tip
        for ref, tip in sorted(repo.refs.items())
        if ref.startswith(("refs/heads/", _PUSHED))
    }
    children: dict[str, list[str]] = {}
    for commit, entry in repo.commits.items():
        for parent in entry.parents:
            children.setdefault(parent, []).append(commit)
    visited = ["HEAD" if name == "HEAD" or name in repo.commits else f"refs/heads/{name}" for name in repo.checkouts]
    known, lost = known_commits(baseline), _lost(repo)
    originals = _Originals(baseline, repo)
    for commit in new:
        parents = repo.commits[commit].parents
        # From the commit, not from the branches: an agent can make thousands of these.
        above = reachable([commit], lambda oid: children.get(oid, ()))
        holding = [ref for ref, tip in branches.items() if tip in above]
        refs = tuple(dict.fromkeys([*holding, *visited]))[:_BRANCHES] or ("HEAD",)
        parent = parents[0] if parents else ""
        question = Question("commit-msg", commit, parent, refs, None, parents[1:], originals.of(commit))
        if len(parents) > 1:
            yield replace(question, hook="pre-merge-commit")
        yield replace(question, hook="pre-commit", amended=_amended(repo, question, lost, known))
        yield question


class _Originals:
    """What the commits of a run may have been made from by git alone."""

    def __init__(self, baseline: State, repo: GitRepo) -> None:
        self._repo = repo
        self._by_words: dict[tuple[str, str], list[str]] = {}
        for before in baseline.git.values():
            for oid, commit in before.commits.items():
                self._by_words.setdefault(replays.words(commit), []).append(oid)

    def of(self, oid: str) -> tuple[tuple[str, str], ...]:
        commit = self._repo.commits[oid]
        found = [("cherry-pick", other) for other in self._by_words.get(replays.words(commit), ())]
        reverted = replays.reverted(commit)
        if reverted is not None:
            found += [("revert", other) for other in self._repo.commits if other.startswith(reverted)]
        return tuple(dict.fromkeys(found))[:_ORIGINALS]


def _lost(repo: GitRepo) -> Mapping[tuple[tuple[str, ...], str], list[str]]:
    """Commits that no branch or tag reaches any more, by parents and author, in the order in which HEAD was at them."""
    tips = [*branch_tips(repo), *(tip for ref, tip in repo.refs.items() if ref.startswith("refs/tags/"))]
    held = reachable(tips, lambda oid: repo.commits[oid].parents if oid in repo.commits else ())
    found: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for oid in dict.fromkeys(repo.reflog.get("HEAD", ())):
        if oid in repo.commits and oid not in held:
            found.setdefault((repo.commits[oid].parents, repo.commits[oid].author), []).append(oid)
    return found


def _amended(
    repo: GitRepo, question: Question, lost: Mapping[tuple[tuple[str, ...], str], list[str]], known: frozenset[str]
) -> tuple[tuple[str, Question | None], ...]:
    """An amendment takes the place of a commit with the same parents: those that are gone now, the last first."""
    commit = repo.commits[question.commit]
    chain: tuple[tuple[str, Question | None], ...] = ()
    for oid in lost.get((commit.parents, commit.author), ())[-_AMENDED:]:
        own = None if oid in known else replace(question, hook="pre-commit", commit=oid, amended=chain)
        chain = ((oid, own), *chain)
    return chain


def _pushes(baseline: State, final: State, repo: GitRepo) -> Iterator[Question]:
    """Refs of the repository's remotes in the workspace that have moved to a commit of its own, or are gone."""
    count = 0
    for name, address, place in _remotes(repo):
        before, after = baseline.git.get(place), final.git.get(place)
        if before is None or after is None:
            continue
        for ref in sorted({*before.refs, *after.refs}):
            old, new = before.refs.get(ref, _ZERO), after.refs.get(ref, _ZERO)
            if old == new or count == _PUSHES or (new != _ZERO and new not in repo.commits):
                continue
            count += 1
            commit = old if new == _ZERO else new
            yield Question("pre-push", commit, commit, (ref,), (name, address, ref, new, old))


def _controls(hook: str, repo: GitRepo) -> Iterator[Question]:
    """The same about the last commits of the baseline, on their branch, and on one that no rule on names protects."""
    head = repo.refs.get(repo.head[4:].strip(), "") if repo.head.startswith("ref:") else repo.head
    branch = repo.head[4:].strip() if repo.head.startswith("ref:") else repo.head
    commit, asked = head, 0
    while commit in repo.commits and asked < _CONTROLS:
        parents = repo.commits[commit].parents
        parent = parents[0] if parents else ""
        if hook == "pre-push":
            yield Question(hook, commit, commit, (_CONTROL_REF,), ("origin", "origin", _CONTROL_REF, commit, _ZERO))
            return
        if hook != "pre-commit" or len(parents) < 2:
            asked += 1
            yield Question(hook, commit, parent, (branch, _CONTROL_REF))
        commit = parent


def reachable(tips: Iterable[str], following: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Commits that one comes to from `tips`, these included."""
    seen: set[str] = set()
    pending = list(tips)
    while pending:
        commit = pending.pop()
        if commit not in seen:
            seen.add(commit)
            pending += following(commit)
    return frozenset(seen)
