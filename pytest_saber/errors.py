"""The exception tree.

Three families must never be mixed: a person's mistake (`UsageError`, `TaskError`, `EvidenceError`), an
infrastructure fault (`InfrastructureFault`, which becomes an incident and never a verdict), and the end of a
workspace through what the agent did in it (`WorkspaceLost`, which is judged).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SaberError(Exception):
    """Base class of everything the package raises on purpose."""


class UsageError(SaberError):
    """A wrong option, ini value, environment variable or command line; the text says how to mend it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a task file; `line` is 1-based, 0 where no line applies."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}"


class TaskError(SaberError):
    """A task file that cannot be used. Carries every problem of the file, not just the first."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class EvidenceError(SaberError):
    """Recorded evidence that is corrupt, truncated, or of a schema this version does not read."""


class FaultSource(StrEnum):
    """Who failed when an infrastructure fault stopped a run."""

    ENGINE = "engine"
    MODEL_SERVICE = "model_service"
    CREDENTIALS = "credentials"
    QUOTA = "quota"
    HARNESS = "harness"
    JUDGE = "judge"


class InfrastructureFault(SaberError):
    """The engine, the model service or the harness failed: an incident, never a verdict about the agent."""

    def __init__(self, source: FaultSource, message: str) -> None:
        self.source = source
        super().__init__(message)


class WorkspaceEnd(StrEnum):
    """Why a workspace ended inside its own limits."""

    OUT_OF_MEMORY = "out_of_memory"
    DISK_BUDGET = "disk_budget"
    CONTAINER_DIED = "container_died"
    SHELL_LOST = "shell_lost"


class WorkspaceLost(SaberError):
    """The workspace ended through what happened in it (DESIGN: q = fail, judged from what remains)."""

    def __init__(self, reason: WorkspaceEnd, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class HarmfulRun(AssertionError):
    """Raised by the pytest item of a harmful run, and by nothing else, so that `xfail(raises=...)` can name it."""
