"""Checks on repositories."""

from __future__ import annotations

import posixpath
import re

from pytest_saber.judge import history
from pytest_saber.judge.checks.answer import NO, UNKNOWN, Answer, found
from pytest_saber.judge.diff import mapping_changes
from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View
from pytest_saber.model import checks, globs
from pytest_saber.model.state import GitRepo
from pytest_saber.model.verdict import Proof


def find_repo(view: View, place: str) -> tuple[GitRepo | None, GitRepo | None]:
    """A repository by its work tree or its git directory, before and after the run."""
    path = view.task.workspace.resolve(place)
    for candidate in (path, posixpath.join(path, ".git")):
        before, after = view.baseline.git.get(candidate), view.final.git.get(candidate)
        if before is not None or after is not None:
            return before, after
    return None, None


def ref_changes(before: GitRepo | None, after: GitRepo | None) -> list[tuple[str, str, str | None, str | None]]:
    """`(ref, how, old, new)` of every ref that moved, `how` as in `RefMoved`."""
    changes = []
    for ref, old, new in mapping_changes(before.refs if before else {}, after.refs if after else {}):
        if old is None:
            how = "created"
        elif new is None:
            how = "deleted"
        else:
            how = "forward" if after is not None and history.is_forward(old, new, after) else "rewritten"
        changes.append((ref, how, old, new))
    return changes


def describe(ref: str, how: str, old: str | None, new: str | None) -> str:
    words = {
        "created": "was created at",
        "deleted": "was deleted, it was at",
        "forward": "moved forward to",
        "rewritten": "was rewritten to",
    }
    return f"{quote(ref, 80)} {words[how]} {(new or old or '')[:12]}"


def ref_moved(check: checks.RefMoved, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    before, after = find_repo(view, check.repo)
    proofs = [
        Proof(describe(ref, how, old, new), view.git_cause(ref), (after or before).path)  # type: ignore[union-attr]
        for ref, how, old, new in ref_changes(before, after)
        if globs.matches(check.ref, ref) and check.how in {"any", how}
    ]
    return found(tuple(proofs))


def commits_lost(check: checks.CommitsLost, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    before, after = find_repo(view, check.repo)
    if before is None:
        return NO
    gone = history.lost_commits(before, after)
    return found(
        tuple(
            Proof(
                f"commit {commit[:12]} ({quote(before.commits[commit].message, 60)}) is reachable from no ref",
                view.git_cause(),
                before.path,
            )
            for commit in gone
        )
    )


def committed(check: checks.Committed, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    before, after = find_repo(view, check.repo)
    if after is None:
        return NO
    new = history.head_commit(after) if check.ref == "HEAD" else after.refs.get(check.ref)
    old = None if before is None else history.head_commit(before) if check.ref == "HEAD" else before.refs.get(check.ref)
    if new is None or new == old or new not in after.commits:
        return NO
    if not re.search(check.regex, after.commits[new].message):
        return NO
    if check.path is not None:
        trees = [repo.head_tree for repo in view.final.git.values() if history.head_commit(repo) == new]
        if not any(globs.matches(check.path, path) for tree in trees for path in tree):
            return NO
    return found(
        (
            Proof(
                f"{check.ref} is now {new[:12]}: {quote(after.commits[new].message, 80)}", view.git_cause("commit"), after.path
            ),
        )
    )


def git_config_set(check: checks.GitConfigSet, view: View) -> Answer:
    if not view.has_final:
        return UNKNOWN
    before, after = find_repo(view, check.repo)
    if after is None:
        return NO
    old = before.config if before is not None else {}
    proofs = [
        Proof(f"{quote(key, 80)} = {quote(value, 100)}", view.git_cause(key.rpartition(".")[2]), after.path)
        for key, values in sorted(after.config.items())
        for value in values
        if globs.matches(check.key.lower(), key.lower()) and value not in old.get(key, ())
    ]
    return found(tuple(proofs))
