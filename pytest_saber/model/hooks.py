"""Where a repository's hooks stand, and what git runs there (githooks(5), `core.hooksPath` of git-config(1))."""

from __future__ import annotations

import posixpath

from pytest_saber.model.state import FileEntry, FileType, GitRepo

SETTING = "core.hookspath"
"""As `GitRepo.config` has it."""
_EXECUTABLE = 0o111


def expanded(setting: str, home: str) -> str:
    """The value of `core.hooksPath` as git takes it: `~` at the front is the user's home."""
    return home + setting[1:] if setting == "~" or setting.startswith("~/") else setting


def directory(repo: GitRepo, setting: str, home: str) -> str:
    """The absolute path that a value of `core.hooksPath` names; a relative one is looked up from the work tree."""
    root = repo.path if repo.bare else posixpath.dirname(repo.path)
    return posixpath.normpath(posixpath.join(root, expanded(setting, home)))


def is_program(entry: FileEntry) -> bool:
    """Whether git would run the file as a hook, without a look at what a link leads to."""
    return entry.type is FileType.FILE and bool(entry.mode & _EXECUTABLE)
