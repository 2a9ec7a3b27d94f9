"""The reference agents replay a task's scripted trajectories with real tool calls. They need no model.

`reference/safe` and `reference/harmful` take the first trajectory of the list, `reference/safe:NAME` and
`reference/harmful:NAME` the one of that name, and `reference/none` does nothing at all.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from pytest_saber.agents.options import AgentOptions
from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import AgentIdentity, Termination
from pytest_saber.model.ports import AgentResult, AgentSession
from pytest_saber.model.task import Task, Trajectory
from pytest_saber.model.terms import TerminationReason

SIDES = ("safe", "harmful", "none")


class ReferenceAgent:
    """Makes the calls of one trajectory, in order, and gives its final answer."""

    def __init__(self, identity: AgentIdentity, trajectory: Trajectory) -> None:
        self._identity = identity
        self._trajectory = trajectory

    @property
    def identity(self) -> AgentIdentity:
        """The agent `reference` with its model string as it was asked for."""
        return self._identity

    def run(self, session: AgentSession) -> AgentResult:
        """Raises InfrastructureFault, WorkspaceLost."""
        for number, step in enumerate(self._trajectory.steps, start=1):
            session.tools.call(step.tool, step.arguments, call_id=f"call_{number}")
        ended = Termination(TerminationReason.ANSWERED, f"trajectory {self._trajectory.name}")
        return AgentResult(self._trajectory.final, ended, steps=len(self._trajectory.steps))


class ReferenceFactory:
    """Picks the trajectory of each task."""

    replays_reference = True

    def __init__(self, side: str, name: str = "") -> None:
        self._side = side
        self._name = name
        self._identity = AgentIdentity("reference", f"reference/{side}" + (f":{name}" if name else ""))

    @property
    def identity(self) -> AgentIdentity:
        """That of every agent it makes."""
        return self._identity

    def __call__(self, task: Task) -> ReferenceAgent:
        """Raises UsageError when the task has no such trajectory."""
        return ReferenceAgent(self._identity, self._trajectory(task))

    def lacking(self, task: Task) -> str:
        """What the task has in place of the trajectory that is asked for; empty when it has that."""
        trajectories = self._all(task)
        if self._side == "none" or any(self._name in ("", trajectory.name) for trajectory in trajectories):
            return ""
        known = [trajectory.name for trajectory in trajectories]
        close = difflib.get_close_matches(self._name, known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        wanted = f"{self._side} reference trajectory" + (f" '{self._name}'" if self._name else "")
        return f"{task.path}:{task.line}: {task.name} has no {wanted} (it has {', '.join(known) or 'none'}){hint}"

    def _trajectory(self, task: Task) -> Trajectory:
        if self._side == "none":
            return Trajectory("none", (), "")
        lacking = self.lacking(task)
        if lacking:
            raise UsageError(lacking)
        return next(trajectory for trajectory in self._all(task) if self._name in ("", trajectory.name))

    def _all(self, task: Task) -> Sequence[Trajectory]:
        found: Sequence[Trajectory] = getattr(task.reference, self._side, ())
        return found


def create(model: str, options: AgentOptions) -> ReferenceFactory:  # noqa: ARG001 - the contract of every agent
    """The factory of `reference/SIDE[:NAME]`. Raises UsageError."""
    provider, _, rest = model.partition("/")
    side, _, name = rest.partition(":")
    if provider != "reference" or side not in SIDES or (side == "none" and name):
        close = difflib.get_close_matches(side, SIDES, n=1)
        hint = f"; did you mean 'reference/{close[0]}'?" if close else ""
        raise UsageError(
            f"--saber-model={model}: the reference agent takes reference/safe, reference/harmful, reference/none,"
            f" reference/safe:NAME or reference/harmful:NAME{hint}"
        )
    return ReferenceFactory(side, name)
