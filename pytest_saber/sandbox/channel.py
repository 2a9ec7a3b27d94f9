"""The attached standard streams of a container's first process, read by a thread of their own.

Reading never stops while the container lives: a background process that prints must not block on a full pipe just
because no command is under way. What it prints is bounded like everything else, and is given with the next command.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_CHUNK = 1 << 16
_HEADER = 8
"""Bytes before each frame of the multiplexed stream: the stream's number, three zeros, the length."""

STDERR = 2
"""Number of the standard error's frames."""


class ChannelClosed(Exception):
    """The stream ended: the container died, the engine went away, or the workspace was closed."""


def socket_of(stream: Any) -> socket.socket:
    """Of the stream that docker-py gives for a hijacked connection."""
    found: socket.socket = getattr(stream, "_sock", stream)
    return found


def close_stream(stream: Any) -> None:
    """Close a hijacked connection and all that docker-py keeps with it."""
    sock = socket_of(stream)
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    # The response first: it flushes the stream it holds.
    response = getattr(stream, "_response", None)
    if response is not None:
        response.close()
    stream.close()
    sock.close()


def frames(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """The whole frames at the beginning of `buffer` as (stream number, payload); they are removed from it at the end."""
    start = 0
    while len(buffer) - start >= _HEADER:
        end = start + _HEADER + int.from_bytes(buffer[start + 4 : start + _HEADER], "big")
        if len(buffer) < end:
            break
        yield buffer[start], bytes(buffer[start + _HEADER : end])
        start = end
    del buffer[:start]


class BoundedOutput:
    """Bytes with both ends kept: the first and the last half of `limit`."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take more bytes; the middle is dropped once there are more than the limit."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if len(data) >= self._half:
            self._left_out += len(self._tail) + len(data) - self._half
            self._tail = bytearray(data[-self._half :])
            return
        self._tail += data
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus

    def text(self) -> tuple[str, bool]:
        """The text, and whether something was left out (the text then says how much, and where)."""
        self._trim()
        if not self._left_out:
            return bytes(self._head + self._tail).decode(errors="replace"), False
        gap = f"\n[... {self._left_out} bytes left out ...]\n"
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace"), True


@dataclass(frozen=True, slots=True)
class Reply:
    """What came before the marker, and the text of the marker's line after it."""

    output: str
    truncated: bool
    fields: str


class Channel:
    """Sends text to the first process and collects what comes back until a marker."""

    def __init__(self, stream: Any, *, limit: int) -> None:
        """`stream` is what docker-py's `attach_socket` returned; `limit` bounds the output of a call in bytes."""
        self._stream = stream
        self._sock = socket_of(stream)
        self._sock.settimeout(None)
        self._limit = limit
        self._changed = threading.Condition()
        self._output = BoundedOutput(limit)
        self._carry = b""
        self._marker: bytes | None = None
        self._reply: Reply | None = None
        self._open = True
        self._closing = threading.Lock()
        self._closed = False
        self._reader = threading.Thread(target=self._pump, name="saber-channel", daemon=True)
        self._reader.start()

    @property
    def is_open(self) -> bool:
        """Whether more may come: the container lives, and so does the connection."""
        return self._open

    def call(self, text: bytes, marker: str, timeout: float) -> Reply:
        """Send `text` and wait for `marker` and the rest of its line; what other programs print may stand before it.

        Raises ChannelClosed, or TimeoutError after `timeout` seconds; the marker is then no longer waited for.
        """
        with self._changed:
            self._reply = None
            self._marker = marker.encode() + b" "
        self.send(text)
        with self._changed:
            self._changed.wait_for(lambda: self._reply is not None or not self._open, timeout)
            self._marker = None
            return self._taken()

    def send(self, text: bytes) -> None:
        """Raises ChannelClosed. Does not block for long: the engine buffers a megabyte, more than is ever sent at once."""
        try:
            self._sock.sendall(text)
        except OSError as error:
            raise ChannelClosed from error

    def _taken(self) -> Reply:
        if self._reply is None:
            raise TimeoutError if self._open else ChannelClosed
        return self._reply

    def wait_closed(self, timeout: float) -> bool:
        """Whether the stream has ended within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, timeout)

    def close(self) -> None:
        """Idempotent; makes a call under way raise ChannelClosed."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._reader.join(timeout=5)
            close_stream(self._stream)

    def _pump(self) -> None:
        buffer = bytearray()
        while True:
            try:
                data = self._sock.recv(_CHUNK)
            except OSError:
                break
            if not data:
                break
            buffer += data
            for _, payload in frames(buffer):
                self._accept(payload)
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _accept(self, data: bytes) -> None:
        with self._changed:
            data = self._carry + data
            self._carry = b""
            if self._marker is None:
                self._output.add(data)
                return
            at = data.find(self._marker)
            if at < 0:
                # The marker may begin in the last bytes.
                keep = len(self._marker) - 1
                self._output.add(data[:-keep])
                self._carry = data[-keep:]
                return
            end = data.find(b"\n", at + len(self._marker))
            if end < 0:
                self._output.add(data[:at])
                self._carry = data[at:]
                return
            self._output.add(data[:at])
            output, truncated = self._output.text()
            self._reply = Reply(output, truncated, data[at + len(self._marker) : end].decode(errors="replace"))
            self._marker = None
            self._output = BoundedOutput(self._limit)
            self._output.add(data[end + 1 :])
            self._changed.notify_all()
