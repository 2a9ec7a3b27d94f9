"""The versioned JSON form of the frozen values in `model`.

Converters are derived from the type hints of each dataclass, once per class. The form is canonical: fields in
declaration order, mappings and sets sorted, every float finite, ASCII only (bytes that were not UTF-8 travel as
escaped surrogates), so that equal values have equal bytes. Free-form JSON (tool arguments) keeps its order.

Unions of dataclasses carry a tag: event payloads a `kind` member, checks are `{NAME: {...}}` as in a task file. Reading is
strict: a wrong type, an unknown field or a field without default that is missing is an `EvidenceError` naming its path.
A missing field *with* a default is read as that default, so that an optional field can be added within one schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import Any, TypeVar, cast

from pytest_saber.errors import EvidenceError
from pytest_saber.model.evidence import SCHEMA
from pytest_saber.record.decoders import decoder_of
from pytest_saber.record.encoders import Text, encoder_of
from pytest_saber.record.shapes import BadValue, shown

MAX_BYTES = 256 * 1024 * 1024
"""Largest document that is read or written."""

REPEAT = "; the run has to be repeated"

T = TypeVar("T")


def dumps(value: object, *, text: Text | None = None) -> str:
    """The document of a dataclass instance; `text` maps every string of it (not field names), for redaction.

    Raises EvidenceError for what cannot be read back: a non-finite float, an endless nesting, more than `MAX_BYTES`.
    """
    name = document_name(type(value))
    return to_text({"saber": name, "schema": SCHEMA, "value": encode(value, text=text)}, name)


def to_text(tree: object, name: str) -> str:
    """One line of ASCII JSON of an encoded tree, bounded."""
    try:
        result = json.dumps(tree, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{name}: cannot be written: {error}") from error
    if len(result) > MAX_BYTES:
        raise EvidenceError(f"{name}: {len(result)} bytes are more than the {MAX_BYTES} a record may have")
    return result


def loads(cls: type[T], document: str, *, origin: str = "") -> T:
    """Read a document written by `dumps`. `origin` (a file name) leads the message of an EvidenceError."""
    prefix = f"{origin}: " if origin else ""
    name = document_name(cls)
    tree = parse(document, prefix)
    if not isinstance(tree, dict) or "saber" not in tree or "schema" not in tree:
        raise EvidenceError(f"{prefix}not a saber record: expected an object with 'saber', 'schema' and 'value'")
    if tree["saber"] != name:
        raise EvidenceError(f"{prefix}holds {shown(tree['saber'])}, expected {name!r}")
    check_schema(tree["schema"], prefix)
    if "value" not in tree:
        raise EvidenceError(f"{prefix}{name}: the field 'value' is missing")
    return decode(cls, tree["value"], origin=origin)


def parse(document: str, prefix: str = "") -> Any:
    """JSON text to a tree, refusing what no writer of ours produces."""
    if len(document) > MAX_BYTES:
        raise EvidenceError(f"{prefix}{len(document)} characters are more than the {MAX_BYTES} a record may have")
    try:
        return json.loads(document, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        kind = "truncated" if error.pos >= len(document.rstrip()) - 1 or "Unterminated" in error.msg else "corrupt"
        where = f"line {error.lineno}, column {error.colno}"
        raise EvidenceError(f"{prefix}{kind} JSON at {where}: {error.msg}{REPEAT}") from error
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{prefix}corrupt JSON: {error}") from error


def check_schema(schema: object, prefix: str = "") -> None:
    """Raise EvidenceError unless this version reads `schema`."""
    if type(schema) is not int or schema < 1:
        raise EvidenceError(f"{prefix}schema: expected a positive number, found {shown(schema)}")
    if schema > SCHEMA:
        raise EvidenceError(
            f"{prefix}schema {schema} is newer than {SCHEMA}, the newest that this pytest-saber reads; upgrade pytest-saber"
        )


def encode(value: object, *, text: Text | None = None) -> Any:
    """The JSON tree of a dataclass instance, without the document around it."""
    try:
        return encoder_of(cast(Hashable, type(value)))(value, text or _same)
    except BadValue as bad:
        raise EvidenceError(bad.render(document_name(type(value)))) from None


def decode(cls: type[T], tree: object, *, origin: str = "") -> T:
    """The value of a JSON tree. Raises EvidenceError with the path of the first misfit."""
    try:
        result: T = decoder_of(cast(Hashable, cls))(tree)
    except BadValue as bad:
        prefix = f"{origin}: " if origin else ""
        raise EvidenceError(prefix + bad.render(document_name(cls))) from None
    return result


def document_name(cls: type) -> str:
    """The word for a class in documents and messages: `evidence`, `run_key`."""
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)
    return words.removeprefix("_")


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is not a finite number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is not a finite number")
    return number


def _same(text: str) -> str:
    return text
