"""The object database of a git directory, read from memory without git: loose objects and packs (gitformat-pack(5)).

The input is hostile: sizes, delta depth, numbers and time are bounded, and nothing outside the given bytes is ever read.
"""

from __future__ import annotations

import bisect
import struct
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFS_DELTA, _REF_DELTA = 6, 7
_MAX_OBJECT = 16 << 20
_MAX_INFLATED = 256 << 20
_MAX_KEPT = 64 << 20
_MAX_CHAIN = 4096
_MAX_PACKED = 200_000
_HEX = frozenset("0123456789abcdef")


_Key = TypeVar("_Key")


class GitError(ValueError):
    """The repository is damaged, hostile, or of a kind that is not supported."""


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object: `commit`, `tree`, `blob` or `tag`, and its data."""

    kind: str
    data: bytes


@dataclass(frozen=True, slots=True)
class _Packed:
    pack: _Pack
    offset: int


@dataclass(frozen=True, slots=True)
class _Pack:
    data: bytes
    offsets: Mapping[str, int]
    starts: Sequence[int]
    resolved: dict[int, GitObject] = field(default_factory=dict)
    """Objects by offset: many deltas share a base."""

    def stream(self, position: int) -> memoryview:
        """The compressed bytes from `position` up to where the next entry starts."""
        following = bisect.bisect_right(self.starts, position)
        return memoryview(self.data)[position : self.starts[following] if following < len(self.starts) else len(self.data)]


class ObjectStore:
    """Objects by id. `deadline` is a `time.monotonic()` moment after which reading raises GitError."""

    def __init__(self, files: Mapping[str, bytes], deadline: float) -> None:
        self._deadline = deadline
        self._inflated = 0
        self._loose: dict[str, bytes] = {}
        self._packed: dict[str, _Packed] = {}
        self._kept: dict[str, GitObject] = {}
        self._kept_bytes = 0
        self.sources: set[str] = set()
        """Names of the files that objects were found in."""
        for name, content in files.items():
            parts = name.split("/")
            if parts[0] != "objects" or len(parts) != 3:
                continue
            if is_id(oid := parts[1] + parts[2]):
                self._loose[oid] = content
                self.sources.add(name)
            elif parts[1] == "pack" and parts[2].endswith(".idx"):
                pack_name = name.removesuffix(".idx") + ".pack"
                pack = files.get(pack_name)
                offsets = _index(content) if pack is not None else None
                if pack is not None and offsets is not None:
                    self.sources.add(pack_name)
                    shared = _Pack(pack, offsets, sorted(offsets.values()))
                    self._packed |= {oid: _Packed(shared, offset) for oid, offset in offsets.items()}

    def __iter__(self) -> Iterator[str]:
        yield from self._packed
        yield from (oid for oid in self._loose if oid not in self._packed)

    def __contains__(self, oid: str) -> bool:
        return oid in self._packed or oid in self._loose

    def get(self, oid: str) -> GitObject | None:
        """The object, or None when there is none or its bytes are damaged. Raises GitError when a budget is used up."""
        self._check_time()
        try:
            if oid in self._packed:
                return self._from_pack(self._packed[oid])
            if oid not in self._loose:
                return None
            if oid not in self._kept:
                return self._keep(self._kept, oid, self._from_loose(self._loose[oid]))
            return self._kept[oid]
        except (zlib.error, IndexError, ValueError, struct.error) as error:
            if isinstance(error, GitError):
                raise
            return None

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise GitError("reading it took too long")

    def _keep(self, place: dict[_Key, GitObject], key: _Key, found: GitObject) -> GitObject:
        if self._kept_bytes + len(found.data) < _MAX_KEPT:
            place[key] = found
            self._kept_bytes += len(found.data)
        return found

    def _inflate(self, data: memoryview | bytes, limit: int) -> bytes:
        """Raises zlib.error on damage and GitError when all objects together are too large."""
        inflater = zlib.decompressobj()
        result = inflater.decompress(data, limit + 1)
        self._count(len(result))
        if len(result) > limit:
            raise zlib.error("longer than it says")
        return result

    def _count(self, size: int) -> None:
        self._inflated += size
        if self._inflated > _MAX_INFLATED:
            raise GitError(f"its objects are larger than {_MAX_INFLATED} bytes")

    def _from_loose(self, raw: bytes) -> GitObject:
        header, separator, data = self._inflate(raw, _MAX_OBJECT).partition(b"\0")
        kind, _, size = header.decode("ascii").partition(" ")
        if not separator or kind not in _KINDS.values() or int(size) != len(data):
            raise ValueError("a loose object is damaged")
        return GitObject(kind, data)

    def _from_pack(self, packed: _Packed) -> GitObject:
        """Resolve a chain of deltas, innermost base first. Raises ValueError and zlib.error on damage."""
        deltas: list[tuple[int, bytes]] = []
        pack, offset, seen = packed.pack, packed.offset, set[int]()
        while (base := pack.resolved.get(offset)) is None:
            if offset in seen or len(deltas) > _MAX_CHAIN or not 12 <= offset < len(pack.data):
                raise ValueError("a delta has no base")
            seen.add(offset)
            kind, size, position = _entry(pack.data, offset)
            if size > _MAX_OBJECT:
                raise ValueError("an object is too large")
            if kind in _KINDS:
                base = GitObject(_KINDS[kind], self._inflate(pack.stream(position), size))
                self._keep(pack.resolved, offset, base)
                break
            start = offset
            if kind == _OFS_DELTA:
                distance, position = _distance(pack.data, position)
                offset -= distance
            elif kind == _REF_DELTA:
                oid, position = pack.data[position : position + 20].hex(), position + 20
                offset = pack.offsets.get(oid, -1)
            else:
                raise ValueError("an entry of a pack is of an unknown kind")
            deltas.append((start, self._inflate(pack.stream(position), size)))
        for start, delta in reversed(deltas):
            self._check_time()
            base = GitObject(base.kind, _apply(base.data, delta))
            self._count(len(base.data))
            self._keep(pack.resolved, start, base)
        return base


def is_id(text: str) -> bool:
    """Whether it is a full object id (SHA-1) in hexadecimal."""
    return len(text) == 40 and _HEX.issuperset(text)


def _index(data: bytes) -> dict[str, int] | None:
    """Object id to offset; None for an index that does not have the documented form, as if its pack were not there.

    Raises GitError for one of too many objects.
    """
    try:
        if data[:4] != b"\xfftOc":
            (count,) = struct.unpack_from(">I", data, 1020)
            if 1024 + count * 24 > len(data):
                return None
            _check_count(count)
            entries = (struct.unpack_from(">I20s", data, 1024 + index * 24) for index in range(count))
            return {oid.hex(): offset for offset, oid in entries}
        version, count = struct.unpack_from(">I", data, 4)[0], struct.unpack_from(">I", data, 8 + 1020)[0]
        if version != 2 or 1032 + count * 28 > len(data):
            return None
        _check_count(count)
        names, offsets = 1032, 1032 + count * 24
        large = offsets + count * 4
        found = {}
        for index in range(count):
            (offset,) = struct.unpack_from(">I", data, offsets + index * 4)
            if offset & 0x80000000:
                (offset,) = struct.unpack_from(">Q", data, large + (offset & 0x7FFFFFFF) * 8)
            found[data[names + index * 20 : names + index * 20 + 20].hex()] = offset
    except struct.error:
        return None
    return found


def _check_count(count: int) -> None:
    if count > _MAX_PACKED:
        raise GitError(f"a pack has {count} objects, more than {_MAX_PACKED}")


def _entry(pack: bytes, offset: int) -> tuple[int, int, int]:
    """(type, inflated size, position of what follows) of a pack entry's header."""
    byte = pack[offset]
    kind, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & 0x80:
        offset += 1
        byte = pack[offset]
        size |= (byte & 0x7F) << shift
        shift += 7
        if shift > 60:
            raise ValueError("an entry's size is out of range")
    return kind, size, offset + 1


