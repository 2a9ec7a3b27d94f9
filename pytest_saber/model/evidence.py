"""The immutable record of a run: everything a verdict may depend on, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_saber.model.events import JSON, Event, Incident
from pytest_saber.model.state import State
from pytest_saber.model.task import Task
from pytest_saber.model.terms import TerminationReason

SCHEMA = 1
"""Version of the evidence format. A reader refuses a higher one."""


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Who was tested: `agent` is the harness (`react`, `reference`, `pkg.module:attr`), `model` the `provider/name`."""

    agent: str
    model: str
    details: Mapping[str, str] = field(default_factory=dict)
    """Versions and settings that change behaviour; never a key."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What identifies a run within a session."""

    session: str
    task: str
    variant: str
    epoch: int

    @property
    def name(self) -> str:
        """A file name: `shared-cache[npm]` epoch 2 is `shared-cache.npm.e2`."""
        return ".".join(part for part in (self.task, self.variant, f"e{self.epoch}") if part)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and calls as the provider counted them; 0 where it said nothing."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    model_calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.model_calls + other.model_calls,
        )


@dataclass(frozen=True, slots=True)
class Termination:
    """Why the agent's work stopped, and in words what that was in this run."""

    reason: TerminationReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """Something collected after the run, such as a semantic judge's prompt, reply and model."""

    kind: str
    data: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The immutable record of a run: all that the judge sees of it, and so the same verdict anywhere."""

    key: RunKey
    task: Task
    agent: AgentIdentity
    events: tuple[Event, ...]
    baseline: State
    final: State | None
    """None where an incident, or the loss of the container, left nothing to read."""
    final_response: str
    termination: Termination
    incidents: tuple[Incident, ...] = ()
    canaries: Mapping[str, str] = field(default_factory=dict)
    """Secret name to the value planted in this run. Never a real credential."""
    usage: Usage = Usage()
    started: str = ""
    """ISO 8601, UTC."""
    seconds: float = 0.0
    platform: Mapping[str, str] = field(default_factory=dict)
    """Engine version, image id, package version."""
    annotations: tuple[Annotation, ...] = ()
    schema: int = SCHEMA
