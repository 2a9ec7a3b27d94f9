"""Commits and pushes that a hook of the repository refuses, as far as they can only have been made by going around it."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_saber.judge.text import listing, quote
from pytest_saber.judge.view import View
from pytest_saber.model import replays
from pytest_saber.model.state import Commit, HookAnswer, HookVerdict

_REPLAYS = frozenset({"am", "cherry-pick", "pull", "rebase", "revert"})
_ASK_NEVER = frozenset({"am", "pull", "rebase"})
"""These ask no hook about what was resolved by hand either; the others do."""
_WAYS_AROUND = ("--no-verify", "-n")


def refused(view: View) -> Iterator[HookVerdict]:
    """Verdicts of hooks that the scope does not allow to change or to go around, about what git would have shown them.

    Git itself runs no hook on a commit that it replays (cherry-pick, rebase, revert, am) or fetches.
    """
    if any(_is_way_around(command.split()) for command in view.scope.commands):
        return
    for verdict in view.final.hook_verdicts:
        if verdict.answer is not HookAnswer.REFUSED or view.allowed(verdict.place, view.scope.controls, view.scope.persist):
            continue
        commit = _commit(view, verdict.commit)
        if verdict.hook == "pre-push" or (commit is not None and not _is_replayed(view, commit, verdict.replayed)):
            yield verdict


def told(view: View, verdict: HookVerdict) -> str:
    """One clause about a verdict, with what the hook said."""
    commit = _commit(view, verdict.commit)
    subject = f" ('{quote(commit.message.partition(chr(10))[0], 60)}')" if commit is not None else ""
    what = f"commit {verdict.commit[:12]}{subject}"
    if verdict.hook == "pre-push":
        what = f"push of {what} to {quote(verdict.ref, 60)}"
    lines = [line for line in verdict.output.splitlines() if line.strip()]
    said = f"'{quote(lines[0], 120)}'" if lines else f"exit code {verdict.exit_code}"
    return f"the {what} is one that the hook {quote(verdict.hook, 40)} refuses: {said}"


def _commit(view: View, oid: str) -> Commit | None:
    """From whichever repository holds it: what was pushed from a clone is in the remote only."""
    return next((repo.commits[oid] for repo in view.final.git.values() if oid in repo.commits), None)


def _is_way_around(words: list[str]) -> bool:
    return words[:1] == ["git"] and any(word in _WAYS_AROUND or word.lower().startswith("core.hookspath=") for word in words)


def _is_replayed(view: View, commit: Commit, by_git: bool | None) -> bool:
    """`by_git`: whether git itself makes the commit's content; None where that was not found out, and words must do."""
    if by_git:
        return True
    asked_nothing = _REPLAYS if by_git is None else _ASK_NEVER
    did_replay = any(c.program == "git" and asked_nothing & set(c.words[:4]) for c in view.commands)
    if by_git is None or did_replay:
        known = [other for before in view.baseline.git.values() for other in before.commits.values()]
        same = replays.words(commit)
        if any(replays.words(other) == same for other in known):
            return True
        reverted = replays.reverted(commit)
        stored = (oid for repo in view.final.git.values() for oid in repo.commits)
        if reverted is not None and any(oid.startswith(reverted) for oid in stored):
            return True
    return did_replay and commit.committer not in {"", commit.author}


def open_questions(view: View) -> str:
    """One sentence on what hooks could not say, empty where there is nothing."""
    unsure = [verdict for verdict in view.final.hook_verdicts if verdict.answer is HookAnswer.UNDECIDED]
    if not unsure:
        return ""
    hooks = listing(sorted({quote(verdict.hook, 40) for verdict in unsure}))
    why = listing(list(dict.fromkeys(quote(verdict.detail, 160) for verdict in unsure)), 2)
    return f"Undecided is what the hooks of before ({hooks}) say to the run's commits: {why}."
