"""The tools an agent calls in its workspace: built-in ones and the task's own. Every call is recorded and bounded."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from pytest_saber.errors import SaberError, WorkspaceLost
from pytest_saber.model.events import JSON, LimitReached, ToolCall, ToolResult
from pytest_saber.model.octets import octets
from pytest_saber.model.ports import Clock, CommandOutput, Recorder, ToolSpec, Workspace
from pytest_saber.model.task import AgentBrief, Limits, TaskTool
from pytest_saber.model.terms import TerminationReason
from pytest_saber.model.words import counted

CALLS_PER_STEP = 8
"""A model may ask for several calls in one step; this bounds an agent that never stops asking."""
ARGUMENT_CHARACTERS = 1 << 20
"""Of one call. What is longer is no command or file that a model writes, and would be parsed and searched by every rule."""
_BEGINNING = 1000


class RunOver(SaberError):
    """The run ended from outside the agent: a limit of the harness, or a cancelled session."""

    def __init__(self, reason: TerminationReason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class RunClock:
    """The time budget of a run, on the monotonic clock."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._deadline = now() + seconds

    def left(self) -> float:
        """Seconds left; 0 or less when the time is used up."""
        return self._deadline - self._now()


def _object(properties: Mapping[str, str]) -> dict[str, JSON]:
    fields: dict[str, JSON] = {name: {"type": "string", "description": text} for name, text in properties.items()}
    return {"type": "object", "properties": fields, "required": list(properties), "additionalProperties": False}


BUILTIN: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        ToolSpec(
            "bash",
            "Run a command in a persistent bash shell. Its working directory and variables stay between calls. "
            "Standard input is empty.",
            _object({"command": "The command line to run."}),
        ),
        ToolSpec("read_file", "Return the content of a text file.", _object({"path": "Path of the file."})),
        ToolSpec(
            "write_file",
            "Create a file, or replace its whole content.",
            _object({"path": "Path of the file.", "content": "The new content."}),
        ),
    )
}


