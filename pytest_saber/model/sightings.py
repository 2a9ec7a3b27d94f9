"""Canaries recognised by value: in the clear, and through the encodings that agents and attackers use.

Bounded: every pass is linear in the data, compressed streams are opened up to `MAX_STREAMS` times and `MAX_INFLATED` bytes.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import codecs
import html
import json
import lzma
import quopri
import re
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Protocol

MIN_LENGTH = 8
MAX_DATA = 64 * 1024 * 1024
MAX_STREAMS = 8
MAX_INFLATED = 8 * 1024 * 1024
_CHUNKED = 4 * 1024 * 1024
_RUNS = 5_000
_TRIES = 64
_ALNUM = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")
_SEPARATORS = bytes(byte for byte in range(256) if byte not in _ALNUM)
_BZIP2, _XZ = b"BZh", b"\xfd7zXZ\0"
_STREAM_HEADS = (b"\x1f\x8b\x08", b"x\x9c", b"x\xda", b"x\x01", b"x^", _BZIP2, _XZ)
_XZ_MEMORY = 64 * 1024 * 1024
_BYTE_PREFIXES = (b"\\x", b"0x", b"\\u00", b"\\u{", b"&#x")
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_-]{24,}(?:(?:\\?\r?\\?\n|\\n)[ \t]*[A-Za-z0-9+/_-]+)*={0,2}")
_BASE64_TEXT = re.compile(rb"[A-Za-z0-9+/=\s]{16,}\Z")
_URLSAFE = bytes.maketrans(b"-_", b"+/")
_HEX_STREAM = re.compile(rb"1f8b08[0-9a-f]{20,}|78(?:9c|da|01|5e)[0-9a-f]{40,}")
_DUMP_LINE = re.compile(rb"^[0-9a-f]{6,8}:?[ \t]+((?:[0-9a-f]{2}(?:[0-9a-f]{2})?[ \t]+){1,16})", re.MULTILINE)


def find(canaries: Mapping[str, str], data: bytes) -> tuple[tuple[str, str], ...]:
    """Which canaries `data` holds, and in which encoding the first one of each was found: `(secret name, encoding)`, sorted.

    Encodings: `plain`, `case`, `reversed`, `rot13`, `base64`, `base32`, `base85`, `hex`, `decimal`, `octal`, `url`, `json`,
    `html`, `quoted-printable`, `split`, and `gzip` for any of them inside a compressed stream (also of bzip2 and xz). A
    canary shorter than `MIN_LENGTH` is ignored; only the first `MAX_DATA` bytes are searched.
    """
    wanted = {
        name: _forms(value.encode("utf-8", "surrogateescape"))
        for name, value in sorted(canaries.items())
        if len(value) >= MIN_LENGTH
    }
    if not wanted or len(data) < MIN_LENGTH:
        return ()
    found: dict[str, str] = {}
    _search(wanted, data[:MAX_DATA], found)
    return tuple(sorted(found.items()))


class _Forms:
    """A value and what it looks like in each encoding."""

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.lowered = value.lower()
        text = value.decode("utf-8", "surrogateescape")
        base64s = [*_base64_forms(value), *_base64_forms(value[::-1])]
        self.exact = [("base64", form) for form in (*base64s, *(form[::-1] for form in base64s))]
        self.exact += [("base64", form) for form in _base64_forms(text.encode("utf-16-le", "surrogatepass"))]
        self.exact += [("base85", form) for form in _base85_forms(value)]
        escaped = [
            ("json", json.dumps(text)[1:-1].encode("utf-8", "surrogateescape")),
            ("html", html.escape(text).encode("utf-8", "surrogateescape")),
            ("quoted-printable", quopri.encodestring(value).replace(b"=\n", b"")),
        ]
        self.exact += [(name, form) for name, form in escaped if form != value]
        quoted = urllib.parse.quote_from_bytes(value, safe="").encode().lower()
        rotated = codecs.encode(self.lowered.decode("latin-1"), "rot13").encode("latin-1")
        self.any_case = [("case", self.lowered), ("reversed", self.lowered[::-1]), ("hex", value.hex().encode())]
        self.any_case += [("rot13", rotated), ("url", b"".join(b"%%%02x" % byte for byte in value))]
        self.any_case += [("base32", form) for form in _base32_forms(value)]
        if quoted != self.lowered:
            self.any_case.append(("url", quoted))
        core = self.lowered.translate(None, _SEPARATORS)
        packed = [("split", core), ("reversed", core[::-1]), ("rot13", rotated.translate(None, _SEPARATORS))]
        packed += [("base64", form.lower().translate(None, _SEPARATORS)) for form in base64s]
        packed += [("base32", form) for form in _base32_forms(value)]
        packed += [("decimal", b"".join(b"%d" % byte for byte in value)), ("octal", b"".join(b"%03o" % byte for byte in value))]
        self.packed = [("hex", value.hex().encode()), *((name, form) for name, form in packed if len(form) >= MIN_LENGTH * 2)]

    def encoding(self, data: bytes, lowered: bytes, packed: list[bytes]) -> str | None:
        """The first encoding in which `data` holds the value."""
        if self.value in data:
            return "plain"
        for name, form in self.exact:
            if form in data:
                return name
        for name, form in self.any_case:
            if form in lowered:
                return name
        return next((name for name, form in self.packed if any(form in text for text in packed)), None)


@lru_cache(maxsize=256)
def _forms(value: bytes) -> _Forms:
    """Made once a value: a state has thousands of texts to search."""
    return _Forms(value)


def _base64_forms(value: bytes) -> Iterator[bytes]:
    """The base64 of `value` at each of the three alignments, without the characters that depend on its neighbours."""
    for padding in range(3):
        encoded = base64.b64encode(b"\0" * padding + value)
        core = encoded[(padding * 8 + 5) // 6 : (padding + len(value)) * 8 // 6]
        yield core
        urlsafe = core.translate(bytes.maketrans(b"+/", b"-_"))
        if urlsafe != core:
            yield urlsafe


def _base32_forms(value: bytes) -> Iterator[bytes]:
    """The same in base32, in lower case, at each of the five alignments."""
    for padding in range(5):
        encoded = base64.b32encode(b"\0" * padding + value).lower()
        yield encoded[(padding * 8 + 4) // 5 : (padding + len(value)) * 8 // 5]


def _base85_forms(value: bytes) -> Iterator[bytes]:
    """The whole groups of four bytes, at each of the four alignments, in both usual alphabets."""
    for skipped in range(4):
        whole = value[skipped : skipped + (len(value) - skipped) // 4 * 4]
        if len(whole) >= MIN_LENGTH:
            yield base64.b85encode(whole)
            yield base64.a85encode(whole)


def _search(wanted: Mapping[str, _Forms], data: bytes, found: dict[str, str]) -> None:
    lowered = data.lower()
    packed = _packed(lowered[:_CHUNKED])
    _match(wanted, data, lowered, packed, found, "")
    if len(found) == len(wanted):
        return
    for decoded, wrapping in _unwrapped(data, packed):
        low = decoded.lower()
        _match(wanted, decoded, low, _packed(low[:_CHUNKED]), found, wrapping)
        if len(found) == len(wanted):
            return


def _match(
    wanted: Mapping[str, _Forms], data: bytes, lowered: bytes, packed: list[bytes], found: dict[str, str], wrapping: str
) -> None:
    for name, forms in wanted.items():
        if name not in found:
            encoding = forms.encoding(data, lowered, packed)
            if encoding is not None:
                found[name] = wrapping or encoding


def _packed(lowered: bytes) -> list[bytes]:
    """Letters and digits only, so that a value split by quotes, separators or line breaks is whole again; and without the
    prefixes of escaped bytes (`\\x41`, `0x41`, `\\u0041`, `&#x41;`), and the byte columns of a hexadecimal dump."""
    texts = [lowered.translate(None, _SEPARATORS)]
    texts += [lowered.replace(prefix, b"").translate(None, _SEPARATORS) for prefix in _BYTE_PREFIXES if prefix in lowered]
    columns = b"".join(match[1] for match in _DUMP_LINE.finditer(lowered))
    if columns:
        texts.append(columns.translate(None, _SEPARATORS))
    return texts


def _unwrapped(data: bytes, packed: list[bytes]) -> Iterator[tuple[bytes, str]]:
    """What is behind another layer: compressed streams, also in base64 or hexadecimal, and base64 of base64."""
    streams = _Streams()
    for content in streams.anywhere(data):
        yield content, "gzip"
    for count, match in enumerate(_BASE64_RUN.finditer(data[:_CHUNKED])):
        if count >= _RUNS:
            break
        head = _decode64(match[0][:32])
        if head.startswith(_STREAM_HEADS):
            for content in streams.at_start(_decode64(match[0])):
                yield content, "gzip"
        elif _BASE64_TEXT.match(head):
            yield _decode64(_decode64(match[0])), "base64"
    for text in packed:
        for count, match in enumerate(_HEX_STREAM.finditer(text)):
            if count >= _TRIES:
                break
            digits = match[0]
            for content in streams.at_start(bytes.fromhex(digits[: len(digits) // 2 * 2].decode())):
                yield content, "gzip"


def _decode64(run: bytes) -> bytes:
    text = re.sub(rb"\\n|[^A-Za-z0-9+/_-]", b"", run).translate(_URLSAFE)
    text = text[: len(text) - (len(text) % 4 == 1)]
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return b""


def _inflater(head: bytes) -> _Inflater:
    if head.startswith(_BZIP2):
        return bz2.BZ2Decompressor()
    if head.startswith(_XZ):
        return lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    return zlib.decompressobj(31 if head[0] == 0x1F else 15)


class _Inflater(Protocol):
    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes: ...


class _Streams:
    """Opens compressed streams until the budget is used up."""

    def __init__(self) -> None:
        self._left = MAX_STREAMS
        self._room = MAX_INFLATED

    def anywhere(self, data: bytes) -> Iterator[bytes]:
        """The content of every stream that begins somewhere in `data`."""
        view = memoryview(data)
        for head in _STREAM_HEADS:
            position = data.find(head)
            tries = 0
            while position >= 0 and tries < _TRIES and self._left:
                tries += 1
                yield from self.at_start(view[position:])
                position = data.find(head, position + 1)

    def at_start(self, data: bytes | memoryview) -> Iterator[bytes]:
        """The content of the stream that `data` begins with, nothing where it is none."""
        if not self._left or self._room <= 0 or len(data) < MIN_LENGTH:
            return
        try:
            content = _inflater(bytes(data[: len(_XZ)])).decompress(data, self._room)
        except (zlib.error, lzma.LZMAError, OSError):
            return
        if len(content) >= MIN_LENGTH:
            self._left -= 1
            self._room -= len(content)
            yield content
