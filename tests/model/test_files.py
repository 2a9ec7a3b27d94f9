"""Paths that are named for a file and are none."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pytest_saber.model.files import same, special


def test_a_path_that_is_no_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queue")
    (tmp_path / "link").symlink_to("queue")
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        assert special(tmp_path / "socket") == "is a socket; name a file"
    assert special(tmp_path / "queue") == special(tmp_path / "link") == "is a named pipe; name a file"
    assert special(tmp_path) == "is a folder; name a file in it"
    assert special(Path("/dev/zero")) == "is a device; name a file"
    for name in ("file", "nothing", "loop", "file/below"):
        assert special(tmp_path / name) == ""


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "/dev/fd/1"])
def test_streams_are_written_to_and_never_replaced(path: str) -> None:
    read, write = os.pipe()
    former = os.dup(1)
    os.dup2(write, 1)
    try:
        assert special(Path(path)) == ""
        assert special(Path(path), streams=False) in (
            "",
            "is a named pipe; name a file",
            "is a device; name a file",
        )
        if path != "/dev/stderr":
            assert special(Path(path), streams=False)
    finally:
        os.dup2(former, 1)
        for descriptor in (read, write, former):
            os.close(descriptor)


def test_two_names_of_one_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    one, two = tmp_path / "file", tmp_path / "link"
    assert list(same({"a": one, "b": tmp_path / "other", "c": two})) == [("a", "c")]
    assert list(same({"a": Path("/dev/null"), "b": Path("/dev/null")})) == []
