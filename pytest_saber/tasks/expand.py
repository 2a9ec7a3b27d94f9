"""From a document to its items: the variants' overrides merged in, their parameters put in place. Lines survive both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_saber.errors import Problem
from pytest_saber.tasks.document import Entry, Node
from pytest_saber.tasks.fields import clip, suggest

PARAMETER = re.compile(r"\{\{param:([^{}\n]*)\}\}")
MAX_TEXT = 4 << 20
"""Characters of one item after its parameters are in place."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """One item: the merged tree, without `parameters` and `variants`, and what went wrong on the way."""

    variant: str
    tree: Node
    problems: tuple[Problem, ...] = ()


def expand(root: Node, shown: str) -> Iterator[Expansion]:
    """The items of a document: one for each variant, or the document itself when there are none.

    `parameters` and `variants` must have been validated; what is malformed in them is passed over here.
    """
    entries = root.entries()
    variants = entries["variants"].node.entries() if "variants" in entries else {}
    base = Node(root.line, {key: entry for key, entry in entries.items() if key not in ("parameters", "variants")})
    own = _parameters(root)
    if not variants:
        yield _fill(base, own, "", shown)
        return
    for name, entry in variants.items():
        override = entry.node.entries().get("override")
        tree = merge(base, override.node) if override else base
        yield _fill(tree, {**own, **_parameters(entry.node)}, name, shown)


def merge(base: Node, override: Node) -> Node:
    """`base` with `override` merged in: mappings key by key; lists and scalars replace; null removes the key."""
    if not isinstance(base.value, Mapping) or not isinstance(override.value, Mapping):
        return override
    merged = dict(base.value)
    for key, entry in override.value.items():
        if entry.node.value is None:
            merged.pop(key, None)
        elif key in merged:
            node = merge(merged[key].node, entry.node)
            merged[key] = Entry(entry.line if node is entry.node else merged[key].line, node)
        else:
            merged[key] = Entry(entry.line, merge(Node(entry.node.line, {}), entry.node))
    return Node(base.line, merged)


def _parameters(node: Node) -> dict[str, str]:
    entry = node.entries().get("parameters")
    values = entry.node.entries() if entry else {}
    return {name: str(value.node.value) for name, value in values.items() if isinstance(value.node.value, str | int)}


@dataclass(slots=True)
class _Filler:
    """Puts parameters in place and collects the names that have no value."""

    parameters: Mapping[str, str]
    shown: str
    problems: list[Problem] = field(default_factory=list)
    size: int = 0

    def node(self, node: Node) -> Node:
        if isinstance(node.value, str):
            text = self.text(node.value, node)
            return node if text is node.value else Node(node.line, text, text, node.literal)
        if isinstance(node.value, tuple):
            return Node(node.line, tuple(self.node(item) for item in node.value))
        if isinstance(node.value, Mapping):
            filled: dict[str, Entry] = {}
            for key, entry in node.value.items():
                name = self.text(key, Node(entry.line, key))
                if name in filled:
                    self.problems.append(
                        Problem(self.shown, entry.line, f"duplicate key {name!r} once parameters are in place")
                    )
                filled[name] = Entry(entry.line, self.node(entry.node))
            return Node(node.line, filled)
        return node

    def text(self, text: str, node: Node) -> str:
        self.size += len(text)
        if "{{param:" not in text:
            return text

        def value(found: re.Match[str]) -> str:
            name = found[1]
            known = self.parameters.get(name)
            if known is None:
                hint = suggest(name, self.parameters) or "; define it under `parameters`"
                self.problems.append(
                    Problem(self.shown, node.line_at(found.start()), f"unknown parameter {clip(name)} in {found[0]}{hint}")
                )
                return name
            self.size += len(known)
            return known if self.size <= MAX_TEXT else ""

        return PARAMETER.sub(value, text)


def _fill(tree: Node, parameters: Mapping[str, str], variant: str, shown: str) -> Expansion:
    filler = _Filler(parameters, shown)
    filled = filler.node(tree)
    if filler.size > MAX_TEXT:
        filler.problems.append(
            Problem(shown, tree.line, f"more than {MAX_TEXT >> 20} MiB of text once parameters are in place")
        )
    return Expansion(variant, filled, tuple(filler.problems))
