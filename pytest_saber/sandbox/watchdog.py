"""The dead-man's switch: a small process beside the session that removes its containers when the session dies.

A killed process cannot clean up, and a container that removes itself would take with it the state that is to be judged.
So every session starts this file as a program of its own process group: it waits for the session's end on a pipe and on
its process, and then removes what carries the session's labels over the engine's API. It needs only the standard
library, and ends when it is told that the session has cleaned up itself.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path

_ROUNDS = 5
"""Removal is repeated, a second apart: a container may still be being created when its session dies."""
_CALL_SECONDS = 30


class Watchdog:
    """The session's end of the switch."""

    def __init__(self, base_url: str, labels: Sequence[str], *, tls: tuple[str, str, str] | None = None) -> None:
        """`tls` names the files of the certificate authority, the client's certificate and its key.

        Raises OSError when the process cannot be started.
        """
        arguments = json.dumps({"url": base_url, "labels": list(labels), "tls": tls, "pid": os.getpid()})
        # -I and -S: neither the user's environment nor site packages may slow or break it.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).resolve()), arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Of the watchdog's process."""
        return self._process.pid

    def dismiss(self) -> None:
        """Tell it that nothing is left to remove. Idempotent."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            with contextlib.suppress(OSError):
                stdin.write(b"done\n")
                stdin.flush()
        self._wait()

    def abandon(self) -> None:
        """Let it remove what is left, as after a death, and wait for it."""
        self._wait()

    def _wait(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=2 * _ROUNDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_CALL_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_CALL_SECONDS)
        self.sock.connect(self._path)


def _connection(url: str, tls: Sequence[str] | None) -> http.client.HTTPConnection:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme in {"unix", "http+unix"}:
        return _UnixConnection(urllib.parse.unquote(parts.netloc + parts.path))
    host, port = parts.hostname or "localhost", parts.port or (2376 if tls else 2375)
    if tls is None:
        return http.client.HTTPConnection(host, port, timeout=_CALL_SECONDS)
    context = ssl.create_default_context(cafile=tls[0] or None)
    context.load_cert_chain(tls[1], tls[2])
    return http.client.HTTPSConnection(host, port, timeout=_CALL_SECONDS, context=context)


def _call(url: str, tls: Sequence[str] | None, method: str, path: str) -> bytes:
    connection = _connection(url, tls)
    try:
        connection.request(method, path)
        return connection.getresponse().read()
    finally:
        connection.close()


def _await_end(pid: int) -> bool:
    """Wait for the session. True when it asked for nothing, False when it died."""
    poller = select.poll()
    poller.register(0, select.POLLIN | select.POLLHUP)
    try:
        # A process forked from the session may hold the pipe open, so the process itself is watched too.
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    poller.register(process, select.POLLIN)
    ready = dict(poller.poll())
    return 0 in ready and os.read(0, 16).startswith(b"done")


def _remove_all(url: str, labels: Sequence[str], tls: Sequence[str] | None) -> None:
    filters = urllib.parse.quote(json.dumps({"label": list(labels)}))
    for left in reversed(range(_ROUNDS)):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for container in json.loads(_call(url, tls, "GET", f"/containers/json?all=1&filters={filters}")):
                _call(url, tls, "DELETE", f"/containers/{container['Id']}?force=1&v=1")
        if left:
            time.sleep(1)


def main() -> None:
    """The watchdog's process: wait for the session's end, and remove what a dead one left."""
    options = json.loads(sys.argv[1])
    if not _await_end(options["pid"]):
        _remove_all(options["url"], options["labels"], options["tls"])


if __name__ == "__main__":
    main()
