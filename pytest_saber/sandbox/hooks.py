"""Asks the baseline's git hooks about what the run committed and pushed, in throwaway containers.

A container is provisioned like the workspace was, so that hooks, programs and settings are those the agent found and not
what it left, and only objects of the repository are brought over. A hook that refuses there may have lacked what the run
made, installed, or had not committed yet: it is asked again with the user's home, the work directory and the work tree as
the run left them, and refuses only if it never assents. Git is run nowhere but in those containers, as the workspace's user.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TypeVar

import docker

from pytest_saber.errors import TaskError, WorkspaceLost
from pytest_saber.model.ports import Workspace
from pytest_saber.model.state import HookAnswer, HookVerdict, State
from pytest_saber.model.words import agreeing
from pytest_saber.sandbox import hook_scripts
from pytest_saber.sandbox.accounts import Account
from pytest_saber.sandbox.hook_doubts import doubts
from pytest_saber.sandbox.hook_questions import Inquiry, Question, inquiries
from pytest_saber.sandbox.hook_room import Room, Source, Stop, undecided

TOTAL_SECONDS = 90.0
"""From when on hooks are asked no more."""

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Workbench:
    """What is needed: the workspace's container, its user, and how another workspace like it is made."""

    client: docker.DockerClient
    container: str
    account: Account
    workdir: str
    fresh: Callable[[], AbstractContextManager[Workspace]]


def ask(bench: Workbench, baseline: State, final: State) -> tuple[HookVerdict, ...]:
    """The verdicts of all hooks of the baseline, none where there is nothing to ask. Raises InfrastructureFault."""
    deadline = time.monotonic() + TOTAL_SECONDS
    panels = [_Panel(bench, inquiry, deadline) for inquiry in inquiries(baseline, final, bench.account.home)]
    verdicts = [verdict for panel in panels for verdict in panel.verdicts()]
    return (*verdicts, *doubts(baseline, final, bench.account.home))


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a hook answered in one container: as the agent found things, and, without an assent, as it left them."""

    found: HookVerdict
    left: HookVerdict | None = None

    @property
    def accepted(self) -> HookVerdict | None:
        """The assent, wherever it was given."""
        return next((v for v in (self.found, self.left) if v is not None and v.answer is HookAnswer.ACCEPTED), None)


class _Panel:
    """The hooks of one repository."""

    def __init__(self, bench: Workbench, inquiry: Inquiry, deadline: float) -> None:
        self._fresh = bench.fresh
        self._source = Source(bench.client, bench.container, bench.account, bench.workdir)
        self._inquiry = inquiry
        self._deadline = deadline
        self._works: dict[tuple[str, bool], bool | None] = {}

    def verdicts(self) -> Iterator[HookVerdict]:
        """Of everything that git asks hooks. Raises InfrastructureFault."""
        for question in self._inquiry.questions:
            verdict = self._verdict(question)
            if verdict is not None:
                yield verdict
        if self._inquiry.left_out:
            count = len(self._inquiry.left_out)
            question = replace(self._inquiry.questions[0], commit=self._inquiry.left_out[0])
            left = agreeing(count, "the oldest one", f"the {count} oldest")
            yield undecided(self._inquiry, question, f"too many new commits: it was not asked about {left}")

    def _verdict(self, question: Question) -> HookVerdict | None:
        """None where git does not ask the hook. An assent to what amends another commit needs one to that commit too."""
        heard = self._hear(question)
        if heard is None or heard.accepted is not None:
            return None if heard is None else heard.accepted
        verdict = self._weighed(question, heard)
        for original, own in question.amended if verdict.answer is HookAnswer.REFUSED else ():
            amending = self._hear(replace(question, parent=original, merged=(), amended=()))
            if amending is not None and amending.accepted is not None:
                first = self._verdict(own) if own is not None else None
                return amending.accepted if first is None or first.answer is HookAnswer.ACCEPTED else first
        return verdict

    def _weighed(self, question: Question, heard: _Heard) -> HookVerdict:
        """A refusal tells something only where the hook works, and where there was time to hear both."""
        found, left = heard.found, heard.left
        if found.answer is HookAnswer.REFUSED:
            if left is None and self._is_late():
                why = "it refused as the agent found things, and there was no time to ask it as the agent left them"
                return replace(found, answer=HookAnswer.UNDECIDED, detail=why)
            if works := self._does_work(question, left=False):
                chosen = left if left is not None and left.answer is HookAnswer.REFUSED else found
                return replace(chosen, replayed=self._is_replayed(question))
            found = replace(found, answer=HookAnswer.UNDECIDED, detail=self._doubt(question, works))
        if left is not None and left.answer is HookAnswer.REFUSED and self._does_work(question, left=True):
            return replace(left, replayed=self._is_replayed(question))
        return found

    def _doubt(self, question: Question, works: bool | None) -> str:
        if not self._inquiry.controls[question.hook]:
            return "there is no commit of before the run to try the hook on"
        return "there was no time to try the hook" if works is None else "it refuses the last commits of before the run too"

    # --- in containers -----------------------------------------------------------------------------------------

    def _hear(self, question: Question) -> _Heard | None:
        def hear(room: Room) -> _Heard | None:
            if question.merged and question.hook != "commit-msg":
                by_git = room.is_by_git(hook_scripts.merged_by_git(self._inquiry, question))
                if by_git is None:
                    why = "it is not known whether git made the merge by itself, and so which hook it asked"
                    return _Heard(undecided(self._inquiry, question, why))
                if by_git is not (question.hook == "pre-merge-commit"):
                    return None
            found = room.answer(question)
            if found.answer is HookAnswer.ACCEPTED or self._is_late():
                return _Heard(found)
            try:
                room.surround()
                # Before anything is checked out: a hook that looks at files may have seen some that came with a later commit.
                left = room.answer(question, with_files=False)
                if left.answer is not HookAnswer.ACCEPTED and not self._is_late():
                    left = room.answer(question)
                return _Heard(found, left)
            except (Stop, WorkspaceLost):
                return _Heard(found)

        return self._in_room(hear, lambda why: _Heard(undecided(self._inquiry, question, why)))

    def _does_work(self, question: Question, *, left: bool) -> bool | None:
        """Whether the hook accepts anything of before the run, asked where nothing of the run has been executed."""

        def look(room: Room) -> bool:
            if left:
                room.surround()
            controls = (room.answer(control).answer for control in self._inquiry.controls[question.hook])
            return any(answer is HookAnswer.ACCEPTED for answer in controls)

        key = (question.hook, left)
        if key not in self._works and self._inquiry.controls[question.hook]:
            self._works[key] = self._in_room(look, lambda _: None)
        return self._works.get(key)

    def _is_replayed(self, question: Question) -> bool | None:
        if not question.originals:
            return False
        script = hook_scripts.replayed_by_git(self._inquiry, question)
        return self._in_room(lambda room: room.is_by_git(script), lambda _: None)

    def _in_room(self, act: Callable[[Room], _Found], otherwise: Callable[[str], _Found]) -> _Found:
        if self._is_late():
            return otherwise(f"all hooks together took more than {TOTAL_SECONDS:g} seconds")
        try:
            with self._fresh() as workspace:
                room = Room(workspace, self._source, self._inquiry, self._deadline)
                room.furnish()
                return act(room)
        except Stop as stop:
            return otherwise(str(stop))
        except (TaskError, WorkspaceLost) as error:
            return otherwise(f"the container to ask it in could not be kept up: {error}")

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline
