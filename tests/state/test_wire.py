"""Records between a scan and its reader, well formed and not."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from pytest_saber.model import sightings
from pytest_saber.sandbox.state import wire
from pytest_saber.sandbox.state.assemble import Assembly, Memory
from pytest_saber.sandbox.state.content import Bounds
from pytest_saber.sandbox.state.scan import Request
from pytest_saber.sandbox.state.wire import Header, WireError

_RECORDS: list[tuple[dict[str, object], bytes | None]] = [
    ({"k": "note", "text": "bad \udcff name\n"}, None),
    ({"k": "entry", "path": "/a"}, b"content\nwith\0lines\n"),
    ({"k": "entry", "path": "/empty"}, b""),
    ({"k": "done"}, None),
]


def _bytes() -> bytes:
    buffer = io.BytesIO()
    emit = wire.writer(buffer)
    for header, content in _RECORDS:
        emit(header, content)
    return buffer.getvalue()


def _read(data: bytes, size: int = 1 << 16, limit: int = 1 << 30) -> list[tuple[Header, bytes | None]]:
    def chunks() -> Iterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return list(wire.records(chunks(), limit))


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_records_come_back_however_they_are_cut(size: int) -> None:
    back = [
        ({name: value for name, value in header.items() if name != "content"}, content)
        for header, content in _read(_bytes(), size)
    ]
    assert back == _RECORDS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not json\n", "the scan sent no JSON: b'not json'"),
        (b"[1]\n", "the scan sent a record that is no object"),
        (b'{"content": -1}\n', "the scan sent a wrong content size"),
        (b'{"content": "x"}\n', "the scan sent a wrong content size"),
        (b'{"content": 10}\nshort', "the scan ended inside a file's content"),
        (b'{"k": 1}', "the scan ended inside a record: "),
        (b"x" * (2 << 20), "the scan sent a line that is too long"),
    ],
)
def test_what_is_malformed_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=f"^{message}"):
        _read(data)


def test_too_much_is_refused() -> None:
    with pytest.raises(WireError, match="the scan sent more than 10 bytes"):
        _read(_bytes(), limit=10)


def _assembly() -> Assembly:
    return Assembly("/w", {}, sightings.find, Memory(), 10)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"k": "surprise"}, "a record of unknown kind 'surprise'"),
        ({}, "a wrong record: KeyError"),
        ({"k": "entry", "view": "now", "path": "/a"}, "a wrong record: KeyError"),
        (
            {
                "k": "entry",
                "view": "now",
                "path": "/a",
                "type": "door",
                "mode": 0,
                "uid": 0,
                "gid": 0,
                "mtime": 0,
                "xattrs": {},
            },
            "door",
        ),
        ({"k": "process", "pid": "x"}, "a wrong record: ValueError"),
        ({"k": "git", "view": "now", "path": "/never/announced", "name": "HEAD", "mode": 1}, "a wrong record: KeyError"),
    ],
)
def test_records_of_a_wrong_form_are_refused(record: dict[str, object], message: str) -> None:
    with pytest.raises(WireError, match=message):
        _assembly().add(record, None)


def test_a_scan_that_did_not_end_is_refused() -> None:
    with pytest.raises(WireError, match="the scan ended early"):
        _assembly().finish()


def test_a_request_survives_the_way() -> None:
    request = Request(
        pid=1, container="c", upper="/u", lower=("/l",), mounts=(("/s", "/p"),), final=True,
        known=("/a\udcff",), cuts=("/c",), repositories=("/r",), bounds=Bounds(seconds=1.5),
    )  # fmt: skip
    assert Request.loads(request.dumps()) == request
