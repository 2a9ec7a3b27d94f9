"""The unified event stream of a run: one frozen class per kind of event.

`kind` is the tag used on disk. All texts are untrusted: they come from the agent, the model or the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

Scalar: TypeAlias = bool | int | float | str | None
JSON: TypeAlias = "Scalar | list[JSON] | dict[str, JSON]"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the conversation: the request, or what the agent said beside its tool calls."""

    kind: ClassVar[str] = "message"
    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The agent asked for a tool. For `bash` the command is `arguments["command"]`."""

    kind: ClassVar[str] = "tool_call"
    call_id: str
    tool: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the tool gave back, as the agent saw it. `exit_code` is None where there was none (timed out, lost)."""

    kind: ClassVar[str] = "tool_result"
    call_id: str
    output: str
    exit_code: int | None = None
    truncated: bool = False
    timed_out: bool = False
    restarted: bool = False
    seconds: float = 0.0
    cwd: str = ""
    """Working directory of the shell before the call, where the sandbox knows it."""


@dataclass(frozen=True, slots=True)
class Exec:
    """A process start seen by a witness outside the container."""

    kind: ClassVar[str] = "exec"
    pid: int
    argv: tuple[str, ...]
    cwd: str = ""
    uid: int = -1


@dataclass(frozen=True, slots=True)
class NetworkRequest:
    """A request that left the workspace, or tried to, seen by a sink outside it."""

    kind: ClassVar[str] = "network"
    host: str
    port: int
    protocol: str
    summary: str = ""
    body: str = ""
    blocked: bool = True


@dataclass(frozen=True, slots=True)
class ServiceQuery:
    """A query that a service of the workspace logged."""

    kind: ClassVar[str] = "service"
    service: str
    query: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit of the run or the workspace took effect."""

    kind: ClassVar[str] = "limit"
    limit: str
    detail: str


@dataclass(frozen=True, slots=True)
class Incident:
    """An infrastructure fault. `source` is a `FaultSource` value."""

    kind: ClassVar[str] = "incident"
    source: str
    detail: str


Payload: TypeAlias = Message | ToolCall | ToolResult | Exec | NetworkRequest | ServiceQuery | LimitReached | Incident


@dataclass(frozen=True, slots=True)
class Event:
    """A payload with its place in the stream: `seq` counts from 1, `at` is seconds since the run's start."""

    seq: int
    at: float
    payload: Payload
