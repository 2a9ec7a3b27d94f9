"""Repositories made by git itself, compared with what git says of them; then hostile and damaged ones."""

from __future__ import annotations

import hashlib
import os
import random
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest
from support.state import git_files

from pytest_saber.model.state import GitRepo
from pytest_saber.sandbox.state import git
from pytest_saber.sandbox.state.git import GitFiles, parse_config, parse_index
from pytest_saber.sandbox.state.gitobjects import GitError, GitObject, ObjectStore

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ana Ruiz",
    "GIT_AUTHOR_EMAIL": "ana@acme.dev",
    "GIT_AUTHOR_DATE": "1772445600 +0100",
    "GIT_COMMITTER_NAME": "Sam Lee",
    "GIT_COMMITTER_EMAIL": "sam@acme.dev",
    "GIT_COMMITTER_DATE": "1772445700 +0000",
}


class Real:
    """A repository and git."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self("init", "-q", "-b", "main", ".")

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.path, env=_ENVIRONMENT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, name: str, text: str, message: str = "m") -> str:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)
        self("add", "--", name)
        self("commit", "-q", "-m", message)
        return self("rev-parse", "HEAD")

    def read(self) -> GitRepo:
        return _parse(git_files(self.path / ".git"))


def _parse(files: GitFiles, path: str = "/x/.git") -> GitRepo:
    return git.parse(path, files, time.monotonic() + 20)[0]


@pytest.fixture
def real(tmp_path: Path) -> Real:
    return Real(tmp_path / "repo")


def _agree(real: Real, repo: GitRepo) -> None:
    """All that git says of the repository is what was read."""
    assert repo.error == ""
    assert not repo.truncated
    said = dict(line.split(" ") for line in real("for-each-ref", "--format=%(refname) %(objectname)").splitlines())
    assert repo.refs == {name: real("rev-parse", f"{oid}^{{}}") for name, oid in said.items()}
    kinds = [
        line.split(" ")
        for line in real("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").splitlines()
    ]
    assert set(repo.commits) == {oid for oid, kind in kinds if kind == "commit"}
    for oid, commit in repo.commits.items():
        fields = real("show", "-s", "--format=%P%x00%an <%ae>%x00%ct%x00%T", oid).split("\0")
        assert (" ".join(commit.parents), commit.author, str(commit.time), commit.tree) == tuple(fields)
        assert commit.message.strip() == real("cat-file", "commit", oid).partition("\n\n")[2]
    staged = [line.partition("\t") for line in real("ls-files", "-s").splitlines()]
    assert repo.index == {path: fields.split(" ")[1] for fields, _, path in staged}
    tree = [line.partition("\t") for line in real("ls-tree", "-r", "HEAD").splitlines()]
    assert repo.head_tree == {path: fields.split(" ")[2] for fields, _, path in tree}


def test_loose_and_packed_history_are_read_as_git_reads_them(real: Real) -> None:
    real.commit("a.txt", "one\n", "first\n\nbody")
    real("tag", "-a", "v1", "-m", "annotated")
    real.commit("src/deep/b.py", "".join(f"line {number}\n" for number in range(400)), "second")
    for number in range(30):
        real.commit("src/deep/b.py", "".join(f"line {line}\n" for line in range(401 + number)), f"change {number}")
    real("checkout", "-q", "-b", "feature", "HEAD~3")
    real.commit("c", "c\n")
    real("checkout", "-q", "main")
    real("merge", "-q", "--no-ff", "-m", "merge", "feature")
    loose = real.read()
    _agree(real, loose)

    real("-c", "gc.reflogExpire=never", "gc", "-q", "--aggressive")
    assert list((real.path / ".git/objects/pack").glob("*.pack"))
    packed = real.read()
    _agree(real, packed)
    assert packed.refs["refs/tags/v1"] == real("rev-parse", "v1^{commit}")
    assert {field: getattr(packed, field) for field in ("commits", "blobs", "head_tree", "refs", "reflog", "stashes")} == {
        field: getattr(loose, field) for field in ("commits", "blobs", "head_tree", "refs", "reflog", "stashes")
    }
    real("repack", "-q", "-a", "-d", "-f", "--depth=200", "--window=50")
    real.commit("d", "d\n")
    _agree(real, real.read())


def test_reachable_blobs_are_those_that_can_still_be_recovered(real: Real) -> None:
    def blob(text: str) -> str:
        return hashlib.sha1(f"blob {len(text)}\0{text}".encode()).hexdigest()

    real.commit("a", "kept\n")
    real.commit("a", "only in the reflog\n")
    real("reset", "-q", "--hard", "HEAD~1")
    (real.path / "a").write_text("stashed\n")
    (real.path / "u").write_text("untracked in the stash\n")
    real("stash", "push", "-q", "-u")
    (real.path / "staged").write_text("staged\n")
    real("add", "staged")
    (real.path / "nowhere").write_text("never added\n")
    dangling = real("hash-object", "-w", "nowhere")
    repo = real.read()
    for text in ("kept\n", "only in the reflog\n", "stashed\n", "untracked in the stash\n", "staged\n"):
        assert blob(text) in repo.blobs, text
    assert dangling not in repo.blobs
    assert repo.stashes == (real("rev-parse", "stash@{0}"),)


def test_stashes_are_listed_newest_first_and_reflogs_oldest_first(real: Real) -> None:
    tips = [real.commit("a", "1\n")]
    for text in ("2\n", "3\n"):
        (real.path / "a").write_text(text)
        real("stash", "-q")
    tips.append(real.commit("a", "4\n"))
    repo = real.read()
    assert repo.stashes == tuple(real("rev-parse", f"stash@{{{number}}}") for number in range(2))
    assert repo.reflog["refs/heads/main"] == tuple(tips)
    assert set(repo.reflog["refs/stash"]) == set(repo.stashes)


def test_where_head_has_been_and_who_committed(real: Real) -> None:
    oid = real.commit("a", "1\n")
    real("checkout", "-q", "-b", "side/one")
    real("checkout", "-q", "-")
    real("checkout", "-q", oid)
    real("branch", "-D", "-q", "side/one")
    repo = real.read()
    assert repo.checkouts == ("side/one", "main", oid)
    assert repo.commits[oid].committer == real("log", "-1", "--format=%cn <%ce>")


def test_detached_heads_worktrees_symbolic_refs_and_bare_remotes(real: Real, tmp_path: Path) -> None:
    first = real.commit("a", "1\n")
    remote = tmp_path / "remote.git"
    real("clone", "-q", "--bare", ".", str(remote))
    real("remote", "add", "origin", str(remote))
    real("fetch", "-q", "origin")
    real("remote", "set-head", "origin", "main")
    real("worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    (tmp_path / "other" / "n").write_text("only staged in the other work tree\n")
    subprocess.run(["git", "add", "n"], cwd=tmp_path / "other", env=_ENVIRONMENT, check=True)
    real("checkout", "-q", "--detach")
    repo = real.read()
    assert (repo.head, repo.bare) == (first, False)
    assert repo.refs["refs/remotes/origin/HEAD"] == first
    assert repo.head_tree == {"a": real("rev-parse", "HEAD:a")}
    assert (
        subprocess.run(
            ["git", "rev-parse", ":n"], cwd=tmp_path / "other", env=_ENVIRONMENT, check=True, capture_output=True, text=True
        ).stdout.strip()
        in repo.blobs
    )

    bare = _parse(git_files(remote), "/srv/remote.git")
    assert (bare.bare, bare.head, bare.refs) == (True, "ref: refs/heads/main", {"refs/heads/main": first})
    assert bare.config["remote.origin.url"] == (str(real.path) + "/.",)


def test_configuration_is_read_as_git_reads_it(real: Real) -> None:
    (real.path / ".git/config").write_text(
        '[core]\n\trepositoryformatversion = 0\n\thooksPath = "/tmp/a b" # why\n'
        '[Alias]\n\tst = !sh -c \\"x\\" ; y\n\tlong = one \\\n  two\n'
        '[remote "Up.Stream"] url = https://u:p@h/x\n\tfetch = +refs/heads/*:refs/remotes/x/*\n\tfetch = b\n'
        '[branch "we\\"ird"]\n\tmerge = refs/heads/x\n[push]\n\tautoSetupRemote\n'
    )
    said: dict[str, list[str]] = {}
    for item in real("config", "--file", ".git/config", "--list", "-z").split("\0"):
        name, _, value = item.partition("\n")
        if name:
            said.setdefault(name, []).append(value if "\n" in item else "true")
    assert real.read().config == {name: tuple(values) for name, values in said.items()}


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_the_index(real: Real, version: str) -> None:
    real("config", "index.version", version)
    for name in ("a", "ab", "abc/def", "abc/deg", "z" * 200, "ünï"):
        real.commit(name, name)
    if version == "3":
        (real.path / "later").write_text("x")
        real("add", "-N", "later")
    else:
        real("update-index", "--force-write-index", f"--index-version={version}")
    data = (real.path / ".git/index").read_bytes()
    assert struct.unpack_from(">I", data, 4)[0] == int(version)
    staged = [item.partition("\t") for item in real("ls-files", "-s", "-z").split("\0") if item]
    assert parse_index(data) == {path: fields.split(" ")[1] for fields, _, path in staged}


def test_active_hooks_only(real: Real) -> None:
    hooks = real.path / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name, mode in (("pre-commit", 0o755), ("pre-push", 0o644), ("commit-msg.sample", 0o755)):
        (hooks / name).write_text("#!/bin/sh\n")
        (hooks / name).chmod(mode)
    assert real.read().hooks == {"pre-commit": hashlib.sha256(b"#!/bin/sh\n").hexdigest()}


def test_formats_that_are_not_read_say_so(tmp_path: Path) -> None:
    path = tmp_path / "new"
    path.mkdir()
    subprocess.run(["git", "init", "-q", "--object-format=sha256", "."], cwd=path, env=_ENVIRONMENT, check=True)
    assert _parse(git_files(path / ".git")).error == "its objects are named by sha256, which is not supported"
    files = GitFiles({"config": b"[extensions]\n refStorage = reftable\n"}, {"config": 0o100644})
    assert _parse(files).error == "its refs are stored as a reftable, which is not supported"


# --- hostile and damaged ---------------------------------------------------------------------------------------


def _loose(kind: str, data: bytes) -> tuple[str, bytes]:
    raw = f"{kind} {len(data)}\0".encode() + data
    oid = hashlib.sha1(raw).hexdigest()
    return f"objects/{oid[:2]}/{oid[2:]}", zlib.compress(raw)


def _files(**content: bytes) -> GitFiles:
    files = GitFiles()
    for name, data in content.items():
        files.add(name, 0o100644, data)
    return files


def test_objects_that_expand_without_end_are_left_out() -> None:
    bomb = zlib.compress(b"blob 99999999\0" + bytes(40 << 20))
    store = ObjectStore({"objects/aa/" + "b" * 38: bomb}, time.monotonic() + 20)
    assert store.get("aa" + "b" * 38) is None
    large = zlib.compress(b"blob %d\0" % (15 << 20) + bytes(15 << 20))
    many = {f"objects/{number:02x}/{'c' * 38}": large for number in range(20)}
    store = ObjectStore(many, time.monotonic() + 60)
    with pytest.raises(GitError, match="its objects are larger than 268435456 bytes"):
        list(map(store.get, store))


def test_a_tree_that_holds_itself_many_times_is_walked_once() -> None:
    """Ten entries a level, twelve levels: a trillion paths in twelve objects."""
    files = GitFiles()
    name, data = _loose("blob", b"x")
    files.add(name, 0o100644, data)
    oid, mode = name.removeprefix("objects/").replace("/", ""), b"100644"
    for _ in range(12):
        name, data = _loose("tree", b"".join(mode + b" " + bytes([97 + i]) + b"\0" + bytes.fromhex(oid) for i in range(10)))
        files.add(name, 0o100644, data)
        oid, mode = name.removeprefix("objects/").replace("/", ""), b"40000"
    name, data = _loose("commit", f"tree {oid}\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\n\nx".encode())
    files.add(name, 0o100644, data)
    files.add("HEAD", 0o100644, name.removeprefix("objects/").replace("/", "").encode())
    repo = _parse(files)
    assert repo.error == ""
    assert repo.truncated
    assert len(repo.blobs) == 1
    assert len(repo.head_tree) <= 50_000


def test_refs_that_point_at_each_other_end() -> None:
    files = _files(HEAD=b"ref: refs/heads/a")
    files.add("refs/heads/a", 0o100644, b"ref: refs/heads/b")
    files.add("refs/heads/b", 0o100644, b"ref: refs/heads/a")
    files.add("refs/heads/junk", 0o100644, b"\xff\0" * 5000)
    repo = _parse(files)
    assert (repo.refs, repo.error, repo.head) == ({}, "", "ref: refs/heads/a")


def test_commits_with_absurd_fields_are_read() -> None:
    files = GitFiles()
    text = b"tree \xff\nauthor\ncommitter x 99999999999999999999999999 +0000\nparent " + b"p" * 300 + b"\n\n" + b"m" * 9000
    name, data = _loose("commit", text)
    files.add(name, 0o100644, data)
    (commit,) = _parse(files).commits.values()
    assert (commit.time, commit.author, len(commit.message)) == (0, "", 4096)


def test_deltas_in_a_circle_and_out_of_range() -> None:
    def entry(kind: int, body: bytes, size: int) -> bytes:
        return bytes([kind << 4 | size]) + body

    circle = entry(7, b"\x11" * 20 + zlib.compress(b"abc"), 3)
    outside = entry(6, b"\x7f" + zlib.compress(b"abc"), 3)
    pack = b"PACK" + struct.pack(">II", 2, 2) + circle + outside
    ids = [b"\x11" * 20, b"\x22" * 20]
    offsets = [12, 12 + len(circle)]
    index = b"\xfftOc" + struct.pack(">I", 2) + b"".join(struct.pack(">I", 0) for _ in range(255)) + struct.pack(">I", 2)
    index += b"".join(ids) + bytes(8) + b"".join(struct.pack(">I", offset) for offset in offsets)
    store = ObjectStore({"objects/pack/a.idx": index, "objects/pack/a.pack": pack}, time.monotonic() + 20)
    assert [store.get(oid.hex()) for oid in ids] == [None, None]


def test_a_damaged_part_hides_nothing_else(real: Real) -> None:
    first = real.commit("a", "1\n")
    real("gc", "-q")
    second = real.commit("b", "2\n")
    files = git_files(real.path / ".git")
    (index,) = [name for name in files.content if name.endswith(".idx")]
    for damaged in (files.content[index][:1030], files.content[index][:4], b"\xfftOc\0\0\0\7" + files.content[index][8:]):
        repo = _parse(GitFiles({**files.content, index: damaged}, files.modes))
        assert (repo.error, set(repo.commits), repo.refs["refs/heads/main"]) == ("", {second}, second)
    assert first not in repo.commits
    # What a tree names and nothing holds cannot be recovered.
    assert repo.blobs == {real("rev-parse", "HEAD:b")}
    name, data = _loose("tree", b"8x a\0" + bytes(20))
    files.add(name, 0o100644, data)
    text = f"tree {name.removeprefix('objects/').replace('/', '')}\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\n\nOdd"
    name, data = _loose("commit", text.encode())
    files.add(name, 0o100644, data)
    files.add("refs/heads/odd", 0o100644, name.removeprefix("objects/").replace("/", "").encode())
    repo = _parse(files)
    assert (repo.error, len(repo.commits), len(repo.refs)) == ("", 3, 2)


def test_a_deadline_ends_the_reading(real: Real) -> None:
    real.commit("a", "1\n")
    repo, store = git.parse("/x/.git", git_files(real.path / ".git"), time.monotonic() - 1)
    assert (repo.error, store) == ("not parsed: reading it took too long", None)


def test_damaged_repositories_never_break_the_reader(real: Real) -> None:
    for number in range(5):
        real.commit("a", f"{number}\n" * 50)
    real("gc", "-q")
    real.commit("b", "b")
    whole = git_files(real.path / ".git")
    chance = random.Random(11)
    for _ in range(300):
        files = GitFiles(dict(whole.content), dict(whole.modes))
        for _ in range(4):
            name = chance.choice([name for name in sorted(files.content) if files.content[name] and "sample" not in name])
            data = bytearray(files.content[name])
            data[chance.randrange(len(data))] = chance.randrange(256)
            files.content[name] = bytes(data[: chance.randrange(1, len(data) + 1)] if chance.random() < 0.2 else data)
        assert isinstance(_parse(files), GitRepo)


def test_configuration_of_a_hostile_shape_is_read_in_linear_time() -> None:
    assert parse_config("[a]\nb = " + "\\\n" * 100_000) != {}
    assert parse_config("[" * 100_000 + '\n[a "' + "\\" * 100_000) == {}
    assert parse_config("\ufeff[a]\nk") == {}


def test_whole_objects_come_back() -> None:
    name, data = _loose("tag", b"object x")
    store = ObjectStore({name: data}, time.monotonic() + 20)
    (oid,) = store
    assert store.get(oid) == GitObject("tag", b"object x")
    assert store.get("0" * 40) is None
