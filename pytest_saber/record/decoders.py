"""From JSON trees to values: one strict converter per type, made once."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeAlias, Union

from pytest_saber.record.shapes import BadValue, FreeJSON, did_you_mean, fields_of, shown, tag_of, tagged

Decoder: TypeAlias = Callable[[Any], Any]


@cache
def decoder_of(hint: Any) -> Decoder:
    """The converter of a type. Raises TypeError for a type that the codec has no form for, when first used."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is FreeJSON:
        return _same_value  # `parse` has already refused what is not finite
    if hint is float:
        return _decode_float
    if hint in (str, int, bool, type(None)):
        return _exact_decoder(hint)
    if origin is Literal:
        return _choice_decoder({value: value for value in arguments})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice_decoder({member.value: member for member in hint})
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass_decoder(hint)
    if origin in (Union, types.UnionType):
        return _union_decoder(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return _sequence_decoder(decoder_of(arguments[0]), tuple)
    if origin is frozenset:
        return _sequence_decoder(decoder_of(arguments[0]), frozenset)
    if origin in (Mapping, dict):
        return _mapping_decoder(decoder_of(arguments[1]))
    raise TypeError(f"the codec has no form for {hint!r}")


def _dataclass_decoder(cls: type) -> Decoder:
    prepared: tuple[tuple[str, Decoder, bool], ...] | None = None

    def convert(value: Any) -> Any:
        nonlocal prepared
        if type(value) is not dict:
            raise BadValue(f"expected an object, found {shown(value)}")
        fields = prepared
        if fields is None:  # made at first use, because types may be recursive; whole at once, because threads share it
            fields = prepared = tuple((name, decoder_of(hint), needed) for name, hint, needed in fields_of(cls))
        found: dict[str, Any] = {}
        name = ""
        try:
            for name, decoder, _ in fields:
                if name in value:
                    found[name] = decoder(value[name])
        except BadValue as bad:
            raise bad.at(f".{name}") from None
        for name, _, needed in fields:
            if needed and name not in found:
                raise BadValue("the field is missing").at(f".{name}")
        if len(found) != len(value):
            unknown = min(set(value) - set(found))
            raise BadValue(f"unknown field{did_you_mean(unknown, [name for name, _, _ in fields])}").at(f".{unknown}")
        return cls(**found)

    return convert


def _sequence_decoder(item_decoder: Decoder, build: Callable[[list[Any]], Any]) -> Decoder:
    def convert(value: Any) -> Any:
        if type(value) is not list:
            raise BadValue(f"expected a list, found {shown(value)}")
        result: list[Any] = []
        try:
            for item in value:
                result.append(item_decoder(item))  # noqa: PERF401 - its length is the index of a bad item
        except BadValue as bad:
            raise bad.at(f"[{len(result)}]") from None
        return build(result)

    return convert


def _mapping_decoder(item_decoder: Decoder) -> Decoder:
    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise BadValue(f"expected an object, found {shown(value)}")
        result: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                result[key] = item_decoder(item)
        except BadValue as bad:
            raise bad.at(f"[{key!r}]") from None
        return result

    return convert


def _union_decoder(members: tuple[Any, ...]) -> Decoder:
    classes = tagged(members)
    if classes:
        return _tagged_decoder(classes, optional=type(None) in members)
    present = [member for member in members if member is not type(None)]
    if len(present) == 1:
        only = decoder_of(present[0])
        return lambda value: None if value is None else only(value)
    allowed = set(members)
    if not allowed <= {bool, int, float, str, type(None)}:
        raise TypeError(f"the codec has no form for the union of {members!r}")

    def convert(value: Any) -> Any:
        if type(value) not in allowed:
            raise BadValue(f"expected a scalar, found {shown(value)}")
        return value

    return convert


def _tagged_decoder(classes: Mapping[str, type], *, optional: bool) -> Decoder:
    wrapped = tag_of(next(iter(classes.values())))[1]

    def convert(value: Any) -> Any:
        if value is None and optional:
            return None
        if type(value) is not dict:
            raise BadValue(f"expected an object, found {shown(value)}")
        if wrapped:
            if len(value) != 1:
                raise BadValue(f"expected one check by name, found {len(value)} keys")
            ((tag, body),) = value.items()
            if tag not in classes:
                raise BadValue(f"unknown check {shown(tag)}{did_you_mean(tag, classes)}")
            try:
                return decoder_of(classes[tag])(body)
            except BadValue as bad:
                raise bad.at(f".{tag}") from None
        if "kind" not in value:
            raise BadValue("the field is missing").at(".kind")
        tag = value["kind"]
        if type(tag) is not str or tag not in classes:
            raise BadValue(f"unknown kind {shown(tag)}{did_you_mean(tag, classes)}").at(".kind")
        return decoder_of(classes[tag])({key: item for key, item in value.items() if key != "kind"})

    return convert


def _choice_decoder(choices: Mapping[Any, Any]) -> Decoder:
    def convert(value: Any) -> Any:
        if type(value) is not str or value not in choices:
            raise BadValue(
                f"expected one of {', '.join(map(str, choices))}, found {shown(value)}{did_you_mean(value, choices)}"
            )
        return choices[value]

    return convert


def _exact_decoder(kind: type) -> Decoder:
    word = {str: "a string", int: "a whole number", bool: "true or false"}.get(kind, "null")

    def convert(value: Any) -> Any:
        if type(value) is not kind:
            raise BadValue(f"expected {word}, found {shown(value)}")
        return value

    return convert


def _decode_float(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise BadValue("the number is too large") from None
    raise BadValue(f"expected a number, found {shown(value)}")


def _same_value(value: Any) -> Any:
    return value
