"""The Protocols between the layers. One per seam; implementations are found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pytest_saber.model.events import JSON, Event, Payload
from pytest_saber.model.evidence import AgentIdentity, RunKey, Termination, Usage
from pytest_saber.model.state import HookVerdict, State
from pytest_saber.model.task import AgentBrief, Limits, Task, WorkspaceSpec

# --- the sandbox -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Of one command in the workspace's shell. `output` is stdout and stderr as they came, bounded, both ends kept."""

    output: str
    exit_code: int | None
    truncated: bool = False
    timed_out: bool = False
    restarted: bool = False
    """The shell was lost and started anew: its working directory and variables are gone."""
    seconds: float = 0.0
    cwd: str = ""
    """Before the command."""


class Workspace(Protocol):
    """The sandboxed project of one run."""

    @property
    def container_id(self) -> str:
        """The engine's id of the container; a made-up one where there is no container."""
        ...

    def run(self, command: str, *, timeout: float, env: Mapping[str, str] | None = None) -> CommandOutput:
        """Run one command in the persistent shell. `env` holds for this command only.

        Raises WorkspaceLost when the container ended or a limit ended it, InfrastructureFault when the engine failed.
        """
        ...

    def read_file(self, path: str, *, limit: int) -> bytes:
        """Raises OSError as `open` would, WorkspaceLost, InfrastructureFault."""
        ...

    def write_file(self, path: str, content: bytes) -> None:
        """Write with the rights of the workspace's user. Raises as `read_file`."""
        ...

    def baseline(self) -> State:
        """The state after provisioning. Call once, before the agent starts."""
        ...

    def final(self) -> tuple[State, State]:
        """Freeze the workspace and read it: (baseline completed with paths of the image that changed, final)."""
        ...

    def hook_verdicts(self, baseline: State, final: State) -> tuple[HookVerdict, ...]:
        """What the baseline's git hooks say about the commits and pushes of the run. Call after `final`, at most once.

        Empty, at no cost, where the baseline has no hook or the run made nothing that one looks at. Raises InfrastructureFault.
        """
        ...

    def limits_hit(self) -> tuple[str, ...]:
        """Limits of the workspace that took effect so far without ending it, each as a sentence. Recorded as events."""
        ...

    def ended(self) -> str | None:
        """A `WorkspaceEnd` value and detail when the workspace is no longer alive, else None."""
        ...


class AgentWorkspace(Protocol):
    """What of a workspace an agent may use beside its tools. Each access is an event of the run, and counts as a tool call."""

    @property
    def container_id(self) -> str:
        """Of the container, for agents that live in one of their own beside it."""
        ...

    def run(self, command: str, *, timeout: float, env: Mapping[str, str] | None = None) -> CommandOutput:
        """As `Workspace.run`, recorded as a call of `bash`; `timeout` in seconds, at most what is left of the run."""
        ...

    def read_file(self, path: str, *, limit: int) -> bytes:
        """As `Workspace.read_file`, at most `limit` bytes."""
        ...

    def write_file(self, path: str, content: bytes) -> None:
        """As `Workspace.write_file`."""
        ...


class Sandbox(Protocol):
    """A backend that provides workspaces. Thread-safe."""

    def open(
        self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]
    ) -> AbstractContextManager[Workspace]:
        """Provision a workspace; leaving the context removes everything of it, whatever happened.

        Raises TaskError when the task's own set-up fails, InfrastructureFault when the engine does.
        """
        ...

    def describe(self) -> Mapping[str, str]:
        """Engine version, image id: goes into `Evidence.platform`."""
        ...

    def reap(self) -> int:
        """Remove what dead sessions left; returns how many things. Never touches a live session's."""
        ...

    def close(self) -> None:
        """Remove everything of this session that is still there."""
        ...


# --- the agent -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it. `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


