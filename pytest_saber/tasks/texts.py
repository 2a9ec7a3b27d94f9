"""Every text of a document with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_saber.tasks.document import Node


@dataclass(frozen=True, slots=True)
class Text:
    """A text or a key of a task with its location in the document."""

    loc: tuple[str | int, ...]
    text: str
    node: Node
    is_key: bool


def texts(node: Node, *loc: str | int) -> Iterator[Text]:
    """Every text and key below `loc`, which need not exist."""
    for part in loc:
        entry = node.entries().get(str(part))
        if entry is None:
            return
        node = entry.node
    yield from _below(node, loc)


def _below(node: Node, loc: tuple[str | int, ...]) -> Iterator[Text]:
    if isinstance(node.value, str):
        yield Text(loc, node.value, node, False)
    elif isinstance(node.value, tuple):
        for index, item in enumerate(node.value):
            yield from _below(item, (*loc, index))
    for key, entry in node.entries().items():
        yield Text((*loc, key), key, Node(entry.line, key), True)
        yield from _below(entry.node, (*loc, key))
