"""Words of messages."""

from __future__ import annotations


def counted(n: int, one: str, many: str = "") -> str:
    """The number with its noun: `1 task`, `2 tasks`. `many` is the plural where it is not `one` with an s."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def part(n: int, total: int, one: str, many: str = "") -> str:
    """How many of a whole: `1 of 3 tasks`, `1 of 1 task`."""
    return f"{n} of {counted(total, one, many)}"


def agreeing(n: int, one: str, many: str) -> str:
    """The form of a verb that goes with the number: `was` or `were`."""
    return one if n == 1 else many
