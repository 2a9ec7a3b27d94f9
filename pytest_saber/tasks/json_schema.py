"""The JSON Schema of the task format, for editors and other tools."""

from __future__ import annotations

from typing import Any

from pytest_saber.tasks.schema import VERSION, TaskForm

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema of one document (draft 2020-12). What it cannot say, such as that used names are declared, `load` checks."""
    schema = _closed(TaskForm.model_json_schema())
    return {
        "$schema": DIALECT,
        "$id": f"urn:pytest-saber:task:{VERSION}",
        **schema,
        "title": f"pytest-saber task, version {VERSION}",
    }


def _closed(value: Any) -> Any:
    """Keys that match no pattern are refused; generated titles, which only repeat the key, are dropped."""
    if isinstance(value, list):
        return [_closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    closed = {key: _closed(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}
    if "patternProperties" in closed:
        closed["additionalProperties"] = False
    return closed
