"""Tables that are wider than the terminal: what does not fit beside the rest goes below it."""

from __future__ import annotations

from collections.abc import Sequence


def blocks(sizes: Sequence[int], room: int, importance: Sequence[int]) -> list[list[int]]:
    """Columns by number, block by block, each no wider than `room` with two blanks before each column.

    The first block takes columns in the order of `importance` until one does not fit; the others follow in their own order.
    A column that is wider than `room` is left out.
    """
    left = [index for index in importance if sizes[index] + 2 <= room]
    found: list[list[int]] = []
    while left:
        block: list[int] = []
        for index in left:
            if sum(sizes[i] + 2 for i in [*block, index]) > room:
                break
            block.append(index)
        found.append(sorted(block))
        left = sorted(set(left) - set(block))
    return found
