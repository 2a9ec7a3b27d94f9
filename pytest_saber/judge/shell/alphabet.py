"""Shell text in the characters that the grammar's scanner can be given.

The C scanner of tree-sitter-bash passes code points to `isdigit`, which looks them up in a table of 256 entries: some
characters of other scripts make it read outside the process's memory (tree-sitter-bash issue 337, open in 0.25.1). And it
takes foreign letters and blanks for bash's own. So each byte beyond ASCII is given to it as two C1 control characters, which
are neither letter, digit nor blank, and what it says is turned back.
"""

from __future__ import annotations

import re

from pytest_saber.model.octets import octets

_FIRST = 0x90
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_CODED = re.compile(r"[\x90-\x9f]+")


def encode(text: str) -> bytes:
    """What the parser is given for `text`; lone surrogates, which stand for bytes that are no UTF-8, become those bytes."""
    return _FOREIGN.sub(_code, text).encode()


def decode(parsed: bytes) -> str:
    """The text for a part of what `encode` made. A part cut inside a character has a replacement character there."""
    return _CODED.sub(_plain, parsed.decode("utf-8", "replace"))


def _code(match: re.Match[str]) -> str:
    return "".join(chr(_FIRST + (byte >> 4)) + chr(_FIRST + (byte & 15)) for byte in octets(match[0]))


def _plain(match: re.Match[str]) -> str:
    digits = [ord(character) - _FIRST for character in match[0]]
    return bytes(high << 4 | low for high, low in zip(digits[::2], digits[1::2], strict=False)).decode(
        "utf-8", "surrogateescape"
    )
