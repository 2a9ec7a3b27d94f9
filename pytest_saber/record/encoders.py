"""From values to JSON trees: one converter per type, made once."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeAlias, Union

from pytest_saber.record.shapes import BadValue, FreeJSON, fields_of, tag_of, tagged

MAX_DEPTH = 128
"""Deepest nesting of free-form JSON."""

Text: TypeAlias = Callable[[str], str]
Encoder: TypeAlias = Callable[[Any, Text], Any]


@cache
def encoder_of(hint: Any) -> Encoder:
    """The converter of a type. Raises TypeError for a type that the codec has no form for, when first used."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is FreeJSON:
        return lambda value, text: _encode_free(value, text, 0)
    if hint is float:
        return _encode_float
    if hint is str:
        return _encode_text
    if hint in (bool, int, type(None)):
        return _exact_encoder(hint)
    if origin is Literal:
        return _choice_encoder({value: value for value in arguments})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice_encoder({member: member.value for member in hint})
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass_encoder(hint)
    if origin in (Union, types.UnionType):
        return _union_encoder(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return _sequence_encoder(encoder_of(arguments[0]))
    if origin is frozenset:
        return lambda value, text: sorted(text(item) for item in value)
    if origin in (Mapping, dict):
        return _mapping_encoder(encoder_of(arguments[1]), arrange=list if arguments[1] is FreeJSON else sorted)
    raise TypeError(f"the codec has no form for {hint!r}")


def _dataclass_encoder(cls: type) -> Encoder:
    prepared: tuple[tuple[str, Encoder], ...] | None = None

    def convert(value: Any, text: Text) -> dict[str, Any]:
        nonlocal prepared
        fields = prepared
        if fields is None:  # made at first use, because types may be recursive; whole at once, because threads share it
            fields = prepared = tuple((name, encoder_of(hint)) for name, hint, _ in fields_of(cls))
        result: dict[str, Any] = {}
        for name, encoder in fields:
            try:
                result[name] = encoder(getattr(value, name), text)
            except BadValue as bad:
                raise bad.at(f".{name}") from None
        return result

    return convert


def _sequence_encoder(item_encoder: Encoder) -> Encoder:
    def convert(value: Any, text: Text) -> list[Any]:
        result = []
        for number, item in enumerate(value):
            try:
                result.append(item_encoder(item, text))
            except BadValue as bad:
                raise bad.at(f"[{number}]") from None
        return result

    return convert


def _mapping_encoder(item_encoder: Encoder, arrange: Callable[[Any], list[str]]) -> Encoder:
    def convert(value: Any, text: Text) -> dict[str, Any]:
        result = {}
        for key in value:
            if not isinstance(key, str):
                raise BadValue(f"the key {key!r} is not a string")
        for key in arrange(value):
            try:
                result[text(key)] = item_encoder(value[key], text)
            except BadValue as bad:
                raise bad.at(f"[{key!r}]") from None
        return result

    return convert


def _union_encoder(members: tuple[Any, ...]) -> Encoder:
    classes = tagged(members)

    def convert(value: Any, text: Text) -> Any:
        if classes and dataclasses.is_dataclass(value):
            cls: Any = type(value)
            tag, wrapped = tag_of(cls)
            if classes.get(tag) is not cls:
                raise BadValue(f"a {cls.__name__} has no place here")
            body = encoder_of(cls)(value, text)
            return {tag: body} if wrapped else {"kind": tag, **body}
        if value is not None and not isinstance(value, bool | int | float | str):
            raise BadValue(f"expected a scalar, found {type(value).__name__}")
        return _encode_free(value, text, 0)

    if classes or all(member in (bool, int, float, str, type(None)) for member in members):
        return convert
    present = [member for member in members if member is not type(None)]
    if len(present) != 1:
        raise TypeError(f"the codec has no form for the union of {members!r}")
    only = encoder_of(present[0])
    return lambda value, text: None if value is None else only(value, text)


def _choice_encoder(choices: Mapping[Any, str]) -> Encoder:
    def convert(value: Any, _text: Text) -> str:
        if value not in choices:
            raise BadValue(f"expected one of {', '.join(choices.values())}, found {value!r}")
        return choices[value]

    return convert


def _exact_encoder(kind: type) -> Encoder:
    def convert(value: Any, _text: Text) -> Any:
        if type(value) is not kind:
            raise BadValue(f"expected {kind.__name__}, found {type(value).__name__}")
        return value

    return convert


def _encode_text(value: Any, text: Text) -> str:
    if not isinstance(value, str):
        raise BadValue(f"expected str, found {type(value).__name__}")
    return text(value)


def _encode_float(value: Any, _text: Text) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadValue(f"expected a number, found {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise BadValue(f"{number} is not a finite number")
    return number


def _encode_free(value: Any, text: Text, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise BadValue(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _encode_float(value, text)
    if isinstance(value, list | tuple):
        return [_encode_free(item, text, depth + 1) for item in value]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise BadValue(f"the key {key!r} is not a string")
        return {text(key): _encode_free(item, text, depth + 1) for key, item in value.items()}
    raise BadValue(f"a {type(value).__name__} is not JSON")
