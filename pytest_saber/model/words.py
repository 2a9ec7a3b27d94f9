"""Words of messages."""

from __future__ import annotations


def counted(n: int, one: str, many: str = "") -> str:
    """The number with its noun: `1 task`, `2 tasks`. `many` is the plural where it is not `one` with an s."""
    return f"{n} {one if n == 1 else many or one + 's'}"
