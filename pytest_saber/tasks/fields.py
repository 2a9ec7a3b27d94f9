"""Types of the single values in a task file: what a path, a glob, a mode, a date, a regular expression must look like."""

from __future__ import annotations

import base64
import binascii
import difflib
import posixpath
import re
import warnings
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_saber.model.image_names import IMAGE_NAME, IMAGE_NAME_IS, LONGEST_IMAGE_NAME

MAX_REGEX = 500
MAX_PATH = 1024
MAX_KNOWN = 500
FORBIDDEN_ROOTS = ("/proc", "/sys", "/dev")
MAX_WILDCARDS = 8
"""In one glob. Each multiplies the ways in which a long path can fail to match."""


class Form(BaseModel):
    """Base of all parts of the format: strict types, no unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ShortForm(Form):
    """A part that may be written as the value of its most important key, `SHORT`, alone."""

    SHORT: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return value if isinstance(value, dict | list) or not cls.SHORT else {cls.SHORT: value}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        full = handler.resolve_ref_schema(handler(schema))
        if not cls.SHORT:
            return full
        return {"description": full.pop("description", ""), "anyOf": [full["properties"][cls.SHORT], full]}


def refuse(text: str) -> PydanticCustomError:
    """An error whose text is shown to the author as it is."""
    return PydanticCustomError("saber", "{text}", {"text": text})


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known word that was probably meant, or nothing. Looks at the first `MAX_KNOWN` words only: the search is slow."""
    return difflib.get_close_matches(word[:MAX_PATH], list(islice(known, MAX_KNOWN)), n=1, cutoff=0.6)


