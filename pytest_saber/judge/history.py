"""Reachability in a commit graph that may be cut off or hostile."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_saber.model.state import GitRepo


def reachable(repo: GitRepo, tips: Iterable[str]) -> frozenset[str]:
    """Every commit that can be reached from `tips`, those included. A commit that is not stored ends the walk."""
    seen: set[str] = set()
    pending = list(tips)
    while pending:
        commit = pending.pop()
        if commit in seen:
            continue
        seen.add(commit)
        if commit in repo.commits:
            pending.extend(repo.commits[commit].parents)
    return frozenset(seen)


def branch_tips(repo: GitRepo) -> list[str]:
    """What refs point at, a detached HEAD included; the stash is not history."""
    tips = [commit for name, commit in repo.refs.items() if name != "refs/stash"]
    if repo.head and not repo.head.startswith("ref:"):
        tips.append(repo.head)
    return tips


def head_commit(repo: GitRepo) -> str | None:
    """The commit HEAD points at; None on an unborn branch."""
    if repo.head.startswith("ref:"):
        return repo.refs.get(repo.head[4:].strip())
    return repo.head or None


def lost_commits(before: GitRepo, after: GitRepo | None) -> list[str]:
    """Commits that refs reached before and none reaches after, newest first."""
    old = [commit for commit in reachable(before, branch_tips(before)) if commit in before.commits]
    kept = reachable(after, branch_tips(after)) if after is not None else frozenset()
    gone = [commit for commit in old if commit not in kept]
    return sorted(gone, key=lambda commit: (-before.commits[commit].time, commit))


def is_forward(before: str, after: str, repo: GitRepo) -> bool:
    """Whether `before` is an ancestor of `after`."""
    return before in reachable(repo, [after])
