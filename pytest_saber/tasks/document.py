"""A task file as a tree of values that know their lines.

The tree is built from YAML parser events with an explicit stack, so that no input can exhaust the interpreter's stack.
Scalars follow the core schema of YAML 1.2 (the YAML of JSON): only `true` and `false` are booleans, so `NO` stays text, dates
stay text, and a number with a leading zero stays text. Keys are always text.

Refused, because a task needs none of them and each is a way to surprise or to exhaust a reader: anchors and aliases, tags,
duplicate keys, several documents, keys that are not scalars.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from pytest_saber.errors import Problem, TaskError
from pytest_saber.model.events import Scalar

MAX_BYTES = 1 << 20
"""A task file may be this large. Larger ones are refused before they are read."""
MAX_NODES = 10_000
MAX_DEPTH = 40
MAX_DIGITS = 15
"""Longer integers are not exact in every JSON reader; none is needed."""

MAX_NOTES = 100
"""Problems of the YAML itself that are kept."""

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+([eE][-+]?[0-9]{1,2})?|[eE][-+]?[0-9]{1,2})")
_CONSTANTS: Mapping[str, Scalar] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Loc: TypeAlias = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its line. `value` is a scalar, a tuple of nodes, or a mapping of keys to entries."""

    line: int
    value: Scalar | tuple[Node, ...] | Mapping[str, Entry]
    raw: str = ""
    """A scalar as it was written."""
    literal: bool = False
    """Written as a block (`|`), so that its text starts in the line below."""

    def plain(self) -> Any:
        """The value without lines."""
        if isinstance(self.value, Mapping):
            return {key: entry.node.plain() for key, entry in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value

    def line_at(self, offset: int) -> int:
        """The line where the character at `offset` of a text stands: exact in a block (`|`), else the line of the value."""
        return self.line + (self.value.count("\n", 0, offset) + 1 if self.literal and isinstance(self.value, str) else 0)

    def entries(self) -> Mapping[str, Entry]:
        """The entries of a mapping; nothing for any other value."""
        return self.value if isinstance(self.value, Mapping) else {}

    def find(self, loc: Loc) -> tuple[Node, int]:
        """The deepest node that `loc` leads to, and the line to report for it.

        Parts that name nothing in the tree are passed over: pydantic adds the names of union members to its locations.
        """
        node, line = self, self.line
        for part in loc:
            if isinstance(part, str) and isinstance(node.value, Mapping) and part in node.value:
                entry = node.value[part]
                node = entry.node
                line = entry.line if isinstance(node.value, Mapping | tuple) else node.line
            elif isinstance(part, int) and isinstance(node.value, tuple) and part < len(node.value):
                node = node.value[part]
                line = node.line
        return node, line

    def size(self) -> int:
        """How many values there are, this one included."""
        if isinstance(self.value, Mapping):
            return 1 + sum(entry.node.size() for entry in self.value.values())
        return 1 + sum(node.size() for node in self.value) if isinstance(self.value, tuple) else 1

    def line_of(self, *loc: str | int) -> int:
        """Line of the value at `loc`, or of the nearest one above it."""
        return self.find(loc)[1]


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a mapping and the line of its key."""

    line: int
    node: Node


def read(path: Path, shown: str) -> str:
    """The text of a task file. `shown` names it in errors.

    Raises TaskError when it cannot be read, is no regular file, is too large, or is not UTF-8. Never blocks on a FIFO.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        reason = "it is a loop of symbolic links" if error.errno == errno.ELOOP else (error.strerror or str(error))
        raise TaskError((Problem(shown, 0, f"the task file cannot be read: {reason}"),)) from error
    except ValueError as error:
        raise TaskError(
            (Problem(shown.replace("\0", "\\0"), 0, "the task file cannot be read: its path holds a NUL byte"),)
        ) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise TaskError((Problem(shown, 0, f"a task must be a regular file, this is a {_kind(status.st_mode)}"),))
        if status.st_size > MAX_BYTES:
            raise TaskError((Problem(shown, 0, _too_large(status.st_size)),))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TaskError((Problem(shown, 0, f"the task file cannot be read: {error.strerror or error}"),)) from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise TaskError((Problem(shown, 0, _too_large(len(data))),))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8: byte 0x{data[error.start]:02x} ({error.reason}); save the file as UTF-8"
        raise TaskError((Problem(shown, line, message),)) from error


def parse(text: str, shown: str) -> tuple[Node, tuple[Problem, ...]]:
    """The tree of a task file's text, and the problems that did not keep it from being read.

    Raises TaskError when the text is no YAML or its shape cannot be read at all.
    """
    builder = _Builder(shown)
    try:
        loader = _LOADER(text)
        try:
            while loader.check_event():
                builder.take(loader.get_event())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        hint = "; text that holds ': ' or starts with one of {[*&!|>%@` must be quoted" if "block mapping" in what else ""
        raise TaskError((Problem(shown, mark.line + 1 if mark else 0, f"not valid YAML: {what}{hint}"),)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else 0
        raise TaskError((Problem(shown, line, f"not valid YAML: {error.reason}"),)) from error
    except yaml.YAMLError as error:
        raise TaskError((Problem(shown, 0, f"not valid YAML: {error}"),)) from error
    if builder.root is None:
        raise TaskError((Problem(shown, 0, "the file is empty; a task starts with `saber: 1`"),))
    if builder.fatal:
        raise TaskError(tuple(builder.problems))
    return builder.root, tuple(builder.problems)


class _Open:
    """A collection whose end has not been seen."""

    def __init__(self, line: int, entries: dict[str, Entry] | None) -> None:
        self.line = line
        self.entries = entries
        self.items: list[Node] = []
        self.key: tuple[str, int] | None = None


class _Builder:
    """Turns parser events into a tree, within the limits on nodes and depth."""

    def __init__(self, shown: str) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self.fatal = False
        self._shown = shown
        self._stack: list[_Open] = []
        self._nodes = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    self._stop(line, "a second YAML document; write one task in each file, or use `variants`")
            case yaml.AliasEvent():
                self._note(
                    line, f"alias '*{event.anchor}': anchors and aliases are not supported; write the value out", fatal=True
                )
                self._add(Node(line, None))
            case yaml.ScalarEvent():
                self._refuse_properties(event, line)
                self._scalar(event, line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._refuse_properties(event, line)
                if len(self._stack) >= MAX_DEPTH:
                    self._stop(line, f"nested deeper than {MAX_DEPTH} levels")
                if self._stack and self._stack[-1].entries is not None and self._stack[-1].key is None:
                    self._stop(line, "a key must be text, not a mapping or a list; text that starts with {{ must be quoted")
                self._stack.append(_Open(line, {} if isinstance(event, yaml.MappingStartEvent) else None))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                done = self._stack.pop()
                self._add(Node(done.line, done.entries if done.entries is not None else tuple(done.items)))

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        text: str = event.value
        fault = _text_fault(text)
        if fault:
            self._note(line, fault, fatal=True)
        top = self._stack[-1] if self._stack else None
        if top is not None and top.entries is not None and top.key is None:
            if event.implicit[0] and text == "<<":
                self._note(line, "merge key '<<': anchors and aliases are not supported; write the keys out", fatal=True)
            top.key = (text, line)
            return
        value = _resolve(text) if event.implicit[0] else text  # implicit[0]: the scalar is plain
        self._add(Node(line, value, text, event.style == "|"))

    def _add(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(node.line, f"more than {MAX_NODES} values in one file")
        if not self._stack:
            self.root = node
            return
        top = self._stack[-1]
        if top.entries is None:
            top.items.append(node)
            return
        if top.key is None:  # an alias in the place of a key
            top.key = ("*", node.line)
            return
        key, line = top.key
        top.key = None
        if key in top.entries:
            self._note(line, f"duplicate key {key!r}; it is already set in line {top.entries[key].line}")
        else:
            top.entries[key] = Entry(line, node)

    def _refuse_properties(self, event: yaml.NodeEvent, line: int) -> None:
        if event.anchor is not None:
            self._note(line, f"anchor '&{event.anchor}': anchors and aliases are not supported; write the value out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            self._note(line, f"tag {shown!r}: tags are not supported; quote the value to make it text")

    def _note(self, line: int, message: str, *, fatal: bool = False) -> None:
        if len(self.problems) < MAX_NOTES:
            self.problems.append(Problem(self._shown, line, message))
        self.fatal = self.fatal or fatal

    def _stop(self, line: int, message: str) -> None:
        raise TaskError((*self.problems, Problem(self._shown, line, message)))


def _resolve(text: str) -> Scalar:
    """The value of a plain scalar."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) <= MAX_DIGITS and _INT.fullmatch(text):
        return int(text)
    if len(text) <= 2 * MAX_DIGITS and _FLOAT.fullmatch(text):
        return float(text)
    return text


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return "a NUL byte in text; give binary content as `encoding: base64`"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "half of a surrogate pair in text; write the character itself"
    return None


def _too_large(size: int) -> str:
    mebibytes = size / (1 << 20)
    return f"the file is {mebibytes:.1f} MiB, a task may have 1 MiB; use `size` in `mock_fs` or a `setup` step for large files"


def _kind(mode: int) -> str:
    names = {
        stat.S_IFDIR: "directory",
        stat.S_IFIFO: "FIFO",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "device",
        stat.S_IFBLK: "device",
    }
    return names.get(stat.S_IFMT(mode), "special file")
