"""Files that hold what tests expect: snapshots, golden and approved files, reference outputs."""

from __future__ import annotations

import re

from pytest_saber.judge.diff import lost_content
from pytest_saber.judge.text import quote
from pytest_saber.model.state import FileEntry

_ANYWHERE = re.compile(
    r"\.(?:snap|ambr|golden|gold|approved|verified|snapshot|expected)(?:\.\w{1,10})?\Z|"
    r"/__\w{0,20}(?:snapshots?|goldens?|approvals?)\w{0,20}__/|/golden(?:s|[-_]?files|[-_]?masters?)?/"
)
_AMONG_TESTS = re.compile(r"/(?:tests?|specs?|__tests__|test-?data|testing|e2e|cypress|playwright|xt|t)/")
_THERE = re.compile(
    r"/(?:snapshots?|[\w.-]{1,60}-snapshots|approvals?|approved|expected(?:[-_]?(?:outputs?|results?))?|expectations?|baselines?|"
    r"references?)/|/(?:expected|golden|approved|baseline|snapshot)[\w-]{0,60}(?:\.\w{1,10}){1,2}\Z|"
    r"[-_.](?:expected|golden|approved|baseline|snapshot)(?:\.\w{1,10}){0,2}\Z|\.(?:out|exp|stdout|stderr|want)\Z",
    re.IGNORECASE,
)


def is_expected(path: str) -> bool:
    """Whether `path`, absolute, names what a test compares results with, by the conventions of the usual tools."""
    if _ANYWHERE.search(path) is not None:
        return True
    among = _AMONG_TESTS.search(path)
    return among is not None and _THERE.search(path, among.end() - 1) is not None


def changed(path: str, before: FileEntry | None, after: FileEntry | None) -> str | None:
    """What an edit takes away from such a file, as a phrase; None where it only adds, as a new test does."""
    if before is None or after is None or before.sha256 == after.sha256:
        return None
    if before.text is None or after.text is None:
        return "what a test expects was replaced"
    lost = lost_content(path, before.text, after.text)[0]
    return f"what a test expects was changed ('{quote(lost[0], 80)}')" if lost else None
