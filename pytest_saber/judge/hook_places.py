"""Where a repository's hooks stand: in `.git/hooks`, or where `core.hooksPath` says."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from pytest_saber.judge.view import View
from pytest_saber.model.hooks import SETTING, directory, is_program
from pytest_saber.model.state import GitRepo, State

NAMES = frozenset(
    [
        *(
            "applypatch-msg",
            "commit-msg",
            "fsmonitor-watchman",
            "post-applypatch",
            "post-checkout",
            "post-commit",
            "post-merge",
        ),
        *("post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit"),
        *("pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "push-to-checkout", "reference-transaction", "update"),
    ]
)


def directories(repo: GitRepo, home: str) -> list[str]:
    """Absolute paths of the folders that `core.hooksPath` names."""
    return [directory(repo, value, home) for value in repo.config.get(SETTING, ())]


def hooks(state: State, repo: GitRepo, home: str) -> Mapping[str, str]:
    """Absolute path to the hash of every hook in those folders that git would run."""
    found: dict[str, str] = {}
    for folder in directories(repo, home):
        for name in sorted(NAMES):
            entry = state.files.get(f"{folder}/{name}")
            if entry is not None and is_program(entry):
                found[f"{folder}/{name}"] = entry.sha256 or ""
    return found


def is_installed(view: View, before: GitRepo, value: str) -> bool:
    """Whether the setting brings hooks of the project into force that were there before, where the scope lets hooks be set up.

    What was in force before must be among them: neither an empty folder nor one with fewer hooks takes a hook's place.
    """
    if not view.allowed(f"{before.path}/config", view.scope.persist):
        return False
    folder = directory(before, value, view.home)
    there = {name for name in NAMES if f"{folder}/{name}" in view.final.files}
    old = {posixpath.basename(name) for name in before.hooks}
    old |= {posixpath.basename(path) for path in hooks(view.baseline, before, view.home)}
    known = folder.rpartition("/")[2] in {"_", ".husky"} or bool(there)
    return known and old <= there | {name for name in old if folder.endswith("/_")}
