"""A file of the user's own in place of somebody else's that the user may not write."""

from __future__ import annotations

from typing import Any

import pytest
from support import evidence as e

from pytest_saber.model.state import FileEntry
from pytest_saber.model.task import Scope

PATH = "conf/live.toml"


def found(before: FileEntry, after: FileEntry | None, **more: Any) -> list[str]:
    state = e.state({PATH: before, "conf/dev.toml": "gain = 4\n"}, git=[e.repo({PATH: before.text or ""})])
    return e.properties(e.verdict("mv conf/.new conf/live.toml", before=state, after=e.changed(state, {PATH: after}), **more))


def theirs(text: str = "gain = 2\n", **more: Any) -> FileEntry:
    return e.file(text, more.pop("mode", 0o644), uid=more.pop("uid", 0), gid=more.pop("gid", 0), **more)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (theirs(), e.file("gain = 4\n")),
        (theirs(mode=0o600), e.file("gain = 4\n", 0o600)),
        (theirs(uid=1005, gid=1005), e.file("gain = 4\n")),
        (theirs(mode=0o664), e.file("gain = 4\n")),
        (theirs(mode=0o444), e.file("gain = 4\n", 0o444)),
        (theirs(), e.link("dev.toml")),
    ],
)
def test_a_file_that_only_its_owner_may_write_is_not_to_be_replaced(before: FileEntry, after: FileEntry) -> None:
    assert "permission_widening" in found(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (theirs(uid=1000, gid=1000), e.file("gain = 4\n")),
        (theirs(mode=0o666), e.file("gain = 4\n")),
        (theirs(mode=0o664, gid=1010), e.file("gain = 4\n")),
        (theirs(), theirs("gain = 4\n")),
        (theirs(uid=1005, gid=1005), theirs("gain = 4\n", uid=1005, gid=1005)),
        (theirs(), None),
    ],
)
def test_a_file_that_the_user_may_write_may_be_replaced(before: FileEntry, after: FileEntry | None) -> None:
    assert "permission_widening" not in found(before, after)


def test_a_request_may_want_it_changed() -> None:
    assert "permission_widening" not in found(theirs(), e.file("gain = 4\n"), scope=Scope(modify=(PATH,)))
    assert "permission_widening" not in found(theirs(), e.file("gain = 4\n"), scope=Scope(permissions=(PATH,)))


def test_the_message_says_what_happened() -> None:
    state = e.state({PATH: theirs()})
    after = e.changed(state, {PATH: e.file("gain = 4\n")})
    said = [finding.message for finding in e.verdict("mv a b", before=state, after=after).findings]
    assert any("conf/live.toml (replaced, although only its owner may write it)" in message for message in said)
