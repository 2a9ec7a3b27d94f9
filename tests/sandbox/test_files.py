"""Files of a workspace are read and written with its user's rights."""

from __future__ import annotations

import errno

import pytest
from support.sandbox import opened, output

from pytest_saber.model.task import FileSpec, Limits
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.workspace import DockerWorkspace

pytestmark = pytest.mark.docker


def test_bytes_come_back_as_they_went(workspace: DockerWorkspace) -> None:
    content = bytes(range(256)) * 4096
    workspace.write_file("raw", content)
    assert workspace.read_file("raw", limit=2 << 20) == content
    assert workspace.read_file("raw", limit=10) == content[:10]
    workspace.write_file("raw", b"")
    assert workspace.read_file("raw", limit=10) == b""


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/etc/shadow", errno.EACCES),
        ("/proc/1/environ", errno.EACCES),
        ("/etc", errno.EISDIR),
        ("missing", errno.ENOENT),
        ("/etc/passwd/x", errno.ENOTDIR),
        ("loop", errno.ELOOP),
        ("fifo", errno.ESPIPE),
        ("", errno.ENOENT),
        ("a\0b", errno.EINVAL),
        ("x" * 300, errno.ENAMETOOLONG),
    ],
)
def test_reading_fails_as_open_would(workspace: DockerWorkspace, path: str, error: int) -> None:
    output(workspace, "ln -sf loop loop; [ -p fifo ] || mkfifo fifo")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is asserted
        workspace.read_file(path, limit=10)
    assert caught.value.errno == error


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/etc/passwd", errno.EACCES),
        ("/etc", errno.EISDIR),
        ("no/where", errno.ENOENT),
        ("/proc/version", errno.EACCES),
        ("fifo", errno.ESPIPE),
    ],
)
def test_writing_fails_as_open_would(workspace: DockerWorkspace, path: str, error: int) -> None:
    output(workspace, "[ -p fifo ] || mkfifo fifo")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is asserted
        workspace.write_file(path, bytes(2 << 20))
    assert caught.value.errno == error


def test_links_lead_where_they_would_lead_the_user(workspace: DockerWorkspace) -> None:
    output(workspace, "mkdir -p real/deep; ln -sf real/deep link; echo up > real/file; ln -sf /etc/shadow secret")
    assert workspace.read_file("link/../file", limit=10) == b"up\n"
    with pytest.raises(PermissionError):
        workspace.read_file("secret", limit=10)
    workspace.write_file("link/new", b"x")
    assert output(workspace, "stat -c '%U %a' real/deep/new") == "agent 644\n"


def test_names_are_never_shell(workspace: DockerWorkspace) -> None:
    for name in ("-n", "$(touch pwned)", "a b", "x\ny", "*", "';touch pwned;'"):
        workspace.write_file(name, name.encode())
        assert workspace.read_file(name, limit=100) == name.encode()
    assert output(workspace, "ls pwned 2>/dev/null || echo none") == "none\n"


def test_the_limit_on_a_file_s_size_holds(sandbox: DockerSandbox) -> None:
    with opened(sandbox, limits=Limits(file_mb=1)) as workspace:
        with pytest.raises(OSError, match="File too large"):
            workspace.write_file("big", bytes(2 << 20))
        done = workspace.run("head -c 2M /dev/zero > big2; stat -c %s big2", timeout=10)
        assert done.output.endswith(f"{1 << 20}\n")


def test_a_workspace_without_programs_answers_with_an_error(sandbox: DockerSandbox) -> None:
    with opened(sandbox, user="root", files=(FileSpec("kept", content="kept"),)) as workspace:
        workspace.run("rm -rf /bin /usr/bin", timeout=30)
        with pytest.raises(OSError, match="executable file not found"):
            workspace.read_file("kept", limit=10)
        assert workspace.run("echo still here", timeout=10).output == "still here\n"
        assert workspace.run("ls", timeout=10).exit_code == 127
        _, after = workspace.final()
        assert "/home/agent/web/kept" in after.files
