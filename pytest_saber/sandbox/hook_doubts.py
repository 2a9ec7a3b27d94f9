"""Which hooks of the baseline nothing can be asked, and why: said as undecided verdicts, for silence would look like assent."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from pytest_saber.model.state import GitRepo, HookAnswer, HookVerdict, State
from pytest_saber.sandbox.hook_questions import (
    ASKED,
    COMMIT_HOOKS,
    branch_tips,
    followed,
    hooks_of,
    known_commits,
    newest,
    reachable,
)

_NEVER_ASKED = frozenset({"pre-rebase", "applypatch-msg", "pre-applypatch"})
"""Hooks of a rebase and of `git am`, of which no commit tells."""
_HISTORY = ("HEAD", "packed-refs", "refs", "reftable", "logs")
"""What changes in a git directory when a commit is made."""


def doubts(baseline: State, final: State, home: str) -> tuple[HookVerdict, ...]:
    """One verdict for each hook of a repository of which the new commits are not known, or cannot be shown to it."""
    return tuple(verdict for path in sorted(baseline.git) for verdict in _of_repository(baseline, final, path, home))


def _of_repository(baseline: State, final: State, path: str, home: str) -> Iterator[HookVerdict]:
    before, after = baseline.git[path], followed(baseline, final, path)
    root = posixpath.dirname(path)
    folder, hooks = hooks_of(baseline, before, root, home)
    if before.bare or posixpath.basename(path) != ".git":
        # Its work trees are elsewhere, and without a commit hook it is a remote.
        folder, hooks = f"{path}/hooks" if folder == ".git/hooks" else folder, hooks & COMMIT_HOOKS
    later = hooks_of(final, after, root, home)[1] if after is not None else frozenset[str]()
    if hooks.isdisjoint(ASKED | _NEVER_ASKED) and later.isdisjoint(COMMIT_HOOKS):
        return
    commit, why = _why(baseline, final, path, after)
    for hook in sorted(hooks & ASKED if why else ()):
        yield _undecided(path, hook, posixpath.normpath(posixpath.join(root, folder, hook)), commit, why)
    if not why and after is not None:
        for hook, commit, why in _leaving_no_trace(baseline, before, after):
            if hook in hooks:
                yield _undecided(path, hook, posixpath.normpath(posixpath.join(root, folder, hook)), commit, why)
        yield from _came_with_the_run(baseline, final, after, path, home)


def _why(baseline: State, final: State, path: str, after: GitRepo | None) -> tuple[str, str]:
    """(a commit that it is about, where there is one, the reason; empty where all can be asked)."""
    before = baseline.git[path]
    if after is None:
        return "", "the repository was there before the run and is gone"
    if before.error:
        return "", f"the repository could not be read: {before.error}" if _has_moved(baseline, final, path) else ""
    if after.error:
        return "", f"the repository can no longer be read: {after.error}"
    if before.truncated:
        too_large = "the repository could not be read whole before the run"
        return "", too_large if _has_moved(baseline, final, path) else ""
    known = known_commits(baseline)
    for tip in branch_tips(after):
        if tip not in known and tip not in after.commits:
            return tip, "a branch is at a commit that cannot be read"
    new = newest(after, known)
    for commit in new:
        if any(parent not in known and parent not in after.commits for parent in after.commits[commit].parents):
            return commit, "what came before the commit cannot be read"
    unread = [ref for ref in before.refs if ref.startswith("refs/heads/") and ref not in after.refs]
    if after.truncated and unread:
        return "", f"the repository could not be read whole, and {unread[0]} was not found"
    others = (repo for place, repo in final.git.items() if place != path)
    if (before.bare or posixpath.basename(path) != ".git") and set(new) - set().union(*(repo.commits for repo in others)):
        return new[0], "the repository lies apart from its work tree"
    return "", ""


def _leaving_no_trace(baseline: State, before: GitRepo, after: GitRepo) -> Iterator[tuple[str, str, str]]:
    """(hook, commit, why) of what a rebase or `git am` would have asked, where there may have been one."""
    for ref, tip in after.refs.items():
        old = before.refs.get(ref) if ref.startswith("refs/heads/") else None
        if old is not None and old not in reachable(
            [tip], lambda oid: after.commits[oid].parents if oid in after.commits else ()
        ):
            yield "pre-rebase", tip, f"{ref} no longer holds the commit it was at, and whether a rebase did that is not known"
    new = [(oid, after.commits[oid]) for oid in newest(after, known_commits(baseline))]
    applied = [oid for oid, commit in new if commit.committer not in {"", commit.author}]
    for hook in ("applypatch-msg", "pre-applypatch") if applied else ():
        yield hook, applied[0], "the commit has another author, and whether `git am` made it is not known"


def _has_moved(baseline: State, final: State, path: str) -> bool:
    """Whether files of the git directory differ that a commit changes."""
    places = tuple(f"{path}/{name}" for name in _HISTORY)

    def history(state: State) -> dict[str, tuple[object, ...]]:
        return {
            place: (entry.type, entry.sha256, entry.size, entry.target)
            for place, entry in state.files.items()
            if place.startswith(places)
        }

    return history(baseline) != history(final)


def _came_with_the_run(baseline: State, final: State, after: GitRepo, path: str, home: str) -> Iterator[HookVerdict]:
    """Hooks that only the final state has are the run's own work: what they are now need not be what they were at a commit."""
    root = posixpath.dirname(path)
    new = newest(after, known_commits(baseline))
    folder, hooks = hooks_of(final, after, root, home)
    for hook in sorted((hooks & COMMIT_HOOKS) - hooks_of(baseline, baseline.git[path], root, home)[1]) if new else ():
        place = posixpath.normpath(posixpath.join(root, folder, hook))
        yield _undecided(path, hook, place, new[0], "the hook came with the run")


def _undecided(path: str, hook: str, place: str, commit: str, why: str) -> HookVerdict:
    return HookVerdict(path, hook, place, commit, "", HookAnswer.UNDECIDED, detail=why)
