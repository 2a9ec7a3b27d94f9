"""Connections to the engine's unix socket that close what they opened when the engine does not take them.

docker-py leaves the socket of a refused connection to the garbage collector. Under `-W error` its ResourceWarning then fails
whatever test of the user runs at that moment, or pytest itself at the end of a session whose engine went away.
"""

from __future__ import annotations

import socket

from docker.transport import UnixHTTPAdapter
from docker.transport.unixconn import UnixHTTPConnection, UnixHTTPConnectionPool


class ClosingConnection(UnixHTTPConnection):
    """One connection. `connect` raises OSError and leaves nothing open then."""

    def connect(self) -> None:
        """Raises OSError, and leaves nothing open then."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            sock.connect(self.unix_socket)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


class ClosingPool(UnixHTTPConnectionPool):
    """Of such connections."""

    def _new_conn(self) -> ClosingConnection:  # type: ignore[override]  # as docker-py's own, which its types leave out
        return ClosingConnection(self.base_url, self.socket_path, self.timeout)  # type: ignore[arg-type]  # seconds


class ClosingAdapter(UnixHTTPAdapter):
    """What a docker-py client is given in place of its own adapter."""

    def get_connection(self, url: str | bytes, proxies: object = None) -> ClosingPool:  # noqa: ARG002 - requests passes it
        """The pool of the engine; the socket's path is the adapter's, whatever `url` says."""
        with self.pools.lock:
            pool: ClosingPool | None = self.pools.get(url)
            if pool is None:
                pool = self.pools[url] = ClosingPool(str(url), self.socket_path, self.timeout, maxsize=self.max_pool_size)
        return pool
