"""Repositories of which all or part was moved elsewhere, as git would still read them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.state import Box

from pytest_saber.model.state import GitRepo, State
from pytest_saber.sandbox.state.content import Bounds

pytestmark = pytest.mark.docker

ALL = "/home/agent/all"
START = """git init -q -b main .; git config user.name a; git config user.email a@b; mkdir -p .git/hooks
printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo 1 > a; git add a; git commit -qm one"""

PACKED = "git gc -q; mkdir -p $T/o; mv .git/objects/pack $T/o; mkdir .git/objects/pack"
WAYS = {
    "link": ("mv .git $T/g; ln -s $T/g .git", "$T/g/objects"),
    "links": ("mv .git $T/g; ln -s /tmp $T/t; ln -s ../../../../../../$T/./t/../$T/g .git", "$T/g/objects"),
    "file": ("mv .git $T/g; echo gitdir: $T/g > .git", "$T/g/objects"),
    "relative-file": ("mv .git ../$N.git; echo gitdir: ../$N.git > .git", "$A/$N.git/objects"),
    "mount": ("cp -a .git /mnt/fast/g; rm -rf .git; ln -s /mnt/fast/g .git", "/mnt/fast/g/objects"),
    "folder": ("cd ..; mv $N $T/w; ln -s $T/w $N; cd $N", "$T/w/.git/objects"),
    "objects": ("mv .git/objects $T/o; ln -s $T/o .git/objects", "$T/o"),
    "refs": ("mv .git/refs $T/refs; ln -s $T/refs .git/refs", ""),
    "branch": ("mv .git/refs/heads/main $T/m; ln -s $T/m .git/refs/heads/main", ""),
    "hooks": ("mv .git/hooks $T/h; ln -s $T/h .git/hooks", ""),
    "alternates": (
        f"{PACKED}; echo $T/o > .git/objects/info/alternates",
        "$A/$N/.git/objects $T/o",
    ),
    "alternates-of-alternates": (
        f"{PACKED}; mkdir -p $T/p/info; echo ../o > $T/p/info/alternates"
        "; printf '# a comment\\n%s\\n' $T/p > .git/objects/info/alternates",
        "$A/$N/.git/objects $T/p $T/o",
    ),
    "work-tree-of-another": (
        "git clone -q --bare . $T/b; cp -a .git/hooks $T/b; rm -rf .git"
        "; git -C $T/b worktree add -q $T/x -f main; mv $T/x/.git .",
        "$T/b/objects",
    ),
}
"""Name to what moves it, where git goes on working, and the directories of objects afterwards."""


def names(text: str, name: str) -> str:
    return text.replace("$A", ALL).replace("$N", name).replace("$T", f"/tmp/{name}")


def states(box: Box, changes: Mapping[str, str], *, rights: bool | None = None) -> tuple[State, State]:
    """Of one repository for each change, named like it, each with another commit."""
    made = "\n".join(f"mkdir -p {ALL}/{name} /tmp/{name}; cd {ALL}/{name}; {START}" for name in changes)
    box.run(made)
    reader = box.reader(rights=rights, bounds=Bounds(seconds=60, git_seconds=50))
    reader.baseline()
    more = "echo 2 > a; git commit -qam two; git rev-parse HEAD > ../$N.tip"
    box.run("\n".join(names(f"cd $A/$N; {more}; {change}", name) for name, change in changes.items()))
    return reader.final()


def git(state: State, name: str) -> GitRepo | None:
    return state.git.get(f"{ALL}/{name}/.git")


@pytest.mark.parametrize("rights", [None, False], ids=["as-it-may", "helper"])
def test_what_was_moved_elsewhere_is_read_where_it_was(box: Box, rights: bool | None) -> None:
    working = {name: f"{change}; cd $A/$N; git rev-parse --verify -q HEAD" for name, (change, _) in WAYS.items()}
    before, after = states(box, working, rights=rights)
    for name, (_, stores) in WAYS.items():
        old, new = git(before, name), git(after, name)
        assert old is not None, name
        assert new is not None, name
        tip = (after.files[f"{ALL}/{name}.tip"].text or "").strip()
        assert (new.refs["refs/heads/main"], new.commits[tip].message) == (tip, "two\n"), name
        assert (new.head, new.hooks, new.error, new.truncated) == (old.head, old.hooks, "", False), name
        assert new.stores == tuple(names(stores, name).split()), name


NOWHERE = {
    "gone": "rm -rf .git",
    "to-nothing": "rm -rf .git; ln -s /tmp/nothing .git",
    "circle": "rm -rf .git; ln -s .git .git",
    "circle-of-two": "rm -rf .git; ln -s b .git; ln -s .git b",
    "host": "rm -rf .git; ln -s /proc/1/root/etc .git",
    "empty-file": "rm -rf .git; echo 'gitdir: ' > .git",
    "no-text": "rm -rf .git; printf 'gitdir: a\\0b' > .git",
    "long-name": "rm -rf .git; printf 'gitdir: %0300d' 1 > .git",
    "long-path": "rm -rf .git; { printf 'gitdir: '; for n in $(seq 500); do printf './'; done; echo tmp; } > .git",
    "queue": "rm -rf .git; mkfifo .git",
    "above-the-root": "rm -rf .git; ln -s ../../../../../../../../../../../../var/lib .git",
}
INCOMPLETE = {
    "parts": "ln -s $T/none .git/refs/heads/side; ln -s .. .git/refs/loop; echo /none > .git/objects/info/alternates",
    "ring": "; ".join(f"mkdir -p $T/{n}/info; echo $T/{(n + 1) % 9} > $T/{n}/info/alternates" for n in range(9))
    + "; echo $T/0 > .git/objects/info/alternates",
    "large": "head -c 15M /dev/urandom > x; for n in 1 2 3 4 5; do cp x .git/objects/a$n; done",
}


def test_what_leads_nowhere_is_no_repository_or_an_incomplete_one(box: Box) -> None:
    _, after = states(box, {**NOWHERE, **INCOMPLETE})
    assert set(after.git) == {f"{ALL}/{name}/.git" for name in INCOMPLETE}
    for name in INCOMPLETE:
        repo = git(after, name)
        assert repo is not None
        # Refs are read before objects, however many those are.
        assert (repo.truncated, set(repo.refs)) == (True, {"refs/heads/main"}), name
    ring = git(after, "ring")
    assert ring is not None
    assert ring.stores == (f"{ALL}/ring/.git/objects", *(f"/tmp/ring/{n}" for n in range(5)))


LINKS = """mkdir -p /tmp/a /tmp/b; for i in 1 2 3; do ln -s /tmp/b /tmp/a/$i; ln -s /tmp/a /tmp/b/$i; done"""


def test_links_among_directories_end_and_take_no_time_of_what_was_known(box: Box) -> None:
    box.run(f"mkdir -p {ALL}/one {ALL}/z; cd {ALL}/one; {START}; echo x > {ALL}/z/kept")
    reader = box.reader(bounds=Bounds(new_git_seconds=0.5))
    reader.baseline()
    box.run(f"{LINKS}; cd {ALL}; mkdir objects refs; echo 'ref: refs/heads/x' > HEAD; ln -s /tmp/a refs/a; rm -r {ALL}/z one/a")
    before, after = reader.final()
    assert {f"{ALL}/z/kept", f"{ALL}/one/a"} <= before.files.keys() - after.files.keys()
    assert not after.git[f"{ALL}/one/.git"].truncated
    assert after.git[ALL].truncated
    assert f"{ALL}: the repository is too large; it was read in part" in after.notes
    assert after.unread == ""


HIDING = {
    "links": (f"{LINKS}; ln -s /tmp/a .git/refs/a", Bounds(git_seconds=0.5), "and now only in part"),
    "alternates": ("yes /a/b/c | head -n 40000 > .git/objects/info/alternates", Bounds(), "and now only in part"),
    "refs": (
        "h=$(git rev-parse HEAD); for i in $(seq 20001); do echo $h refs/heads/$i; done >> .git/packed-refs",
        Bounds(),
        "and now not: not parsed: it has more than 20000 refs",
    ),
    "pack": (
        """python3 - <<'END'
import struct
n = 200_001
fan = struct.pack(">256I", *[n] * 256)
open(".git/objects/pack/p.idx", "wb").write(b"\\xfftOc" + struct.pack(">I", 2) + fan + bytes(28 * n))
open(".git/objects/pack/p.pack", "wb").write(b"PACK" + struct.pack(">II", 2, n))
END""",
        Bounds(),
        "and now not: not parsed: a pack has 200001 objects, more than 200000",
    ),
}


@pytest.mark.parametrize("how", HIDING)
def test_a_repository_made_too_large_to_be_read_is_not_taken_for_unchanged(box: Box, how: str) -> None:
    change, bounds, why = HIDING[how]
    box.run(f"mkdir -p {ALL}/one; cd {ALL}/one; {START}")
    reader = box.reader(bounds=bounds)
    assert reader.baseline().git[f"{ALL}/one/.git"].truncated is False
    box.run(f"cd {ALL}/one; {change}")
    _, after = reader.final()
    assert after.unread.startswith(f"{ALL}/one/.git: the repository could be read ")
    assert after.unread.endswith(why)
