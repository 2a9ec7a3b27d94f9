"""What git writes into a commit that it makes from another one (git-cherry-pick, git-revert)."""

from __future__ import annotations

import re

from pytest_saber.model.state import Commit

_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{7,40})", re.MULTILINE)
_PICKED = re.compile(r"^\(cherry picked from commit [0-9a-f]{7,40}\)\n?", re.MULTILINE)


def words(commit: Commit) -> tuple[str, str]:
    """Author and message, which a commit has in common with what it was picked or rebased from."""
    return commit.author, _PICKED.sub("", commit.message).strip()


def reverted(commit: Commit) -> str | None:
    """The beginning of the id of the commit that the message says it reverts."""
    found = _REVERTS.search(commit.message)
    return found[1] if found is not None else None
