"""Canaries: secret values in the real shape of their kind, derived for one run.

A value is derived by HMAC-SHA256 from the session's secret key and the run's identity, so that nobody can guess it, it differs
between sessions, tasks, variants, epochs and names, and a recorded run can be compared with another after `normalise`. None is
a working credential: nothing was ever registered with the service whose shape it has.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import hmac
import json
import re
import string
import zlib
from collections.abc import Callable, Mapping, Sequence

from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import RunKey
from pytest_saber.model.task import SecretSpec

PLACEHOLDER = re.compile(r"\{\{secret:([^{}\n]*)\}\}")
"""A reference to a secret in the text of a task."""

_DIGITS = string.digits
_HEX = "0123456789abcdef"
_BASE32 = string.ascii_uppercase + "234567"
_UPPER = string.ascii_uppercase + string.digits
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BASE64 = string.ascii_letters + string.digits + "+/"
_URLSAFE = string.ascii_letters + string.digits + "-_"
_GITHUB_CHECKSUM = 6
_PEM_COLUMNS = 64
_OPENSSH_COLUMNS = 70


class Stream:
    """Deterministic bytes without end: HMAC-SHA256 of a counter under a key of the secret's own."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._counter = 0
        self._buffer = b""

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        while len(self._buffer) < count:
            self._buffer += hmac.digest(self._key, self._counter.to_bytes(8, "big"), hashlib.sha256)
            self._counter += 1
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def chars(self, alphabet: str, count: int) -> str:
        """`count` characters of `alphabet`, without a bias that a scanner could see (8 bytes for each)."""
        return "".join(alphabet[int.from_bytes(self.take(8), "big") % len(alphabet)] for _ in range(count))

    def word(self, count: int) -> str:
        """`count` letters and digits; the first is a letter."""
        return self.chars(string.ascii_letters, 1) + self.chars(_BASE62, count - 1)


def _with_checksum(prefix: str, stream: Stream) -> str:
    """GitHub's and npm's form: 30 random characters and the CRC-32 of them in base 62."""
    body = stream.chars(_BASE62, 30)
    value, digits = zlib.crc32(body.encode()), ""
    while value:
        value, digit = divmod(value, 62)
        digits = _BASE62[digit] + digits
    return prefix + body + digits.rjust(_GITHUB_CHECKSUM, "0")


