"""Reading and writing single files with the rights of the workspace's user, through an exec of their own.

The persistent shell is not used: its output may be mixed with what background processes print, and its state is the
agent's. The engine's archive calls are not used: they act as root.
"""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import ssl
import time
from dataclasses import dataclass

import docker
import docker.errors

from pytest_saber.sandbox.channel import STDERR, close_stream, frames, socket_of

_CHUNK = 1 << 16
_SECONDS = 20.0
_STDERR = 16_384

# A redirection opens the file as any program would, and bash names the error of the system call. The status is printed, as
# the engine keeps the connection of an ended process open while there is input that nobody reads; behind the error and on
# the same stream, as the engine promises no order between two.
_READ = 'if [[ -p $1 || -S $1 ]]; then echo "x: Illegal seek" >&2; exit 1; else head -c "$2" <"$1"; fi'
_WRITE = 'if [[ -p $1 || -S $1 ]]; then echo "x: Illegal seek" >&2; false; else head -c "$2" >"$1"; fi; echo "status $?" >&2'
_STATUS = re.compile(rb"status (\d+)\n\Z")
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
    done = _run(client, container, user, [_READ, "bash", path, str(limit)], None, limit + _STDERR)
    _raise(done, path)
    return done.stdout[:limit]


def write_file(client: docker.DockerClient, container: str, user: str, path: str, content: bytes) -> None:
    """Replace a file's content, or create it. Raises as `read_file`."""
    done = _run(client, container, user, [_WRITE, "bash", path, str(len(content))], content, _STDERR)
    _raise(done, path)


def _raise(done: _Done, path: str) -> None:
    if done.exit_code == 0:
        return
    if done.exit_code is None:
        raise Refused(OSError(errno.ETIMEDOUT, f"no answer within {_SECONDS:g} seconds", path))
    if done.exit_code == _FILE_TOO_LARGE_EXIT:
        raise Refused(OSError(errno.EFBIG, os.strerror(errno.EFBIG), path))
    # What keeps the process from starting at all is said by the engine on standard output.
    said = done.stderr or done.stdout.decode(errors="replace")
    last = said.strip().rpartition("\n")[2]
    number = _BY_TEXT.get(last.rpartition(": ")[2])
    if number is None:
        raise Refused(OSError(errno.EIO, last or f"the access ended with exit code {done.exit_code}", path))
    raise Refused(OSError(number, os.strerror(number), path))


def _run(client: docker.DockerClient, container: str, user: str, script: list[str], stdin: bytes | None, limit: int) -> _Done:
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
        return _Done(None, stdout, stderr.decode(errors="replace"))
    status = _STATUS.search(stderr) if stdin is not None else None
    said = (stderr[: status.start()] if status else stderr).decode(errors="replace")
    return _Done(int(status[1]) if status else api.exec_inspect(created["Id"])["ExitCode"], stdout, said)


def _exchange(sock: socket.socket, stdin: bytes | None, limit: int, deadline: float) -> tuple[bool, bytes, bytes]:
    """Send `stdin` and read until the end, or until the status where there is input; (whether it came, stdout, stderr)."""
    stdout, stderr, buffer = bytearray(), bytearray(), bytearray()
    unsent = memoryview(stdin or b"")
    sock.setblocking(False)
    while stdin is None or not _STATUS.search(stderr):
        left = deadline - time.monotonic()
        readable, writable, _ = select.select([sock], [sock] if unsent else [], [], max(left, 0))
        if not readable and not writable:
            return False, bytes(stdout), bytes(stderr)
        try:
            if writable:
                unsent = unsent[sock.send(unsent[:_CHUNK]) :]
            # All that is there: an encrypted connection may hold bytes that `select` does not see.
            while data := sock.recv(_CHUNK):
                buffer += data
                for stream, payload in frames(buffer):
                    target, most = (stderr, _STDERR) if stream == STDERR else (stdout, limit)
                    target += payload[: max(most - len(target), 0)]
            break
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            continue
        except (BrokenPipeError, ConnectionResetError):
            break
    return True, bytes(stdout), bytes(stderr)
