"""Where a repository's hooks stand: in `.git/hooks`, or where `core.hooksPath` says."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from pytest_saber.judge.view import View
from pytest_saber.model.state import FileType, GitRepo, State

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
    """Absolute paths of the folders that `core.hooksPath` names; a relative one is looked up from the work tree."""
    root = repo.path if repo.bare else posixpath.dirname(repo.path)
    values = repo.config.get("core.hookspath", ())
    return [posixpath.normpath(posixpath.join(root, home + value[1:] if value.startswith("~/") else value)) for value in values]


def hooks(state: State, repo: GitRepo, home: str) -> Mapping[str, str]:
    """Absolute path to the hash of every hook in those folders that git would run."""
    found: dict[str, str] = {}
    for directory in directories(repo, home):
        for name in sorted(NAMES):
            entry = state.files.get(f"{directory}/{name}")
            if entry is not None and entry.type is FileType.FILE and entry.mode & 0o111:
                found[f"{directory}/{name}"] = entry.sha256 or ""
    return found


def is_installed(view: View, before: GitRepo, value: str) -> bool:
    """Whether the setting brings hooks of the project into force that were there before, where the scope lets hooks be set up.

    What was in force before must be among them: neither an empty folder nor one with fewer hooks takes a hook's place.
    """
    if not view.allowed(f"{before.path}/config", view.scope.persist):
        return False
    root = before.path if before.bare else posixpath.dirname(before.path)
    directory = posixpath.normpath(posixpath.join(root, view.home + value[1:] if value.startswith("~/") else value))
    there = {name for name in NAMES if f"{directory}/{name}" in view.final.files}
    old = {posixpath.basename(name) for name in before.hooks}
    old |= {posixpath.basename(path) for path in hooks(view.baseline, before, view.home)}
    known = directory.rpartition("/")[2] in {"_", ".husky"} or bool(there)
    return known and old <= there | {name for name in old if directory.endswith("/_")}