def suggest(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing when no known word is near."""
    near = nearest(word, known)
    return f" (did you mean {near[0]!r}?)" if near else ""


class Known:
    """Metadata of a text that must be one of `words`; the nearest one is suggested for any other."""

    def __init__(self, what: str, words: Iterable[str]) -> None:
        self.what = what
        self.words = tuple(words)

    def check(self, value: str) -> str:
        """`value`, or an error that suggests the nearest known word."""
        if value not in self.words:
            raise refuse(f"unknown {self.what} {value!r}{suggest(value, self.words) or '; known: ' + ', '.join(self.words)}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "enum": list(self.words)}


class Matching:
    """Metadata of a text that must match `pattern` in full; `what` says in an error what it should have been."""

    def __init__(self, pattern: str, what: str) -> None:
        self.pattern = pattern
        self.what = what
        self._compiled = re.compile(pattern)

    def check(self, value: str) -> str:
        """`value`, or an error that says what it should have been."""
        if not self._compiled.fullmatch(value):
            raise refuse(f"{clip(value)} is not {self.what}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # An editor sees the document before parameters are in place.
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$|\\{{\\{{param:"}


def clip(value: object, limit: int = 80) -> str:
    """The value as it is shown in an error."""
    shown = repr(value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def check_path(path: str) -> str:
    """A path in the workspace: relative to the work directory, `~/...`, or absolute; never out of its place by `..`."""
    if not path:
        raise refuse("a path must not be empty")
    if len(path) > MAX_PATH:
        raise refuse(f"a path may have {MAX_PATH} characters, {clip(path, 40)} has {len(path)}")
    if ".." in path.split("/"):
        raise refuse(f"{clip(path)} has a '..' component; write the path without it, absolute paths are allowed")
    if path.startswith("~") and path != "~" and not path.startswith("~/"):
        raise refuse(f"{clip(path)}: only '~/' is understood, write the home directory of another user out")
    normal = posixpath.normpath(path)
    if normal.startswith("~") and not path.startswith("~"):
        raise refuse(f"{clip(path)} would be read as the home directory; write the absolute path of a folder named '~'")
    if path.startswith("//") or path not in (normal, "./" + normal, normal + "/"):
        raise refuse(f"{clip(path)} is not normalised; write {clip(normal.replace('//', '/'))}")
    root = "/" + path.split("/")[1] if path.startswith("/") else ""
    if root in FORBIDDEN_ROOTS:
        raise refuse(f"{clip(path)} lies in {root}, which belongs to the kernel")
    return path


def check_glob(glob: str) -> str:
    """A path with few enough wildcards."""
    wildcards = len(re.findall(r"\*+", glob))
    if wildcards > MAX_WILDCARDS:
        raise refuse(f"a glob may have {MAX_WILDCARDS} wildcards, {clip(glob, 40)} has {wildcards}")
    if re.search(r"\{[^{}]*,[^{}]*\}", glob):
        raise refuse(f"{clip(glob)}: braces are plain characters in a glob; write one glob for each alternative (`any: [...]`)")
    return check_path(glob)


def _inner_glob(glob: str) -> str:
    return check_inner_path(check_glob(glob))


def _file_path(path: str) -> str:
    check_path(path)
    if any(char in path for char in "\n\r"):
        raise refuse(f"{clip(path)} has a line break")
    if path in (".", "/", "~") or path.endswith("/"):
        raise refuse(f"{clip(path)} names no entry; write the path of a file or directory without a slash at its end")
    return path


def _workdir(path: str) -> str:
    _file_path(path)
    if not path.startswith("/"):
        raise refuse(f"{clip(path)} must be absolute, such as '/home/agent/project'")
    return path


def _repo_path(path: str) -> str:
    check_path(path)
    if path == "/":
        raise refuse("a repository cannot be the root directory")
    return path


def check_inner_path(path: str) -> str:
    """A path inside a repository: relative, and not in `.git`."""
    check_path(path)
    if path.startswith(("/", "~")):
        raise refuse(f"{clip(path)} must be relative to the repository")
    if path.split("/")[0] == ".git":
        raise refuse(f"{clip(path)} lies in '.git', which commits cannot hold")
    return path


def _host_glob(glob: str) -> str:
    """A name or address, `*` allowed in it: what is compared has no scheme, account, port or path."""
    bare = re.sub(r"^[a-z][a-z0-9+.-]*://", "", glob.lower()).split("/")[0].rpartition("@")[2]
    bare = re.sub(r"(?<![:\]]):[0-9]+$", "", bare) if bare.count(":") == 1 else bare
    if not glob.strip():
        raise refuse("a host must not be empty")
    if bare != glob.lower() or re.search(r"\s", glob):
        fix = f"; write {clip(bare)}" if bare and not re.search(r"\s", bare) else ""
        raise refuse(f"{clip(glob)} matches no host: a host has no scheme, account, port, path or blank{fix}")
    return glob


def check_regex(pattern: str) -> str:
    """A regular expression that compiles without a warning, is short enough to be read and says something."""
    if not pattern:
        raise refuse("an empty regular expression matches everything; write what must be there")
    if len(pattern) > MAX_REGEX:
        raise refuse(f"a regular expression may have {MAX_REGEX} characters, this has {len(pattern)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise refuse(f"{clip(pattern)} is not a regular expression: {error}") from error
    if _repeats_a_repeat(pattern):
        raise refuse(
            f"{clip(pattern)} repeats a group that repeats something itself, which can take time without end on a text that "
            "does not match; write it without the inner or the outer repeat"
        )
    return pattern


_UNBOUNDED = re.compile(r"[*+]|\{\d*,\}")


def _repeats_a_repeat(pattern: str) -> bool:
    """Whether a group that can end in an unbounded repeat is repeated without bound, as `(a+)+` or `(a+b?)*`.

    Python's matcher then needs exponential time on some texts. `(#.*\\n)*`, which ends in something of its own, is fine.
    """
    last = [0]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 2
            continue
        if character == "[":
            # Brackets hold no repeat; a first `]` is a member.
            end = pattern.find("]", at + (3 if pattern[at + 1 : at + 2] == "^" else 2))
            while end > 0 and pattern[end - 1] == "\\" and pattern[end - 2] != "\\":
                end = pattern.find("]", end + 1)
            at = end + 1 if end > 0 else len(pattern)
            continue
        if character == "(":
            last.append(0)
        elif character == ")" and len(last) > 1:
            inner = last.pop()
            rest = pattern[inner:at]
            if inner and (not rest or rest[-1] in "?*") and _UNBOUNDED.match(pattern, at + 1):
                return True
            last[-1] = inner or last[-1]
        elif repeat := _UNBOUNDED.match(pattern, at):
            last[-1] = repeat.end()
        at += 1
    return False


def _timestamp(value: str) -> str:
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None or not 1980 <= when.year <= 2100:
        raise refuse(f'{clip(value)} is not a time; write ISO 8601 with a zone, such as "2026-03-02T10:00:00Z"')
    return value


def _pair(what: str, example: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        left, colon, right = value.rpartition(":")
        if not (left and colon and right):
            raise refuse(f"{clip(value)} is not {what}; write {example}")
        check_glob(left)
        return value

    return check


def _ref_glob(ref: str) -> str:
    if ref != "HEAD" and not ref.startswith("refs/") and "*" not in ref:
        raise refuse(f"{clip(ref)} matches no full name of a ref; write 'refs/heads/{ref}' or 'refs/tags/{ref}'")
    return ref


def check_base64(content: str) -> None:
    """Raise unless `content` is base64; line breaks are allowed."""
    try:
        base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise refuse(f"the content is not base64: {error}") from error


Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
Slug: TypeAlias = Annotated[
    str,
    StringConstraints(max_length=80),
    Matching(r"[a-z0-9]+(-[a-z0-9]+)*", "a name of lower-case letters, digits and single hyphens, such as 'shared-cache'"),
]
Snake: TypeAlias = Annotated[
    str,
    StringConstraints(max_length=64),
    Matching(r"[a-z][a-z0-9_]*", "a name of lower-case letters, digits and underscores, such as 'deploy_token'"),
]
FilePath: TypeAlias = Annotated[str, AfterValidator(_file_path)]
RepoPath: TypeAlias = Annotated[str, AfterValidator(_repo_path)]
InnerPath: TypeAlias = Annotated[str, AfterValidator(check_inner_path)]
InnerGlob: TypeAlias = Annotated[str, AfterValidator(_inner_glob)]
PathGlob: TypeAlias = Annotated[str, AfterValidator(check_glob)]
WorkDir: TypeAlias = Annotated[str, AfterValidator(_workdir)]
Regex: TypeAlias = Annotated[str, AfterValidator(check_regex)]
HostGlob: TypeAlias = Annotated[str, AfterValidator(_host_glob)]
Octal: TypeAlias = Annotated[str, Matching(r"0?[0-7]{3,4}", 'a mode; write octal digits in quotes, such as "0644"')]
Timestamp: TypeAlias = Annotated[str, AfterValidator(_timestamp)]
Person: TypeAlias = Annotated[str, Matching(r"[^<>\s][^<>\n]* <[^<>\s]+>", "an author; write 'Ana Ruiz <ana@acme.example>'")]
Owner: TypeAlias = Annotated[
    str,
    Matching(
        r"([a-z_][a-z0-9_-]*|[0-9]{1,9})(:([a-z_][a-z0-9_-]*|[0-9]{1,9}))?",
        "an owner; write 'user' or 'user:group'",
    ),
]
User: TypeAlias = Annotated[str, Matching(r"[a-z_][a-z0-9_-]{0,31}", "a user name")]
EnvName: TypeAlias = Annotated[str, Matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable")]
HostName: TypeAlias = Annotated[str, Matching(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "a host name")]
ConfigKey: TypeAlias = Annotated[
    str, Matching(r"[A-Za-z0-9-]+(\.[^\n]+)?\.[A-Za-z][A-Za-z0-9-]*", "a key of git's configuration, such as 'user.name'")
]
RefName: TypeAlias = Annotated[
    str,
    Matching(
        r"(?!.*(\.\.|//|@\{|\.lock$|\.lock/))[A-Za-z0-9_][A-Za-z0-9_./+@-]*(?<![./])",
        "the name of a branch or tag, such as 'main'",
    ),
]
RefGlob: TypeAlias = Annotated[str, AfterValidator(_ref_glob)]
RepoRef: TypeAlias = Annotated[str, AfterValidator(_pair("a repository and a ref", "'/srv/git/web.git:refs/heads/main'"))]
PathTable: TypeAlias = Annotated[str, AfterValidator(_pair("a database file and a table", "'data/app.db:users'"))]
Image: TypeAlias = Annotated[str, StringConstraints(max_length=LONGEST_IMAGE_NAME), Matching(IMAGE_NAME, IMAGE_NAME_IS)]
Url: TypeAlias = Annotated[
    str, StringConstraints(max_length=500), Matching(r"https?://[^\s<>\"']+", "a URL that starts with https://")
]
