"""A unix socket in front of the engine's that a test can cut, mend and silence: an engine that dies, comes back, or hangs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker


def engine_socket(client: docker.DockerClient) -> str:
    """The path of the engine's own socket."""
    path: str = client.api.get_adapter(client.api.base_url).socket_path  # type: ignore[attr-defined]
    return path


class Proxy:
    """Passes connections on to the engine's socket until it is cut."""

    def __init__(self, server: socket.socket, target: str) -> None:
        self._target = target
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._cut = False
        self._answers = threading.Event()
        self._answers.set()
        self.connections = 0
        """How many were taken."""
        self._listen(server)

    def _listen(self, server: socket.socket) -> None:
        self._server = server
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            self.connections += 1
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            with self._lock:
                if self._cut:
                    near.close()
                    far.close()
                    return
                self._ends += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self._answers.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def silence(self) -> None:
        """Keep every connection and take further ones, but pass nothing on in either direction."""
        self._answers.clear()

    def cut(self) -> None:
        """Close every connection and take no further one. Idempotent."""
        self._answers.set()
        with self._lock:
            if self._cut:
                return
            self._cut = True
            self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
            ends, self._ends = self._ends, []
            for end in ends:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
                finally:
                    end.close()

    def mend(self, server: socket.socket) -> None:
        """Go on after a cut, at another listening socket."""
        with self._lock:
            self._cut = False
        self._listen(server)


def listening(path: Path) -> socket.socket:
    """A unix socket at `path`, in place of one that was there."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


@contextmanager
def engine_at(path: Path, client: docker.DockerClient) -> Iterator[Proxy]:
    """The engine of `client`, reachable at `path` too."""
    proxy = Proxy(listening(path), engine_socket(client))
    try:
        yield proxy
    finally:
        proxy.cut()
