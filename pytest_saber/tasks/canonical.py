"""The content hash of a task: what a run was judged by, without where it was written."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from pytest_saber.model.task import Task

_PLACES = frozenset({"path", "line", "content_hash"})


def content_hash(task: Task) -> str:
    """sha256 over the canonical JSON of a task. Comments, formatting and the order of keys of the YAML do not matter.

    Fields that have their default are left out, so that a later version with a new optional field gives the same hash.
    """
    document = {key: value for key, value in _canonical(task).items() if key not in _PLACES}
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _canonical(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.name != "line" and getattr(value, field.name) != _default(field)
        }
        name = getattr(value, "NAME", None)
        return {name: fields} if name else fields
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_canonical(item) for item in value]
    return value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
