"""Validation errors in the words of an author: the line, the offending value, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pytest_saber.errors import Problem
from pytest_saber.tasks.document import Node
from pytest_saber.tasks.fields import clip, nearest, suggest
from pytest_saber.tasks.schema import VERSION, TaskForm

MAX_KEY = 80
"""Characters of a key that an error shows."""
MAX_LISTED = 16
"""More known keys than these are no help in an error; the page of the format has them."""

_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_HINTS: Mapping[str, Callable[[Node], str]] = {
    "bool_type": lambda node: (
        "true or false" + (f"; write {_BOOLEANS[node.raw.lower()]}" if node.raw.lower() in _BOOLEANS else "")
    ),
    "int_type": lambda _: "a whole number",
    "int_from_float": lambda _: "a whole number",
    "float_type": lambda _: "a number",
    "list_type": lambda node: "a list" + (f"; write [{clip(node.value)}]" if isinstance(node.value, str) else ""),
    "dict_type": lambda _: "a mapping",
    "model_type": lambda node: "a mapping" + ("; write {}" if node.value is None else ""),
}
_BOUNDS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}


def explain(error: ValidationError, tree: Node, shown: str, limit: int) -> Iterator[Problem]:
    """One problem for each of the first `limit` faults that pydantic found. A missing key that stands there misspelled is one
    fault, not two."""
    details = error.errors(include_url=False, include_context=True)[:limit]
    places = [_place(tree, detail["loc"]) for detail in details]
    meant = {
        (place[:-1], word)
        for detail, place in zip(details, places, strict=True)
        if detail["type"] == "extra_forbidden"
        for word in nearest(str(place[-1]), _free_keys(tree, place[:-1]))
    }
    for detail, place in zip(details, places, strict=True):
        if detail["type"] != "missing" or (place, detail["loc"][-1]) not in meant:
            node, line = tree.find(detail["loc"])
            yield Problem(shown, line or 1, _text(detail, place, node, tree))


def _text(detail: ErrorDetails, place: tuple[str | int, ...], node: Node, tree: Node) -> str:
    kind, loc = detail["type"], detail["loc"]
    context: dict[str, Any] = detail.get("ctx", {})
    name = dotted(place)
    if kind == "extra_forbidden":
        parent, key = place[:-1], str(place[-1])
        noun, known = _mapping(parent)
        listed = f"; known: {', '.join(known)}" if known and len(known) <= MAX_LISTED else ""
        hint = suggest(key, _free_keys(tree, parent)) or listed
        inside = f" in `{dotted(parent)}`" if parent and noun == "key" else ""
        return f"unknown {noun} {key!r}{inside}{hint}"
    if kind == "missing":
        inside = f" in `{dotted(place)}`" if place else ""
        return f"missing key {str(loc[-1])!r}{inside}" + ("; a task starts with `saber: 1`" if loc == ("saber",) else "")
    if place == ("saber",):
        return f"saber: unsupported version {clip(detail['input'])}; this release reads version {VERSION}"
    if kind == "saber":
        return f"{name}: {context['text']}" if place else str(context["text"])
    given = "null" if node.value is None else node.raw if node.raw and node.value != node.raw else clip(node.plain())
    if kind == "string_type":
        quoted = f'; quote it: "{node.raw}"' if node.raw and not isinstance(node.value, str) else ""
        return f"{name}: {given} is not text{quoted}"
    if kind in _HINTS:
        return f"{name}: {given} is not {_HINTS[kind](node)}"
    if kind in ("literal_error", "enum"):
        words = [word.strip(" '") for word in str(context["expected"]).replace(" or ", ",").split(",")]
        return f"{name}: unknown value {given}{suggest(str(node.value), words) or '; known: ' + ', '.join(words)}"
    if kind in _BOUNDS:
        return f"{name}: {given} is not {_BOUNDS[kind]} {next(iter(context.values()))}"
    if kind == "too_long":
        return f"{name}: {context['actual_length']} entries; at most {context['max_length']} are allowed"
    if kind in ("too_short", "string_too_short"):
        hint = "; leave the key out for a task without variants" if place == ("variants",) else ""
        return f"{name}: must not be empty{hint}"
    if kind == "string_pattern_mismatch":
        return f"{name}: {clip(str(place[-1]) if place else given)} does not match {context['pattern']}"
    return f"{name}: {given}: {_lower(detail['msg'])}"


def dotted(place: tuple[str | int, ...]) -> str:
    """`judging.harmful[0].when`."""
    out = ""
    for part in place:
        word = part if isinstance(part, int) or len(part) <= MAX_KEY else f"{part[: MAX_KEY - 3]}..."
        out += f"[{word}]" if isinstance(part, int) else f".{word}" if out else str(word)
    return out or "the task"


def _place(tree: Node, loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The parts of a pydantic location that exist in the tree: it also names union members and short forms."""
    node, place = tree, []
    for part in loc:
        if isinstance(part, str) and part in node.entries():
            node = node.entries()[part].node
        elif isinstance(part, int) and isinstance(node.value, tuple) and part < len(node.value):
            node = node.value[part]
        else:
            continue
        place.append(part)
    return tuple(place)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


@lru_cache(maxsize=1)
def _json_schema() -> dict[str, Any]:
    return TaskForm.model_json_schema()


def _mapping(place: tuple[str | int, ...]) -> tuple[str, list[str]]:
    """What a key at `place` is called, and which keys are known there, by the JSON Schema."""
    root = _json_schema()
    options = _resolve(root, root)
    for part in place:
        options = [deeper for option in options for deeper in _descend(root, option, part)]
    known = [name for option in options for name in option.get("properties", {})]
    noun = "check" if any(option.get("title") == "check" for option in options) else "key"
    return noun, known


def _free_keys(tree: Node, place: tuple[str | int, ...]) -> list[str]:
    """Known keys of a mapping that it does not have yet."""
    present = tree.find(place)[0].entries()
    return [word for word in _mapping(place)[1] if word not in present]


def _descend(root: dict[str, Any], schema: dict[str, Any], part: str | int) -> list[dict[str, Any]]:
    keys = schema.get("properties", {})
    found = schema.get("items") if isinstance(part, int) else keys.get(part, _values(schema))
    return _resolve(root, found) if isinstance(found, dict) else []


def _values(schema: dict[str, Any]) -> Any:
    """The schema of the values of a mapping with free keys."""
    return next(iter(schema.get("patternProperties", {}).values()), schema.get("additionalProperties"))


def _resolve(root: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema itself, or the members that `$ref` and `anyOf` lead to."""
    if "$ref" in schema:
        return _resolve(root, root["$defs"][schema["$ref"].rpartition("/")[2]])
    members = schema.get("anyOf") or schema.get("oneOf")
    return [deeper for member in members for deeper in _resolve(root, member)] if members else [schema]
