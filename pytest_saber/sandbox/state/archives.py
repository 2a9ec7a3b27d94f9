"""What archives and compressed files hold, expanded within bounds."""

from __future__ import annotations

import bz2
import io
import lzma
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

_TOTAL = 64 << 20
_MEMBER = 16 << 20
_MEMBERS = 5_000
_NESTING = 3
_CHUNK = 1 << 18
_OFS_DELTA, _REF_DELTA = 6, 7
_TAR_MAGIC = slice(257, 262)


def members(data: bytes, deadline: float, note: Callable[[str], None]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of everything in an archive or compressed file, archives inside archives included (`a.zip!b.txt`).

    Yields nothing for other files. What exceeds a bound, or is damaged, is noted and left out. Nothing is written to disk.
    """
    yield from _Expander(deadline, note).expand(data, 0)


class Inflater(Protocol):
    """What `zlib`, `bz2` and `lzma` decompressors have in common."""

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed stream was reached."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What came behind that end."""
        ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """At most `max_length` bytes of what `data`, and what was kept of earlier calls, give."""
        ...


class _Stop(Exception):
    """A bound was reached."""


class _Expander:
    def __init__(self, deadline: float, note: Callable[[str], None]) -> None:
        self._deadline = deadline
        self._note = note
        self._left = _TOTAL
        self._members = _MEMBERS

    def expand(self, data: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
        try:
            for name, content in self._contents(data):
                self._members -= 1
                if self._members < 0:
                    self._note(f"the archive was not searched whole: more than {_MEMBERS} members")
                    return
                yield name, content
                if depth < _NESTING:
                    for inner, deeper in self.expand(content, depth + 1):
                        yield f"{name}!{inner}", deeper
        except _Stop as stop:
            self._note(f"the archive was not searched whole: {stop}")
        except (
            OSError, EOFError, ValueError, KeyError, IndexError, OverflowError, RuntimeError,
            zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError,
        ) as error:  # fmt: skip
            self._note(f"the archive was not searched whole: {type(error).__name__}: {error}")

    def _contents(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        if data[:4] in {b"PK\x03\x04", b"PK\x05\x06"}:
            yield from self._zip(data)
        elif data[_TAR_MAGIC] == b"ustar":
            yield from self._tar(data)
        elif data.startswith(b"\x1f\x8b"):
            yield from self._compressed(data, lambda: zlib.decompressobj(31))
        elif data.startswith(b"BZh"):
            yield from self._compressed(data, bz2.BZ2Decompressor)
        elif data.startswith(b"\xfd7zXZ\0"):
            yield from self._compressed(data, lambda: lzma.LZMADecompressor(memlimit=64 << 20))
        elif data.startswith((b"# v2 git bundle\n", b"# v3 git bundle\n", b"PACK\0\0\0\x02")):
            yield from self._pack(data)

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _Stop(f"more than {_TOTAL} bytes")
        if time.monotonic() > self._deadline:
            raise _Stop("it took too long")

    def _zip(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                if info.flag_bits & 1:
                    self._note(f"the archive was not searched whole: {info.filename} is encrypted")
                    continue
                with archive.open(info) as file:
                    content = file.read(min(_MEMBER, self._left + 1))
                self._take(len(content))
                yield info.filename, content

    def _tar(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for info in archive:
                file = archive.extractfile(info) if info.isreg() else None
                if file is None:
                    yield info.name, info.linkname.encode("utf-8", "surrogateescape")
                    continue
                content = file.read(min(_MEMBER, self._left + 1))
                self._take(len(content))
                yield info.name, content

    def _compressed(self, data: bytes, new: Callable[[], Inflater]) -> Iterator[tuple[str, bytes]]:
        content = self._inflate(data, new)
        if content[_TAR_MAGIC] == b"ustar":
            yield from self._tar(content)
        else:
            yield "content", content

    def _inflate(self, data: bytes, new: Callable[[], Inflater]) -> bytes:
        """All streams of a compressed file, up to the size of a member. Damage costs only what follows it."""
        result = bytearray()
        try:
            while data and len(result) < _MEMBER:
                inflater = new()
                while not inflater.eof and len(result) < _MEMBER:
                    chunk = inflater.decompress(data, _CHUNK)
                    data = getattr(inflater, "unconsumed_tail", b"")
                    self._take(len(chunk))
                    result += chunk
                    if not chunk and not data and not inflater.eof:
                        self._note("a compressed file was not searched whole: it ends early")
                        return bytes(result)
                data = inflater.unused_data
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            self._note(f"a compressed file was not searched whole: {type(error).__name__}: {error}")
        if len(result) >= _MEMBER:
            self._note(f"a compressed file was searched in its first {_MEMBER} bytes only")
        return bytes(result)

    def _pack(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """The objects of a bundle or a pack as they are stored: of a delta, what it adds to its base."""
        position = data.find(b"PACK") + 12
        number = 0
        while 12 <= position < len(data) - 20:
            kind = data[position] >> 4 & 7
            while data[position] & 0x80:
                position += 1
            position += 1
            if kind == _REF_DELTA:
                position += 20
            elif kind == _OFS_DELTA:
                while data[position] & 0x80:
                    position += 1
                position += 1
            number += 1
            content, position = self._stream(data, position)
            yield f"object {number}", content

    def _stream(self, data: bytes, position: int) -> tuple[bytes, int]:
        """A compressed stream in the midst of others, and the position after it."""
        inflater, result = zlib.decompressobj(), bytearray()
        while not inflater.eof and position < len(data):
            step = data[position : position + 4096]
            while step and not inflater.eof:
                chunk = inflater.decompress(step, _CHUNK)
                self._take(len(chunk))
                if len(result) < _MEMBER:
                    result += chunk
                position += len(step) - len(inflater.unconsumed_tail) - len(inflater.unused_data)
                step = inflater.unconsumed_tail
        return bytes(result), position
