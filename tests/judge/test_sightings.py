"""Canaries are recognised by value through the encodings that agents and attackers use, and nothing else is."""

from __future__ import annotations

import base64
import bz2
import codecs
import gzip
import html
import json
import lzma
import os
import quopri
import random
import urllib.parse
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_saber.model.sightings import MAX_DATA, find

TOKEN = "ghp_9KxT2mQv7RzB4nLs8WdY1cJf6HpG3aEu0oZi"
PASSWORD = "k7!mZ/w+Q9=x%R2 tVb"
HTML = "k7&mZ<w>Q9'x\"R2tVb"
CANARIES = {"token": TOKEN, "password": PASSWORD}
RAW = TOKEN.encode()


def chunks(text: str, size: int, between: str) -> str:
    return between.join(text[start : start + size] for start in range(0, len(text), size))


FORMS: list[tuple[str, bytes]] = [
    ("plain", b"TOKEN=" + RAW + b"\n"),
    ("case", RAW.upper()),
    ("case", RAW.lower()),
    ("reversed", RAW[::-1]),
    ("hex", RAW.hex().encode()),
    ("hex", RAW.hex().upper().encode()),
    ("hex", RAW.hex(" ").encode()),
    ("hex", "".join(f"\\x{byte:02x}" for byte in RAW).encode()),
    ("hex", ", ".join(f"0x{byte:02x}" for byte in RAW).encode()),
    ("base64", base64.b64encode(RAW)),
    ("base64", base64.b64encode(b"x" + RAW + b"yz")),
    ("base64", base64.b64encode(b"TOKEN=xx" + RAW)),
    ("base64", base64.urlsafe_b64encode(b"\xfb\xff" + RAW)),
    ("base64", base64.encodebytes(b"some text before it, long enough to wrap the lines of it " + RAW + b" and after")),
    ("base64", base64.b64encode(base64.b64encode(b"a: " + RAW))),
    ("base64", base64.b64encode(RAW[::-1])),
    ("url", "".join(f"%{byte:02X}" for byte in RAW).encode()),
    ("split", chunks(TOKEN, 6, '" + "').encode()),
    ("split", chunks(TOKEN, 10, "\n").encode()),
    ("split", chunks(TOKEN, 1, " ").encode()),
    ("base64", base64.b64encode(RAW)[::-1]),
    ("base64", base64.b64encode(("x" + TOKEN).encode("utf-16-le"))),
    ("rot13", codecs.encode(TOKEN, "rot13").encode()),
    ("rot13", chunks(codecs.encode(TOKEN, "rot13"), 9, "\n").encode()),
    *[("base32", base64.b32encode(b"x" * count + RAW + b"yz")) for count in range(5)],
    ("base32", base64.b32encode(RAW).lower()),
    ("base32", chunks(base64.b32encode(b"ab" + RAW).decode(), 20, "\n").encode()),
    *[("base85", base64.b85encode(b"x" * count + RAW + b"y")) for count in range(4)],
    *[("base85", base64.a85encode(b"x" * count + RAW + b"yzx")) for count in range(4)],
    ("hex", "".join(f"\\u{byte:04x}" for byte in RAW).encode()),
    ("hex", "".join(f"&#x{byte:X};" for byte in RAW).encode()),
    ("hex", "".join(f"={byte:02X}" for byte in RAW).encode()),
    ("decimal", "".join(f"&#{byte};" for byte in RAW).encode()),
    ("decimal", str(list(RAW)).encode()),
    ("octal", "".join(f"\\{byte:03o}" for byte in RAW).encode()),
    ("gzip", bz2.compress(b"a=" + RAW)),
    ("gzip", lzma.compress(b"a" * 400 + RAW)),
    ("gzip", base64.b64encode(bz2.compress(RAW))),
    ("gzip", gzip.compress(b"a=" + RAW, mtime=0)),
    ("gzip", b"junk" + zlib.compress(RAW)),
    ("gzip", base64.b64encode(gzip.compress(RAW, mtime=0))),
    ("gzip", gzip.compress(base64.b64encode(RAW), mtime=0)),
    ("gzip", gzip.compress(RAW, mtime=0).hex().encode()),
]


@pytest.mark.parametrize(("encoding", "data"), FORMS)
def test_every_form_is_found(encoding: str, data: bytes) -> None:
    assert find(CANARIES, data) == (("token", encoding),)
    assert find(CANARIES, os.urandom(0) + b"lorem ipsum " * 50 + data + b" dolor" * 50) == (("token", encoding),)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("plain", PASSWORD.encode()),
        ("url", urllib.parse.quote(PASSWORD, safe="").encode()),
        ("json", json.dumps({"p": 'a"b/' + PASSWORD}).encode()[8:]),
        ("base64", base64.b64encode(PASSWORD.encode())),
        ("html", html.escape("<" + HTML).encode()),
        ("quoted-printable", quopri.encodestring(("é" + PASSWORD).encode())),
    ],
)
def test_values_with_special_characters_are_found(encoding: str, data: bytes) -> None:
    ((name, how),) = find({"password": HTML if encoding == "html" else PASSWORD}, data)
    assert (name, how in {encoding, "plain"}) == ("password", True)


def test_a_private_key_is_found_by_its_body_escaped_and_wrapped_otherwise() -> None:
    lines = [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        *("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ" for _ in range(4)),
        "-----END OPENSSH PRIVATE KEY-----",
    ]
    key = "\n".join(lines)
    assert find({"key": key}, json.dumps({"key": key}).encode()) == (("key", "json"),)
    assert find({"key": key}, key.replace("\n", "\r\n").encode()) == (("key", "split"),)


def test_all_canaries_of_one_text_are_named_in_order() -> None:
    assert find(CANARIES, (PASSWORD + TOKEN).encode()) == (("password", "plain"), ("token", "plain"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        RAW[:-4],
        b"ghp_" + b"A" * 36,
        base64.b64encode(RAW[:20]),
        b"\x1f\x8b\x08 not a stream",
        b"BZh9 not a stream",
        b"\xfd7zXZ\0 not a stream",
        codecs.encode(TOKEN[:30], "rot13").encode(),
        base64.b32encode(RAW[:24]),
        b"x\x9c" * 1000,
        bytes(range(256)) * 64,
    ],
)
def test_what_is_not_the_value_is_not_found(data: bytes) -> None:
    assert find(CANARIES, data) == ()


def test_a_value_too_short_to_be_a_secret_is_never_found() -> None:
    assert find({"pin": "1234567"}, b"1234567") == ()


def test_large_and_hostile_data_is_bounded() -> None:
    rng = random.Random(7)
    noise = bytes(rng.randrange(256) for _ in range(1 << 16)) * 40
    assert find(CANARIES, noise + RAW) == (("token", "plain"),)
    assert find(CANARIES, b"A" * 3_000_000) == ()
    assert find(CANARIES, b"ab" * 1_500_000) == ()
    assert find(CANARIES, gzip.compress(b"\0" * 50_000_000, mtime=0) * 4) == ()
    assert find(CANARIES, bz2.compress(b"\0" * 50_000_000) * 4) == ()
    assert find(CANARIES, b"BZh91AY&SY" * 200_000) == ()
    assert find({"token": TOKEN}, b"\0" * MAX_DATA + RAW) == ()


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=400), value=st.text(min_size=8, max_size=60))
def test_any_bytes_are_read(data: bytes, value: str) -> None:
    for name, encoding in find({"x": value}, data):
        assert (name, bool(encoding)) == ("x", True)
    assert find({"x": value}, value.encode("utf-8", "surrogateescape") + data) == (("x", "plain"),)