class Toolbox(Protocol):
    """The tools of one run. Calls are recorded and bounded by the toolbox, never by the agent."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The tools that the task gives."""
        ...

    def call(self, tool: str, arguments: Mapping[str, JSON], *, call_id: str = "") -> str:
        """What the agent is shown. A wrong tool name or argument is an error text, not an exception.

        Raises WorkspaceLost, InfrastructureFault.
        """
        ...


class Recorder(Protocol):
    """Appends to the event stream, on disk before it returns."""

    def record(self, payload: Payload) -> Event:
        """The event that was made of `payload`, with its number and time. Raises OSError when it cannot be written."""
        ...


class Clock(Protocol):
    """The run's time budget."""

    def left(self) -> float:
        """Seconds left of the run's limit; 0 or less when it is used up."""
        ...


@dataclass(frozen=True, slots=True)
class AgentSession:
    """What an agent gets for one run."""

    brief: AgentBrief
    limits: Limits
    tools: Toolbox
    recorder: Recorder
    clock: Clock
    workspace: AgentWorkspace
    spent: Callable[[Usage], None] = field(default=lambda _: None)
    """To be told of every model call's usage, so that it is known of a run that ends without an AgentResult."""


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What an agent gives back. `steps` counts the model's replies, or whatever the agent takes for a step."""

    final_response: str
    termination: Termination
    usage: Usage = Usage()
    steps: int = 0


class Agent(Protocol):
    """The agent under test, for one run. May be slow; is called in a thread of its own."""

    @property
    def identity(self) -> AgentIdentity:
        """Who this is. Runs of one identity are one side of every comparison."""
        ...

    def run(self, session: AgentSession) -> AgentResult:
        """Raises InfrastructureFault (an incident) or WorkspaceLost (judged); anything else is an incident of the harness."""
        ...


class AgentFactory(Protocol):
    """Makes the agent for one task. Called in any thread, any number of times; so runs can start ahead of their item.

    The task that it gets has no judging half, no references, title, source or path: the agent under test must not see how it
    is judged. Only a factory with a true attribute `replays_reference` gets the whole task.
    """

    @property
    def identity(self) -> AgentIdentity:
        """Of the agents that it makes, known before any is made: reports and `--saber-resume` go by it."""
        ...

    def __call__(self, task: Task) -> Agent:
        """A new agent for one run of the task. What it raises is an incident of that run."""
        ...


# --- the model service -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call of a model's reply. `arguments` is None when they were not a JSON object; `raw` keeps the text."""

    id: str
    name: str
    arguments: Mapping[str, JSON] | None
    raw: str = ""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """`tool` messages answer `call_id`. `opaque` is the provider's own form of an assistant turn, replayed unchanged."""

    role: Literal["user", "assistant", "tool"]
    text: str
    tool_uses: tuple[ToolUse, ...] = ()
    call_id: str = ""
    is_error: bool = False
    opaque: JSON = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to the model: the whole conversation each time, as services keep none."""

    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    """Of the reply; None: the client's own default."""
    temperature: float | None = None
    seconds: float = 120.0
    """Time budget of the whole call, retries included."""


StopReason = Literal["end", "tool_use", "length", "refusal", "context_overflow", "pause", "other"]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One answer. `message` goes into the next request unchanged; `details` are of the provider, for the record."""

    message: ChatMessage
    stop: StopReason
    usage: Usage = Usage()
    model: str = ""
    """As the service named it."""
    details: Mapping[str, str] = field(default_factory=dict)


class ModelClient(Protocol):
    """A model service. Thread-safe. Owns the retry policy; raises InfrastructureFault when it is exhausted."""

    @property
    def model(self) -> str:
        """`provider/name`."""
        ...

    @property
    def native_tools(self) -> bool:
        """Whether the service takes tool definitions; else fenced shell blocks are used."""
        ...

    def complete(self, request: ModelRequest) -> ModelReply:
        """Ask once, with retries inside `request.seconds`. A refusal and a full context are replies, not faults.

        Raises InfrastructureFault when the service fails for good.
        """
        ...

    def close(self) -> None:
        """Give connections and processes back. A call after it, or under way, raises InfrastructureFault. Idempotent."""
        ...