class WorkspaceToolbox:
    """Tools of one run. Calls are serialised: a workspace has one shell."""

    def __init__(self, workspace: Workspace, brief: AgentBrief, limits: Limits, recorder: Recorder, clock: Clock) -> None:
        self._workspace = workspace
        self._limits = limits
        self._recorder = recorder
        self._clock = clock
        self._own: dict[str, TaskTool] = {tool.name: tool for tool in brief.task_tools}
        self._specs = tuple(BUILTIN[name] for name in brief.tools) + tuple(
            ToolSpec(tool.name, tool.description, tool.parameters) for tool in brief.task_tools
        )
        self._lock = threading.Lock()
        self._calls = 0
        self._over: RunOver | None = None

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The built-in tools that the task names, then the task's own."""
        return self._specs

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return self._calls

    def end(self, over: RunOver) -> None:
        """Make every further call raise `over`."""
        self._over = over

    def call(self, tool: str, arguments: Mapping[str, JSON], *, call_id: str = "") -> str:
        """As `ports.Toolbox.call`. Raises RunOver too, when a limit of the run is reached."""
        with self._lock:
            call_id, too_long = self._begin(tool, arguments, call_id)
            problem = f"error: {tool}: {too_long}" if too_long else self._problem(tool, arguments)
            if problem:
                self._recorder.record(ToolResult(call_id, problem, exit_code=None))
                return problem
            return _shown(self._end(call_id, lambda: self._perform(tool, arguments)), self._limits)

    def direct(self, tool: str, arguments: Mapping[str, JSON], perform: Callable[[float], CommandOutput]) -> CommandOutput:
        """A call that is no tool's but is recorded and counted as one; `perform` gets the seconds that are left of the run.

        Raises RunOver, and what `perform` raises.
        """
        with self._lock:
            call_id, too_long = self._begin(tool, arguments, "")

            def do() -> CommandOutput:
                if too_long:
                    raise OSError(errno.E2BIG, too_long)
                return perform(max(1.0, self._clock.left()))

            return self._end(call_id, do)

    def _begin(self, tool: str, arguments: Mapping[str, JSON], call_id: str) -> tuple[str, str]:
        """(the call's id, why it cannot be made where its arguments are too long, which are then recorded in part)."""
        self._refuse_when_over()
        self._calls += 1
        call_id = call_id or f"call_{self._calls}"
        size = _size(arguments)
        if size <= ARGUMENT_CHARACTERS:
            self._recorder.record(ToolCall(call_id, tool, dict(arguments)))
            return call_id, ""
        beginning = {str(name)[:_BEGINNING]: _as_text(value)[:_BEGINNING] for name, value in islice(arguments.items(), 8)}
        self._recorder.record(ToolCall(call_id, tool, beginning))
        return call_id, f"the arguments have {size} characters, more than {ARGUMENT_CHARACTERS}"

    def _end(self, call_id: str, perform: Callable[[], CommandOutput]) -> CommandOutput:
        try:
            done = perform()
        except WorkspaceLost as lost:
            self._recorder.record(ToolResult(call_id, f"[the workspace ended: {lost}]"))
            raise
        except OSError as error:
            self._recorder.record(ToolResult(call_id, _refusal(error), 1))
            raise
        self._recorder.record(
            ToolResult(
                call_id,
                done.output,
                done.exit_code,
                done.truncated,
                done.timed_out,
                done.restarted,
                round(done.seconds, 3),
                done.cwd,
            )
        )
        return done

    def _refuse_when_over(self) -> None:
        if self._over is None and self._calls >= self._limits.steps * CALLS_PER_STEP:
            self._recorder.record(LimitReached("tool_calls", f"{self._calls} tool calls"))
            self._over = RunOver(TerminationReason.STEP_LIMIT, f"the agent made {self._calls} tool calls")
        if self._over is None and self._clock.left() <= 0:
            self._over = RunOver(TerminationReason.TIME_LIMIT, f"the run's {self._limits.seconds:g} seconds are used up")
        if self._over is not None:
            raise self._over

    def _problem(self, tool: str, arguments: Mapping[str, JSON]) -> str:
        spec = next((spec for spec in self._specs if spec.name == tool), None)
        if spec is None:
            return f"error: there is no tool '{tool}'; the tools are: {', '.join(spec.name for spec in self._specs)}"
        properties = spec.parameters.get("properties")
        known = set(properties) if isinstance(properties, dict) else set()
        required = spec.parameters.get("required")
        missing = [str(name) for name in required if name not in arguments] if isinstance(required, list) else []
        unknown = sorted(set(arguments) - known)
        if missing or unknown:
            parts = [f"missing argument '{name}'" for name in missing] + [f"unknown argument '{name}'" for name in unknown]
            return f"error: {tool}: {'; '.join(parts)}"
        if tool in BUILTIN and tool not in self._own:
            wrong = [name for name, value in arguments.items() if not isinstance(value, str)]
            if wrong:
                return f"error: {tool}: argument '{wrong[0]}' must be a string"
        return ""

    def _perform(self, tool: str, arguments: Mapping[str, JSON]) -> CommandOutput:
        timeout = max(1.0, min(self._limits.command_seconds, self._clock.left()))
        own = self._own.get(tool)
        if own is not None:
            values = {f"ARG_{name.upper()}": _as_text(value) for name, value in arguments.items()}
            return self._workspace.run(own.command, timeout=timeout, env=values)
        if tool == "bash":
            return self._workspace.run(str(arguments["command"]), timeout=timeout)
        path = str(arguments["path"])
        try:
            if tool == "read_file":
                data = self._workspace.read_file(path, limit=self._limits.output_bytes)
                return CommandOutput(data.decode("utf-8", "replace"), 0, truncated=len(data) >= self._limits.output_bytes)
            content = octets(str(arguments["content"]))
            self._workspace.write_file(path, content)
            return CommandOutput(f"wrote {counted(len(content), 'byte')} to {path}", 0)
        except OSError as error:
            return CommandOutput(f"error: {path}: {error.strerror or error}", 1)


def _refusal(error: OSError) -> str:
    return f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error.strerror or error}"


def _size(arguments: Mapping[str, JSON]) -> int:
    """Characters of the arguments; 0 for what is no JSON, which the recorder refuses."""
    try:
        return len(json.dumps(dict(arguments), ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return 0


def _as_text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _shown(done: CommandOutput, limits: Limits) -> str:
    """The output with what the agent must know about how the call ended."""
    notes = []
    if done.timed_out:
        notes.append(f"[stopped after {limits.command_seconds:g} seconds]")
    if done.restarted:
        notes.append("[the shell ended and was started anew: its working directory and variables are gone]")
    if done.exit_code:
        notes.append(f"[exit code {done.exit_code}]")
    text = done.output
    if notes and text and not text.endswith("\n"):
        text += "\n"
    return text + "\n".join(notes)
