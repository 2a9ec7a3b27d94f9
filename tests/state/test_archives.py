"""What is found in archives, and what bombs and damage cost."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_saber.sandbox.state import archives

SECRET = b"AKIAZ7QX2L5VB3NM8KWT"


def _members(data: bytes) -> tuple[dict[str, bytes], list[str]]:
    notes: list[str] = []
    return dict(archives.members(data, time.monotonic() + 20, notes.append)), notes


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _zip(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (_tar({"a/.env": SECRET}), "a/.env"),
        (gzip.compress(_tar({"a/.env": SECRET})), "a/.env"),
        (bz2.compress(_tar({".env": SECRET})), ".env"),
        (lzma.compress(_tar({".env": SECRET})), ".env"),
        (_zip({"d/.env": SECRET}), "d/.env"),
        (_zip({".env": SECRET}, zipfile.ZIP_LZMA), ".env"),
        (gzip.compress(SECRET), "content"),
        (gzip.compress(b"first ") + gzip.compress(SECRET), "content"),
        (_zip({"in.tar.gz": gzip.compress(_tar({"deep.zip": _zip({"x": SECRET})}))}), "in.tar.gz!deep.zip!x"),
    ],
    ids=["tar", "tgz", "tbz", "txz", "zip", "zip-lzma", "gz", "gz-two-streams", "nested"],
)
def test_content_is_found(data: bytes, name: str) -> None:
    found, notes = _members(data)
    assert SECRET in found[name]
    assert notes == []


def test_names_that_climb_and_links_are_only_names() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        climb = tarfile.TarInfo("../../etc/cron.d/x")
        climb.size = 3
        archive.addfile(climb, io.BytesIO(b"abc"))
    assert _members(buffer.getvalue()) == ({"link": b"/etc/passwd", "../../etc/cron.d/x": b"abc"}, [])


def test_bundles_and_loose_packs(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, env=environment, check=True, capture_output=True)

    git("init", "-q", ".")
    (tmp_path / "f").write_bytes(b"".join(b"line %d\n" % number for number in range(300)))
    git("add", "f")
    git("commit", "-qm", "one")
    (tmp_path / "f").write_bytes((tmp_path / "f").read_bytes() + SECRET)
    git("commit", "-qam", "two")
    git("gc", "-q")
    git("bundle", "create", "x.bundle", "--all")
    (pack,) = (tmp_path / ".git/objects/pack").glob("*.pack")
    for path in (tmp_path / "x.bundle", pack):
        found, notes = _members(path.read_bytes())
        assert len(found) == 6
        assert any(SECRET in content for content in found.values())
        assert notes == []


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(bytes(200 << 20)),
        bz2.compress(bytes(200 << 20)),
        lzma.compress(bytes(200 << 20), preset=0),
        _zip({str(number): bytes(20 << 20) for number in range(10)}),
        _zip({f"{number}.gz": gzip.compress(bytes(15 << 20)) for number in range(20)}),
    ],
    ids=["gz", "bz2", "xz", "zip", "nested"],
)
def test_bombs_are_cut(data: bytes) -> None:
    found, notes = _members(data)
    assert sum(len(content) for content in found.values()) <= 66 << 20
    assert any(
        "was not searched whole: more than 67108864 bytes" in note or "in its first 16777216 bytes only" in note
        for note in notes
    )


def test_a_zip_inside_itself_ends() -> None:
    data = _zip({"x": b"end"})
    for _ in range(10):
        data = _zip({"x.zip": data})
    found, _ = _members(data)
    assert sorted(found) == ["x.zip", "x.zip!x.zip", "x.zip!x.zip!x.zip", "x.zip!x.zip!x.zip!x.zip"]


def test_too_many_members() -> None:
    found, notes = _members(_zip({str(number): b"" for number in range(5005)}, zipfile.ZIP_STORED))
    assert len(found) == 5000
    assert notes == ["the archive was not searched whole: more than 5000 members"]


def test_time_is_bounded() -> None:
    notes: list[str] = []
    assert dict(archives.members(_tar({"a": b"x"}), time.monotonic() - 1, notes.append)) == {}
    assert notes == ["the archive was not searched whole: it took too long"]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_damage_is_noted_and_what_came_before_it_is_searched(compress: Callable[[bytes], bytes]) -> None:
    junk, notes = _members(compress(SECRET) + b"junk that hides it" * 10)
    assert junk["content"].startswith(SECRET)
    cut, more = _members(compress(SECRET + random.Random(1).randbytes(1_500_000))[:-100])
    assert cut["content"].startswith(SECRET)
    for note in (*notes, *more):
        assert note.startswith("a compressed file was not searched whole: ")
    assert len(more) == 1


def test_damaged_archives_never_break_the_reader() -> None:
    files = {f"{number}": SECRET * number for number in range(20)}
    kinds = [_tar(files), gzip.compress(_tar(files)), _zip(files), bz2.compress(_tar(files)), lzma.compress(_tar(files))]
    kinds.append(b"PACK\0\0\0\x02\0\0\0\x09" + gzip.compress(b"x") * 9)
    chance = random.Random(3)
    for _ in range(400):
        data = bytearray(chance.choice(kinds))
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(min(len(data), 3000))] = chance.randrange(256)
        found, notes = _members(bytes(data[: chance.randrange(1, len(data) + 1)]))
        assert isinstance(found, dict)
        assert len(notes) < 50


@pytest.mark.parametrize("data", [b"", b"text", SECRET, b"PK", b"\x1f\x8b", b"PACK" + bytes(40)])
def test_other_files_have_no_members(data: bytes) -> None:
    assert _members(data)[0] in ({}, {"content": b""})
