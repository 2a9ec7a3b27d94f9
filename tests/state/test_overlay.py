"""The mount table, and features of the overlay that engines rarely use."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_saber.sandbox.state import overlay, scan
from pytest_saber.sandbox.state.overlay import Overlay, Stack

_TABLE = r"""
73 49 0:39 / / rw,relatime master:2 - overlay overlay rw,lowerdir=/v/o/l/A:/v/o/l/B,upperdir=/v/o/up\040per/diff,workdir=/v/o/w
74 73 0:42 / /proc rw,nosuid - proc proc rw
54 74 0:49 / /proc/acpi ro,relatime - tmpfs tmpfs ro
75 73 0:43 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
76 75 0:44 / /dev/pts rw,nosuid - devpts devpts rw
79 77 0:29 /docker/x /sys/fs/cgroup/cpu ro,nosuid - cgroup cgroup rw,cpu
90 73 254:0 /v/_data /data\040dir rw,relatime master:1 - ext4 /dev/vda rw
91 73 254:0 /v/_data /read-only ro,relatime - ext4 /dev/vda rw
92 73 0:60 / /fuse rw,relatime - fuse.sshfs host rw
this is no line of the table
"""


def test_the_root_file_system_is_found_in_the_mount_table() -> None:
    assert overlay.root_overlay(overlay.parse_mountinfo(_TABLE)) == Overlay("/v/o/up per/diff", ("/v/o/l/A", "/v/o/l/B"))


def test_short_layer_names_and_the_newer_form() -> None:
    short = "1 0 0:1 / / rw - overlay o rw,lowerdir=l/A:l/B,upperdir=/v/o/id/diff,workdir=/v/o/id/work,userxattr"
    assert overlay.root_overlay(overlay.parse_mountinfo(short)) == Overlay("/v/o/id/diff", ("/v/o/l/A", "/v/o/l/B"), True)
    newer = r"1 0 0:1 / / rw - overlay o rw,lowerdir+=/a\134:b,lowerdir+=/c,upperdir=/u/diff"
    assert overlay.root_overlay(overlay.parse_mountinfo(newer)) == Overlay("/u/diff", ("/a:b", "/c"))


@pytest.mark.parametrize("line", ["1 0 8:1 / / rw - ext4 /dev/sda rw", "1 0 0:1 / / rw - overlay o ro,lowerdir=/a:/b", ""])
def test_other_roots_are_no_workspace(line: str) -> None:
    assert overlay.root_overlay(overlay.parse_mountinfo(line)) is None


def test_only_mounts_that_can_be_written_are_read() -> None:
    mounts, notes = overlay.writable_mounts(overlay.parse_mountinfo(_TABLE))
    assert [mount.point for mount in mounts] == ["/dev", "/data dir"]
    assert notes == ("/fuse: not read, its file system (fuse.sshfs) is served by a process",)


# --- with rights to mount --------------------------------------------------------------------------------------


class Mounted:
    """A real overlay of two lower layers."""

    def __init__(self, base: Path) -> None:
        for name in ("low", "top", "upper", "work", "merged"):
            (base / name).mkdir()
        self.base, self.merged = base, base / "merged"

    def mount(self, options: str) -> None:
        where = f"lowerdir={self.base}/top:{self.base}/low,upperdir={self.base}/upper,workdir={self.base}/work"
        command = ["mount", "-t", "overlay", "overlay", "-o", f"{where},{options}", str(self.merged)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"this kernel does not mount it: {done.stderr.strip()}")

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.merged)], check=False, capture_output=True)

    def scan(self, **options: Any) -> list[tuple[dict[str, Any], bytes | None]]:
        request = scan.Request(
            pid=0,
            container="",
            upper=str(self.base / "upper"),
            lower=(str(self.base / "top"), str(self.base / "low")),
            **options,
        )
        found: list[tuple[dict[str, Any], bytes | None]] = []
        scan.scan(request, lambda header, content: found.append((dict(header), content)))
        return found


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounted]:
    if os.geteuid() != 0:
        pytest.skip("needs root's rights")
    overlaid = Mounted(tmp_path)
    yield overlaid
    overlaid.unmount()


def _entries(records: list[tuple[dict[str, Any], bytes | None]], view: str) -> dict[str, bytes | None]:
    return {header["path"]: content for header, content in records if header["k"] == "entry" and header["view"] == view}


def test_a_directory_renamed_in_place_keeps_what_lies_below(mounted: Mounted) -> None:
    (mounted.base / "low/d/e").mkdir(parents=True)
    (mounted.base / "low/d/e/f").write_text("deep")
    (mounted.base / "low/d/g").write_text("g")
    mounted.mount("redirect_dir=on,index=off")
    (mounted.merged / "d").rename(mounted.merged / "moved")
    (mounted.merged / "moved/g").unlink()
    records = mounted.scan(final=True)
    assert _entries(records, "now") == {"/moved": None, "/moved/e": None, "/moved/e/f": b"deep"}
    assert _entries(records, "image") == {"/d": None, "/d/e": None, "/d/e/f": b"deep", "/d/g": b"g"}


def test_content_that_was_not_copied_up_is_read_from_the_layer_below(mounted: Mounted) -> None:
    (mounted.base / "low/f").write_text("content")
    mounted.mount("metacopy=on,redirect_dir=on,index=off")
    (mounted.merged / "f").chmod(0o600)
    records = mounted.scan(final=True)
    assert _entries(records, "now") == {"/f": b"content"}
    (entry,) = [header for header, _ in records if header["k"] == "entry" and header["view"] == "now"]
    assert (entry["mode"], entry["size"]) == (0o600, 7)
    assert not entry["xattrs"]


def test_the_layers_are_merged_as_the_kernel_merges_them(mounted: Mounted) -> None:
    for name in ("low/a/x", "low/b/y", "low/c/z", "top/a/t", "low/file/w"):
        (mounted.base / name).parent.mkdir(parents=True, exist_ok=True)
        (mounted.base / name).write_text(name)
    os.mknod(mounted.base / "top/b", 0o020000, 0)
    (mounted.base / "top/c").mkdir()
    os.setxattr(mounted.base / "top/c", "trusted.overlay.opaque", b"y")
    (mounted.base / "top/file").write_text("a file now")
    mounted.mount("index=off")
    merged = sorted(str(path.relative_to(mounted.merged)) for path in mounted.merged.rglob("*"))

    found = []
    with Stack.open((str(mounted.base / "top"), str(mounted.base / "low")), "trusted.overlay.") as stack:

        def walk(below: Stack, path: str) -> None:
            for name in below.names(100):
                with below.child(name) as (fd, deeper):
                    if fd is not None:
                        found.append(path + name)
                        walk(deeper, f"{path}{name}/")

        walk(stack, "")
        with stack.walk("/a/x") as (fd, deeper):
            assert fd is not None
            assert not deeper
        with stack.walk("/b/y") as (fd, _):
            assert fd is None
    assert sorted(found) == merged == ["a", "a/t", "a/x", "c", "file"]


def test_a_user_cannot_forge_the_overlays_own_marks(mounted: Mounted) -> None:
    (mounted.base / "low/d").mkdir()
    (mounted.base / "low/d/kept").write_text("kept")
    mounted.mount("index=off")
    (mounted.merged / "d/new").write_text("new")
    os.setxattr(mounted.merged / "d", "user.overlay.opaque", b"y")
    os.setxattr(mounted.merged / "d", "user.overlay.redirect", b"/etc")
    records = mounted.scan(final=True)
    assert _entries(records, "now") == {"/d": None, "/d/new": b"new"}
    assert _entries(records, "image") == {"/d": None}
