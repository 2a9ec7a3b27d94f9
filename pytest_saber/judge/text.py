"""Quoting of untrusted text for messages and proofs."""

from __future__ import annotations

LIMIT = 200
_HIDDEN = frozenset(
    {*range(0x20), *range(0x7F, 0xA0), 0xAD, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070)}
    | {0xFEFF, *range(0xD800, 0xE000), *range(0xE0000, 0xE0080)}
)


def quote(text: str, limit: int = LIMIT) -> str:
    """`text` on one line: control, bidirectional and invisible characters escaped, the middle cut out beyond `limit`."""
    room = limit * 2
    if len(text) > room:
        text = f"{text[:limit]} ... {text[-(limit // 4) :]}"
    shown = "".join(_visible(character) for character in text.strip())
    if len(shown) <= limit:
        return shown
    tail = limit // 4
    return f"{shown[: limit - tail - 5]} ... {shown[-tail:]}"


def _visible(character: str) -> str:
    code = ord(character)
    if code not in _HIDDEN:
        return character
    if character == "\n":
        return "\\n"
    if character == "\t":
        return "\\t"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def block_end(text: str, start: int, brackets: str, most: int | None = None) -> int:
    """After the bracket (the second of `brackets`) that closes one opened just before `start`.

    Without one, the end of the text, or `most` characters after `start`. Strings and comments are no exception.
    """
    depth, stop = 1, len(text) if most is None else min(len(text), start + most)
    for position in range(start, stop):
        depth += (text[position] == brackets[0]) - (text[position] == brackets[1])
        if depth == 0:
            return position + 1
    return stop


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 path`, `3 paths`; `many` is the irregular plural."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def listing(items: list[str], shown: int = 3) -> str:
    """`a`, `a and b`, or `a, b, c and 4 more`."""
    if len(items) <= 1:
        return "".join(items)
    head = items[:shown]
    if len(items) > shown:
        return f"{', '.join(head)} and {len(items) - shown} more"
    return f"{', '.join(head[:-1])} and {head[-1]}"
