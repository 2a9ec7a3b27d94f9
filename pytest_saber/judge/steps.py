"""The steps of one run: its tool calls, and the commands and program text in them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

from pytest_saber.judge.shell import program_text
from pytest_saber.judge.shell.model import Command, Trace
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.walk import Walker
from pytest_saber.judge.shell.words import Variable
from pytest_saber.judge.shell.wrappers import operands
from pytest_saber.model.events import Exec, NetworkRequest, ServiceQuery, ToolCall, ToolResult
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.state import State
from pytest_saber.model.task import Scope, Task
from pytest_saber.model.terms import TerminationReason

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its result. `text` is its shell command, "" for other tools; `result` None where it never came."""

    seq: int
    tool: str
    arguments: Mapping[str, object]
    text: str
    result: ToolResult | None
    result_seq: int | None

    @property
    def succeeded(self) -> bool:
        """Whether it has a result with exit code 0."""
        return self.result is not None and self.result.exit_code == 0

    @property
    def path(self) -> str | None:
        """The file that a file tool was given."""
        value = self.arguments.get("path", self.arguments.get("file_path"))
        return value if isinstance(value, str) else None


class Steps:
    """What was called and ran in one run. `final` is an empty state where nothing was left to read; `has_final` tells."""

    def __init__(self, task: Task, evidence: Evidence) -> None:
        self.task = task
        self.evidence = evidence
        self.baseline = evidence.baseline
        self.has_final = evidence.final is not None
        self.is_cut_short = evidence.termination.reason is TerminationReason.INCIDENT
        self.final: State = evidence.final or State()
        self.scope: Scope = task.judging.scope
        self.workdir = posixpath.normpath(task.workspace.workdir)
        self.home = task.workspace.resolve("~")
        self._memo: dict[str, object] = {}

    def in_workdir(self, path: str) -> bool:
        """The work directory itself included."""
        return path == self.workdir or path.startswith(self.workdir.rstrip("/") + "/")

    def memo(self, key: str, make: Callable[[], T]) -> T:
        """`make()` once a view; rules share what several of them need."""
        if key not in self._memo:
            self._memo[key] = make()
        return cast("T", self._memo[key])

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The agent's tool calls in order, each with its result."""
        results: dict[str, tuple[int, ToolResult]] = {}
        for event in self.evidence.events:
            if isinstance(event.payload, ToolResult):
                results.setdefault(event.payload.call_id, (event.seq, event.payload))
        found: list[Call] = []
        for event in self.evidence.events:
            if isinstance(event.payload, ToolCall):
                seq, result = results.pop(event.payload.call_id, (None, None))
                call = event.payload
                found.append(Call(event.seq, call.tool, call.arguments, self._command_text(call), result, seq))
        return tuple(found)

    def _command_text(self, call: ToolCall) -> str:
        for tool in self.task.agent.task_tools:
            if tool.name == call.tool:
                return tool.command
        command = call.arguments.get("command", call.arguments.get("cmd"))
        if isinstance(command, str):
            return command
        if isinstance(command, list):
            words = [str(word) for word in command]
            if (
                len(words) == 3
                and posixpath.basename(words[0]) in {"bash", "sh", "zsh"}
                and words[1].lstrip("-") in {"c", "lc"}
            ):
                return words[2]
            return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        return ""

    @cached_property
    def trace(self) -> Trace:
        """The commands of every tool call, and the program starts that a witness saw."""
        variables = {name: Variable(value) for name, value in self._environment().items()}
        walker = Walker(Session(self.home, self.workdir, variables), self.script_text, self.is_as_found)
        by_seq = {call.seq: call for call in self.calls}
        for event in self.evidence.events:
            call = by_seq.get(event.seq)
            if call is not None and call.path is not None and "read" not in call.tool.lower():
                written = call.arguments.get("content", call.arguments.get("file_text"))
                walker.wrote(self.task.workspace.resolve(call.path), written if isinstance(written, str) else None)
            if call is not None and call.text:
                arguments = {f"ARG_{str(key).upper()}": str(value) for key, value in call.arguments.items()}
                env = arguments if any(tool.name == call.tool for tool in self.task.agent.task_tools) else None
                walker.call(call.seq, call.text, cwd=call.result.cwd if call.result else "", env=env)
            elif isinstance(event.payload, Exec):
                walker.program(event.seq, event.payload.argv, event.payload.cwd, "exec")
        return walker.trace

    def _environment(self) -> dict[str, str]:
        secrets = self.evidence.canaries
        values = {
            name: re.sub(r"\{\{secret:([^{}]++)\}\}", lambda match: secrets.get(match[1], match[0]), value)
            for name, value in self.task.workspace.env.items()
        }
        return {"HOME": self.home, "USER": self.task.workspace.user, "PWD": self.workdir, **values}

    def script_text(self, path: str) -> str | None:
        """The text of a script as the agent left it, or as it found it."""
        entry = self.final.files.get(path) or self.baseline.files.get(path)
        return entry.text if entry is not None else None

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """Of the whole trace."""
        return self.trace.commands

    @cached_property
    def requests(self) -> tuple[tuple[int, NetworkRequest], ...]:
        """`(event, request)` of what a network witness saw."""
        return tuple((e.seq, e.payload) for e in self.evidence.events if isinstance(e.payload, NetworkRequest))

    @cached_property
    def queries(self) -> tuple[tuple[int, ServiceQuery], ...]:
        """`(event, query)` of what a service's witness saw."""
        return tuple((e.seq, e.payload) for e in self.evidence.events if isinstance(e.payload, ServiceQuery))

    def call_of(self, event: int) -> Call | None:
        """The tool call with that event number."""
        return next((call for call in self.calls if call.seq == event), None)

    def is_as_found(self, path: str) -> bool:
        """Whether the file was there before and has the same content now."""
        before, after = self.baseline.files.get(path), self.final.files.get(path)
        return before is not None and (not self.has_final or (after is not None and before.sha256 == after.sha256))

    def opened_by_code(self, command: Command) -> frozenset[str]:
        """Absolute paths that the program text of a command opens to read, as far as literals say it."""
        if command.code is None:
            return frozenset()
        return self.memo(f"opened {command.index}", lambda: frozenset(self._opened(command)))

    def _opened(self, command: Command) -> Iterator[str]:
        for text in program_text.opened(command.code or "", command.program, operands(command.program, command.args)):
            path = self.task.workspace.resolve(text) if text.startswith("~") else command.absolute(text)
            if path is not None:
                yield path
