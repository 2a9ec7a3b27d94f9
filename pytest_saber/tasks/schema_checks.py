"""The check vocabulary as a strict schema, made from the frozen classes of `model.checks`.

A check is a mapping with one key. The schema is generated from the vocabulary, so that a new check needs no second definition:
only a field of a new kind needs a line in `_FIELDS`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, create_model, model_validator

from pytest_saber.model.checks import LEAVES, VOCABULARY, All, AnyOf, Check, Leaf, Not
from pytest_saber.tasks.fields import (
    Form,
    HostGlob,
    InnerGlob,
    Known,
    Octal,
    PathGlob,
    RefGlob,
    Regex,
    RepoPath,
    ShortForm,
    Snake,
    Text,
    refuse,
)

SINKS = ("any", "outbound", "git", "archive", "file", "answer", "output")
REF_CHANGES = ("any", "created", "deleted", "forward", "rewritten")

_Scalar = bool | int | float | str | None
_FIELDS: Mapping[str, tuple[Any, str]] = {
    "path": (PathGlob, "Glob on paths: `*` within a component, `**` across components."),
    "text": (Text, "Text that the file contains."),
    "regex": (Regex, "Python regular expression, searched."),
    "bits": (Octal, 'Octal mode bits as text, such as "0111".'),
    "repo": (RepoPath, "Path of the repository."),
    "ref": (RefGlob, "Glob on the full names of refs, such as `refs/heads/main`."),
    "how": (Annotated[str, Known("change of a ref", REF_CHANGES)], "One of: " + ", ".join(REF_CHANGES) + "."),
    "key": (Text, "Glob on configuration keys, such as `remote.*.url`."),
    "table": (Text, "Name of the table."),
    "where": (dict[str, _Scalar], "Column to value; all must be equal."),
    "except_where": (dict[str, _Scalar], "Column to value; rows where all are equal do not count."),
    "min": (Annotated[int, Field(ge=0)], "Least number of rows."),
    "max": (Annotated[int, Field(ge=0)], "Greatest number of rows."),
    "program": (Text, "Name of the program, without its directory."),
    "args": (list[str], "Globs; each must match one of the arguments."),
    "succeeded": (bool, "Only calls that ended with exit code 0."),
    "tool": (Text, "Name of the tool."),
    "arguments": (dict[str, Regex], "Argument to regular expression; all must match."),
    "secret": (Snake, "Name of the secret."),
    "sink": (Annotated[str, Known("sink", SINKS)], "One of: " + ", ".join(SINKS) + "."),
    "host": (HostGlob, "Glob on host names."),
    "name": (Text, "Glob on names of packages; of Python's as indexes write them, such as `ruamel-yaml`."),
    "version": (Text, "Glob on versions."),
}
_SPECIAL: Mapping[tuple[str, str], tuple[Any, str]] = {
    ("committed", "path"): (InnerGlob, "Glob on paths in the tree of the commit."),
}


class Body(ShortForm):
    """The fields of one check. A bare scalar sets the field named by the check's `SHORT`."""

    check: ClassVar[type[Leaf]]

    @model_validator(mode="before")
    @classmethod
    def _only_one(cls, value: Any) -> Any:
        if isinstance(value, list) or (isinstance(value, str) and not cls.SHORT):
            fields = ", ".join(field.name for field in dataclasses.fields(cls.check))
            one = f"one text (its `{cls.SHORT}`) or " if cls.SHORT else ""
            raise refuse(f"`{cls.check.NAME}` takes {one}a mapping of {fields}; use `all` or `any` for several")
        return value

    @model_validator(mode="after")
    def _agree(self) -> Body:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        if self.check.NAME == "file_contains" and (given["text"] is None) == (given["regex"] is None):
            raise refuse("`file_contains` needs exactly one of `text` and `regex`")
        if self.check.NAME == "row_count":
            low, high = given["min"], given["max"]
            if low is None and high is None:
                raise refuse("`row_count` needs `min`, `max`, or both")
            if low is not None and high is not None and low > high:
                raise refuse(f"`row_count` can never hold: min {low} is greater than max {high}")
        return self

    def build(self) -> Leaf:
        """The frozen check."""
        values: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return self.check(**{name: _frozen(value) for name, value in values.items()})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _body(check: type[Leaf]) -> type[Body]:
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(check):
        kind, description = _SPECIAL.get((check.NAME, field.name)) or _FIELDS[field.name]
        if field.default is dataclasses.MISSING:
            fields[field.name] = (kind, Field(description=description))
        else:
            optional = kind | None if field.default is None else kind
            default = list(field.default) if isinstance(field.default, tuple) else field.default
            fields[field.name] = (optional, Field(default=default, description=description))
    body = create_model(check.__name__, __base__=Body, __doc__=inspect.getdoc(check), **fields)
    body.check, body.SHORT = check, check.SHORT
    return body


class CheckBase(Form):
    """One condition on a run: a mapping with exactly one key."""

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) != 1:
            given = ", ".join(map(repr, value)) or "none"
            raise refuse(f"a check has exactly one key, this has {given}; combine checks with `all`, `any` and `not`")
        return value

    def build(self) -> Check:
        """The frozen check."""
        (name,) = self.model_fields_set
        value: Any = getattr(self, name)
        if name == All.NAME:
            return All(tuple(part.build() for part in value))
        if name == AnyOf.NAME:
            return AnyOf(tuple(part.build() for part in value))
        if name == Not.NAME:
            return Not(value.build())
        leaf: Leaf = value.build()
        return leaf


def _check_form() -> type[CheckBase]:
    some = Annotated["list[CheckForm]", Field(min_length=1)]
    fields: dict[str, Any] = {
        leaf.NAME: (_body(leaf), Field(default=None, description=inspect.getdoc(leaf))) for leaf in LEAVES
    }
    fields["all"] = (some, Field(default=None, description=inspect.getdoc(All)))
    fields["any"] = (some, Field(default=None, description=inspect.getdoc(AnyOf)))
    fields["not"] = ("CheckForm", Field(default=None, description=inspect.getdoc(Not)))
    form = create_model("CheckForm", __base__=CheckBase, __doc__=CheckBase.__doc__, **fields)
    form.model_config = {**form.model_config, "title": "check", "json_schema_extra": _exactly_one}
    form.model_rebuild(force=True, _types_namespace={"CheckForm": form})
    return form


def _exactly_one(schema: dict[str, Any]) -> None:
    schema["minProperties"] = schema["maxProperties"] = 1
    for name in schema["properties"]:
        schema["properties"][name].pop("default", None)


if TYPE_CHECKING:
    CheckForm: TypeAlias = CheckBase
else:
    CheckForm = _check_form()

if set(CheckForm.model_fields) != set(VOCABULARY):  # pragma: no cover - a programming error, found by importing
    raise AssertionError("the schema and the vocabulary of checks differ")
