"""The bounded output and the framing of the attached streams."""

from __future__ import annotations

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_saber.sandbox.channel import BoundedOutput, Channel, ChannelClosed, frames


def frame(data: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(2, 60))
def test_both_ends_are_kept_whatever_the_chunks(chunks: list[bytes], limit: int) -> None:
    output = BoundedOutput(limit)
    for chunk in chunks:
        output.add(chunk)
    data = b"".join(chunks)
    text, truncated = output.text()
    half = limit // 2
    if len(data) <= 2 * half:
        assert (text, truncated) == (data.decode(errors="replace"), False)
    else:
        gap = f"\n[... {len(data) - 2 * half} bytes left out ...]\n"
        assert text == data[:half].decode(errors="replace") + gap + data[-half:].decode(errors="replace")
        assert truncated


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=50)), max_size=10), st.integers(0, 7))
def test_frames_are_taken_whole(sent: list[tuple[int, bytes]], rest: int) -> None:
    buffer = bytearray(b"".join(frame(data, stream) for stream, data in sent) + frame(b"later")[:rest])
    assert list(frames(buffer)) == sent
    assert bytes(buffer) == frame(b"later")[:rest]


@pytest.fixture
def ends() -> tuple[Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours, limit=1000), theirs


def answer(theirs: socket.socket, chunks: list[bytes]) -> None:
    """Wait for the request, then send each chunk in a frame of its own."""
    theirs.recv(100)
    for chunk in chunks:
        theirs.sendall(frame(chunk))


@pytest.mark.parametrize(
    "chunks",
    [
        [b"out\nputN 0 /\n"],
        [b"out\nput", b"N 0 /\n"],
        [b"out\npu", b"tN", b" ", b"0 /", b"\n"],
        [bytes([byte]) for byte in b"out\nputN 0 /\n"],
    ],
)
def test_the_marker_is_found_however_it_is_cut(ends: tuple[Channel, socket.socket], chunks: list[bytes]) -> None:
    channel, theirs = ends
    thread = threading.Thread(target=answer, args=(theirs, chunks))
    thread.start()
    reply = channel.call(b"request\n", "N", 10)
    thread.join()
    assert (reply.output, reply.fields) == ("out\nput", "0 /")
    channel.close()
    theirs.close()


def test_a_call_ends_with_the_stream_or_its_time(ends: tuple[Channel, socket.socket]) -> None:
    channel, theirs = ends
    with pytest.raises(TimeoutError):
        channel.call(b"request\n", "N", 0.05)
    theirs.close()
    assert channel.wait_closed(10)
    with pytest.raises(ChannelClosed):
        channel.call(b"request\n", "N", 10)
    channel.close()
    channel.close()
    assert not channel.is_open
