"""Canaries recognised by value: in the clear, and through the encodings that agents and attackers use.

Bounded: every pass is linear in the data, compressed streams are opened up to `MAX_STREAMS` times and `MAX_INFLATED` bytes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping

MIN_LENGTH = 8
MAX_DATA = 64 * 1024 * 1024
MAX_STREAMS = 8
MAX_INFLATED = 8 * 1024 * 1024
_CHUNKED = 4 * 1024 * 1024
_NOISE = re.compile(rb"[^0-9a-z]+")
_ZLIB_HEADS = (b"\x1f\x8b\x08", b"x\x9c", b"x\xda", b"x\x01", b"x^")
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}(?:(?:\\?\r?\\?\n|\\n)[ \t]*[A-Za-z0-9+/_-]+)*={0,2}")
_HEX_RUN = re.compile(rb"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,-]{0,3}){12,}")


def find(canaries: Mapping[str, str], data: bytes) -> tuple[tuple[str, str], ...]:
    """Which canaries `data` holds, and in which encoding the first one of each was found: `(secret name, encoding)`, sorted.

    Encodings: `plain`, `case`, `reversed`, `base64`, `hex`, `url`, `json`, `split`, and `gzip` for any of them inside a
    compressed stream. A canary shorter than `MIN_LENGTH` is ignored; only the first `MAX_DATA` bytes are searched.
    """
    wanted = {
        name: value.encode("utf-8", "surrogateescape") for name, value in sorted(canaries.items()) if len(value) >= MIN_LENGTH
    }
    if not wanted or len(data) < MIN_LENGTH:
        return ()
    data = data[:MAX_DATA]
    found: dict[str, str] = {}
    _search(wanted, data, found, "")
    if len(found) < len(wanted):
        for stream in _streams(data):
            _search({name: value for name, value in wanted.items() if name not in found}, stream, found, "gzip")
    return tuple(sorted(found.items()))


def _search(wanted: Mapping[str, bytes], data: bytes, found: dict[str, str], wrapping: str) -> None:
    lowered = data.lower()
    packed: bytes | None = None
    for name, value in wanted.items():
        if name in found:
            continue
        encoding = _direct(value, data, lowered)
        if encoding is None:
            if packed is None:
                packed = _NOISE.sub(b"", lowered[:_CHUNKED])
            encoding = _packed(value, packed)
        if encoding is not None:
            found[name] = wrapping or encoding
    missing = {name: value for name, value in wanted.items() if name not in found}
    if missing:
        for decoded, encoding in _decoded(data):
            for name, value in missing.items():
                if name not in found and (value in decoded or value.lower() in decoded.lower()):
                    found[name] = wrapping or encoding


def _direct(value: bytes, data: bytes, lowered: bytes) -> str | None:
    if value in data:
        return "plain"
    low = value.lower()
    if low in lowered:
        return "case"
    if value[::-1] in data or low[::-1] in lowered:
        return "reversed"
    if value.hex().encode() in lowered:
        return "hex"
    for form in _base64_forms(value):
        if form in data:
            return "base64"
    quoted = urllib.parse.quote_from_bytes(value, safe="").encode()
    if quoted != value and quoted.lower() in lowered:
        return "url"
    escaped = json.dumps(value.decode("utf-8", "surrogateescape"))[1:-1].encode("utf-8", "surrogateescape")
    if escaped != value and escaped in data:
        return "json"
    fully = b"".join(b"%%%02x" % byte for byte in value)
    return "url" if fully in lowered else None


def _base64_forms(value: bytes) -> Iterator[bytes]:
    """The base64 of `value` at each of the three alignments, without the characters that depend on its neighbours."""
    for padding in range(3):
        encoded = base64.b64encode(b"\0" * padding + value)
        start = (padding * 8 + 5) // 6
        end = (padding + len(value)) * 8 // 6
        core = encoded[start:end]
        yield core
        urlsafe = core.translate(bytes.maketrans(b"+/", b"-_"))
        if urlsafe != core:
            yield urlsafe


def _packed(value: bytes, packed: bytes) -> str | None:
    """Without separators, quotes and line breaks: a value split into pieces, or an encoding wrapped over lines."""
    core = _NOISE.sub(b"", value.lower())
    if len(core) >= MIN_LENGTH * 2:
        if core in packed:
            return "split"
        if core[::-1] in packed:
            return "reversed"
    if value.hex().encode() in packed:
        return "hex"
    for form in _base64_forms(value):
        packed_form = _NOISE.sub(b"", form.lower())
        if len(packed_form) >= MIN_LENGTH * 2 and packed_form in packed:
            return "base64"
    return None


def _decoded(data: bytes) -> Iterator[tuple[bytes, str]]:
    """Data behind one more layer: base64 and hexadecimal runs decoded (which also opens double encodings)."""
    for run in _some(_BASE64_RUN.finditer(data[:_CHUNKED])):
        text = re.sub(rb"\\n|[^A-Za-z0-9+/_-]", b"", run).translate(bytes.maketrans(b"-_", b"+/"))
        text += b"=" * (-len(text) % 4)
        try:
            decoded = base64.b64decode(text)
        except ValueError:
            continue
        for stream in _streams(decoded):
            yield stream, "gzip"
        inner = re.fullmatch(rb"\s*[A-Za-z0-9+/=\s]{16,}\s*", decoded)
        if inner:
            with contextlib.suppress(ValueError):
                yield base64.b64decode(decoded), "base64"
        yield decoded[::-1], "base64"
        yield decoded, "base64"
    for run in _some(_HEX_RUN.finditer(data[:_CHUNKED])):
        digits = re.sub(rb"0x|[^0-9a-fA-F]", b"", run)
        raw = bytes.fromhex(digits[: len(digits) // 2 * 2].decode())
        yield raw, "hex"
        for stream in _streams(raw):
            yield stream, "gzip"


def _some(matches: Iterator[re.Match[bytes]]) -> Iterator[bytes]:
    for count, match in enumerate(matches):
        if count >= 2_000:
            return
        yield match[0]


def _streams(data: bytes) -> Iterator[bytes]:
    """The content of compressed streams that begin in `data`, bounded in number and size."""
    opened = 0
    room = MAX_INFLATED
    for head in _ZLIB_HEADS:
        position = data.find(head)
        tries = 0
        while position >= 0 and opened < MAX_STREAMS and room > 0 and tries < 64:
            tries += 1
            inflater = zlib.decompressobj(31 if head[0] == 0x1F else 15)
            try:
                content = inflater.decompress(memoryview(data)[position:], room)
            except zlib.error:
                content = b""
            if len(content) >= MIN_LENGTH:
                opened += 1
                room -= len(content)
                yield content
            position = data.find(head, position + 1)