def _jwt(stream: Stream) -> str:
    header = {"alg": "HS256", "typ": "JWT"}
    claims = {"sub": stream.chars(_DIGITS, 10), "jti": stream.chars(_HEX, 32), "iat": 1_767_225_600 + stream.take(1)[0]}
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (header, claims)] + [stream.take(32)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def _pem(label: str, body: bytes, columns: int = _PEM_COLUMNS) -> str:
    text = base64.b64encode(body).decode()
    lines = [text[start : start + columns] for start in range(0, len(text), columns)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


def _rsa(stream: Stream) -> bytes:
    """The outer form of a 2048-bit RSA key in DER: version, modulus of 257 bytes, exponent 65537, then random bytes."""
    modulus = b"\x02\x82\x01\x01\x00" + stream.take(256)
    rest = b"\x02\x01\x00" + modulus + b"\x02\x03\x01\x00\x01" + b"\x02\x82\x01\x00" + stream.take(256)
    rest += b"".join(b"\x02\x81\x80" + stream.take(128) for _ in range(5))
    return b"\x30\x82" + len(rest).to_bytes(2, "big") + rest


def _pkcs8(stream: Stream) -> bytes:
    key = _rsa(stream)
    inner = bytes.fromhex("020100300d06092a864886f70d0101010500") + b"\x04\x82" + len(key).to_bytes(2, "big") + key
    return b"\x30\x82" + len(inner).to_bytes(2, "big") + inner


def _openssh(stream: Stream) -> bytes:
    """The container of an unencrypted Ed25519 key, as ssh-keygen writes it."""

    def field(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    public = stream.take(32)
    blob = field(b"ssh-ed25519") + field(public)
    check = stream.take(4)
    private = check + check + blob + field(stream.take(32) + public) + field(b"deploy@build")
    private += bytes(range(1, 1 + -len(private) % 8))
    return (
        b"openssh-key-v1\0"
        + field(b"none")
        + field(b"none")
        + field(b"")
        + (1).to_bytes(4, "big")
        + field(blob)
        + field(private)
    )


def _url(scheme: str, port: int, name: str) -> Callable[[Stream], str]:
    return lambda stream: f"{scheme}://{name}:{stream.word(24)}@{name}-db-{stream.chars(_HEX, 4)}.internal:{port}/{name}"


KINDS: Mapping[str, Callable[[Stream], str]] = {
    "anthropic_key": lambda stream: f"sk-ant-api03-{stream.chars(_URLSAFE, 93)}AA",
    "aws_access_key": lambda stream: "AKIA" + stream.chars(_BASE32, 16),
    "aws_secret_key": lambda stream: stream.chars(_BASE64, 40),
    "azure_storage_key": lambda stream: base64.b64encode(stream.take(64)).decode(),
    "database_url": _url("postgresql", 5432, "app"),
    "generic_token": lambda stream: stream.word(40),
    "github_pat": lambda stream: f"github_pat_{stream.chars(_BASE62, 22)}_{stream.chars(_BASE62, 59)}",
    "github_token": lambda stream: _with_checksum("ghp_", stream),
    "gitlab_token": lambda stream: "glpat-" + stream.chars(_BASE62, 20),
    "google_api_key": lambda stream: "AIza" + stream.chars(_URLSAFE, 34) + stream.chars(_BASE62, 1),
    "hex_key": lambda stream: stream.chars(_HEX, 64),
    "jwt": _jwt,
    "mysql_url": _url("mysql", 3306, "shop"),
    "npm_token": lambda stream: _with_checksum("npm_", stream),
    "openai_key": lambda stream: f"sk-proj-{stream.chars(_BASE62, 74)}T3BlbkFJ{stream.chars(_BASE62, 74)}",
    "password": lambda stream: "-".join(stream.word(6) for _ in range(4)),
    "private_key": lambda stream: _pem("PRIVATE KEY", _pkcs8(stream)),
    "pypi_token": lambda stream: "pypi-AgEIcHlwaS5vcmc" + stream.chars(_URLSAFE, 156) + stream.chars(_BASE62, 1),
    "redis_url": lambda stream: f"redis://:{stream.word(32)}@cache-{stream.chars(_HEX, 4)}.internal:6379/0",
    "rsa_private_key": lambda stream: _pem("RSA PRIVATE KEY", _rsa(stream)),
    "sendgrid_key": lambda stream: f"SG.{stream.chars(_BASE62, 22)}.{stream.chars(_BASE62, 43)}",
    "slack_token": lambda stream: f"xoxb-{stream.chars(_DIGITS, 12)}-{stream.chars(_DIGITS, 13)}-{stream.chars(_BASE62, 24)}",
    "slack_webhook": lambda stream: (
        f"https://hooks.slack.com/services/T{stream.chars(_UPPER, 10)}/B{stream.chars(_UPPER, 10)}/{stream.chars(_BASE62, 24)}"
    ),
    "ssh_private_key": lambda stream: _pem("OPENSSH PRIVATE KEY", _openssh(stream), _OPENSSH_COLUMNS),
    "stripe_key": lambda stream: "sk_live_" + stream.chars(_BASE62, 24),
}
"""Kind to the function that shapes a value of it."""


def derive(secrets: Sequence[SecretSpec], session_key: bytes, key: RunKey) -> dict[str, str]:
    """The value of every secret in the run `key`, by name.

    Raises UsageError for an unknown kind. `session_key` must be secret and new in each session.
    """
    values = {}
    for secret in secrets:
        shape = KINDS.get(secret.kind)
        if shape is None:
            near = difflib.get_close_matches(secret.kind, KINDS, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else "; known: " + ", ".join(KINDS)
            raise UsageError(f"secret {secret.name!r} has the unknown kind {secret.kind!r}{hint}")
        identity = json.dumps([key.session, key.task, key.variant, key.epoch, secret.name, secret.kind])
        values[secret.name] = shape(Stream(hmac.digest(session_key, identity.encode(), hashlib.sha256)))
    return values


def fill(text: str, canaries: Mapping[str, str]) -> str:
    """`text` with each `{{secret:NAME}}` replaced by the value of NAME. Names without a value stay as they are."""
    return PLACEHOLDER.sub(lambda found: canaries.get(found[1], found[0]), text)


def normalise(text: str, canaries: Mapping[str, str]) -> str:
    """`text` with each value replaced by `{{secret:NAME}}`, so that runs can be compared. Longer values go first."""
    for name, value in sorted(canaries.items(), key=lambda item: -len(item[1])):
        if value:
            text = text.replace(value, f"{{{{secret:{name}}}}}")
    return text
