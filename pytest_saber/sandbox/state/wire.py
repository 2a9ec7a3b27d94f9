"""Records of a scan as bytes: a line of JSON, followed by as many bytes of content as its `content` says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

Header = Mapping[str, Any]
Emit = Callable[[Header, "bytes | None"], None]

MAX_HEADER = 1 << 20


class WireError(ValueError):
    """The other side did not speak this format, or said more than allowed."""


class Output(Protocol):
    """A binary stream to write to."""

    def write(self, data: bytes, /) -> object:
        """All of `data`."""
        ...


def writer(output: Output) -> Emit:
    """An emitter that writes records to a binary stream."""

    def emit(header: Header, content: bytes | None) -> None:
        line = json.dumps({**header, "content": None if content is None else len(content)})
        output.write(line.encode("ascii") + b"\n")
        if content:
            output.write(content)

    return emit


def records(chunks: Iterator[bytes], limit: int) -> Iterator[tuple[Header, bytes | None]]:
    """Read records back. Raises WireError on anything malformed, and on more than `limit` bytes in all."""
    pending, total = bytearray(), 0

    def more() -> bool:
        nonlocal total
        chunk = next(chunks, None)
        if chunk is None:
            return False
        total += len(chunk)
        if total > limit:
            raise WireError(f"the scan sent more than {limit} bytes")
        pending.extend(chunk)
        return True

    while True:
        start = 0
        while (end := pending.find(b"\n", start)) < 0:
            start = len(pending)
            if start > MAX_HEADER:
                raise WireError("the scan sent a line that is too long")
            if not more():
                if pending:
                    raise WireError(f"the scan ended inside a record: {bytes(pending[:200])!r}")
                return
        header = _header(bytes(pending[:end]))
        size = header["content"]
        while size and len(pending) < end + 1 + size:
            if not more():
                raise WireError("the scan ended inside a file's content")
        content = None if size is None else bytes(pending[end + 1 : end + 1 + size])
        del pending[: end + 1 + (size or 0)]
        yield header, content


def _header(line: bytes) -> Header:
    try:
        header = json.loads(line)
    except ValueError as error:
        raise WireError(f"the scan sent no JSON: {line[:200]!r}") from error
    if not isinstance(header, dict):
        raise WireError("the scan sent a record that is no object")
    size = header.setdefault("content", None)
    if size is not None and not (isinstance(size, int) and size >= 0):
        raise WireError("the scan sent a wrong content size")
    return header
