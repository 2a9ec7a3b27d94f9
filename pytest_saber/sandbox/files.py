"""Reading and writing single files with the rights of the workspace's user, through an exec of their own.

The persistent shell is not used: its output may be mixed with what background processes print, and its state is the
agent's. The engine's archive calls are not used: they act as root.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from dataclasses import dataclass

import docker
import docker.errors

from pytest_saber.sandbox.channel import close_stream, frames, socket_of

_CHUNK = 1 << 16
_SECONDS = 20.0
_STDERR = 4096

# `exec` with a redirection opens the file as any program would, and names the error of the system call.
_READ = """
[[ -p $1 || -S $1 ]] && { echo "x: Illegal seek" >&2; exit 1; }
exec 3<"$1" || exit 1
exec head -c "$2" <&3
"""
_WRITE = """
[[ -p $1 || -S $1 ]] && { echo "x: Illegal seek" >&2; exit 1; }
exec 3>"$1" || exit 1
exec head -c "$2" >&3
"""
_BY_TEXT = {os.strerror(number): number for number in errno.errorcode}
_FILE_TOO_LARGE_EXIT = 153
"""128 + SIGXFSZ."""


class Refused(Exception):
    """The workspace's answer to an access is `error`. No OSError itself: those are of the engine's socket."""

    def __init__(self, error: OSError) -> None:
        self.error = error
        super().__init__(str(error))


@dataclass(frozen=True, slots=True)
class _Done:
    exit_code: int | None
    stdout: bytes
    stderr: str


def read_file(client: docker.DockerClient, container: str, user: str, path: str, limit: int) -> bytes:
    """At most `limit` bytes of a file. Raises Refused with the error of `open` or `read`, and what docker-py raises."""
    done = _run(client, container, user, [_READ, "bash", path, str(limit)], b"", limit)
    _raise(done, path)
    return done.stdout


def write_file(client: docker.DockerClient, container: str, user: str, path: str, content: bytes) -> None:
    """Replace a file's content, or create it. Raises as `read_file`."""
    _raise(_run(client, container, user, [_WRITE, "bash", path, str(len(content))], content, 0), path)


def _raise(done: _Done, path: str) -> None:
    if done.exit_code == 0:
        return
    if done.exit_code is None:
        raise Refused(OSError(errno.ETIMEDOUT, f"no answer within {_SECONDS:g} seconds", path))
    if done.exit_code == _FILE_TOO_LARGE_EXIT:
        raise Refused(OSError(errno.EFBIG, os.strerror(errno.EFBIG), path))
    last = done.stderr.rstrip().rpartition("\n")[2]
    number = _BY_TEXT.get(last.rpartition(": ")[2])
    if number is None:
        raise Refused(OSError(errno.EIO, last or f"the access ended with exit code {done.exit_code}", path))
    raise Refused(OSError(number, os.strerror(number), path))


def _run(client: docker.DockerClient, container: str, user: str, script: list[str], stdin: bytes, limit: int) -> _Done:
    api = client.api
    command = ["bash", "--norc", "--noprofile", "-c", *script]
    created = api.exec_create(container, command, user=user, stdin=True, environment={"LC_ALL": "C"}, workdir="/")
    stream = api.exec_start(created["Id"], socket=True)
    deadline = time.monotonic() + _SECONDS
    try:
        finished, stdout, stderr = _exchange(socket_of(stream), stdin, limit, deadline)
    finally:
        close_stream(stream)
    if not finished:
        return _Done(None, stdout, stderr)
    return _Done(api.exec_inspect(created["Id"])["ExitCode"], stdout, stderr)


def _exchange(sock: socket.socket, stdin: bytes, limit: int, deadline: float) -> tuple[bool, bytes, str]:
    """Send all of `stdin` and read until the end; (whether it came, stdout, stderr)."""
    stdout, stderr, buffer = bytearray(), bytearray(), bytearray()
    unsent = memoryview(stdin)
    try:
        while unsent:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            unsent = unsent[sock.send(unsent[:_CHUNK]) :]
        while True:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            data = sock.recv(_CHUNK)
            if not data:
                break
            buffer += data
            for stream, payload in frames(buffer):
                target, most = (stderr, _STDERR) if stream == 2 else (stdout, limit)
                target += payload[: max(most - len(target), 0)]
    except TimeoutError:
        return False, bytes(stdout), stderr.decode(errors="replace")
    except (BrokenPipeError, ConnectionResetError):
        # It ended without reading all: its error says why.
        pass
    return True, bytes(stdout), stderr.decode(errors="replace")