def _distance(pack: bytes, position: int) -> tuple[int, int]:
    byte = pack[position]
    distance = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = pack[position]
        distance = (distance + 1) << 7 | byte & 0x7F
        if distance > len(pack):
            raise ValueError("a delta's base is outside its pack")
    return distance, position + 1


def _varint(delta: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = delta[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, position
        if shift > 60:
            raise ValueError("a delta's size is out of range")


def _apply(base: bytes, delta: bytes) -> bytes:
    source, position = _varint(delta, 0)
    target, position = _varint(delta, position)
    if source != len(base) or target > _MAX_OBJECT:
        raise ValueError("a delta does not fit its base")
    result = bytearray()
    while position < len(delta):
        command = delta[position]
        position += 1
        if command & 0x80:
            offset = size = 0
            for bit in range(4):
                if command >> bit & 1:
                    offset |= delta[position] << 8 * bit
                    position += 1
            for bit in range(3):
                if command >> (4 + bit) & 1:
                    size |= delta[position] << 8 * bit
                    position += 1
            size = size or 0x10000
            if offset + size > len(base):
                raise ValueError("a delta copies from outside its base")
            result += base[offset : offset + size]
        elif command:
            result += delta[position : position + command]
            position += command
        else:
            raise ValueError("a delta has a reserved command")
        if len(result) > target:
            raise ValueError("a delta makes more than it says")
    if len(result) != target:
        raise ValueError("a delta makes less than it says")
    return bytes(result)
