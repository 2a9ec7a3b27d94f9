"""Asks the baseline's git hooks about what the run committed and pushed, in a throwaway container.

The container is provisioned like the workspace was, so that hooks, programs and settings are those the agent found and not
what it left, and only objects of the repository are brought over. A hook that refuses there may have lacked what the run
made, installed, or had not committed yet: it is asked again with the user's home, the work directory and the work tree as
the run left them, and refuses only if it never assents. Git is run nowhere but in that container, as the workspace's user.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import docker
import docker.errors

from pytest_saber.errors import TaskError, WorkspaceLost
from pytest_saber.model.state import HookAnswer, HookVerdict, State
from pytest_saber.sandbox.accounts import Account
from pytest_saber.sandbox.engine import faults
from pytest_saber.sandbox.hook_questions import Inquiry, Question, inquiries

if TYPE_CHECKING:
    from pytest_saber.sandbox.workspace import DockerWorkspace

HOOK_SECONDS = 15.0
"""Longest time of one hook."""
TOTAL_SECONDS = 60.0
"""From when on hooks are asked no more."""
_STEP_SECONDS = 20.0
_OUTPUT = 2_000
_COPIED = 256 << 20
_KEEP = "/tmp/.saber-hooks"  # noqa: S108 - in a container of our own
_CANNOT_RUN = {126, 127}


@dataclass(frozen=True, slots=True)
class Workbench:
    """What is needed: the workspace's container, its user, and how another workspace like it is made."""

    client: docker.DockerClient
    container: str
    account: Account
    workdir: str
    fresh: Callable[[], AbstractContextManager[DockerWorkspace]]


def ask(bench: Workbench, baseline: State, final: State) -> tuple[HookVerdict, ...]:
    """The verdicts of all hooks of the baseline, none where there is nothing to ask. Raises InfrastructureFault."""
    found = inquiries(baseline, final, bench.account.home)
    if not found:
        return ()
    panels = [_Panel(bench, inquiry, f"{_KEEP}/{number}") for number, inquiry in enumerate(found)]
    try:
        with bench.fresh() as room:
            deadline = time.monotonic() + TOTAL_SECONDS
            for panel in panels:
                panel.hear(room, deadline)
            for panel in panels:
                panel.hear_again(room)
    except (TaskError, WorkspaceLost) as error:
        for panel in panels:
            panel.give_up(f"the container to ask it in could not be kept up: {error}")
    return tuple(verdict for panel in panels for verdict in panel.verdicts())


class _Stop(Exception):
    """Why nothing more can be learned in this surrounding."""


class _Panel:
    """The hooks of one repository."""

    def __init__(self, bench: Workbench, inquiry: Inquiry, keep: str) -> None:
        self._bench = bench
        self._inquiry = inquiry
        self._keep = keep
        self._tops = _tops([bench.account.home, bench.workdir, inquiry.root])
        self._deadline = 0.0
        self._found: dict[Question, HookVerdict] = {}
        self._why = "it was not asked"

    def verdicts(self) -> Iterator[HookVerdict]:
        for question in self._inquiry.questions:
            yield self._found.get(question) or self._undecided(question, self._why)
        if self._inquiry.left_out:
            count = len(self._inquiry.left_out)
            question = replace(self._inquiry.questions[0], commit=self._inquiry.left_out[0])
            yield self._undecided(question, f"too many new commits: it was not asked about the {count} oldest")

    def give_up(self, why: str) -> None:
        self._why = why[:500]

    def hear(self, room: DockerWorkspace, deadline: float) -> None:
        """Ask everything as the agent found it."""
        self._deadline = deadline
        try:
            self._bring_objects(room)
            self._ask(room, self._inquiry.questions)
        except _Stop as stop:
            self.give_up(str(stop))

    def hear_again(self, room: DockerWorkspace) -> None:
        """Ask what got no assent once more as the agent left it. No answer there leaves the first one."""
        before = {question: verdict for question, verdict in self._found.items() if verdict.answer is not HookAnswer.ACCEPTED}
        if not before or not self._left():
            return
        try:
            self._bring_surroundings(room)
            for question in before:
                # Before anything is checked out: a hook that looks at files may have seen some that came with a later commit.
                verdict = self._answer(room, question, with_files=False)
                if verdict.answer is HookAnswer.ACCEPTED:
                    self._found[question] = verdict
            self._ask(room, [question for question in before if self._found[question].answer is not HookAnswer.ACCEPTED])
        except _Stop:
            return
        finally:
            for question, verdict in before.items():
                if self._found[question].answer is HookAnswer.UNDECIDED:
                    self._found[question] = verdict

    # --- the surroundings --------------------------------------------------------------------------------------

    def _bring_objects(self, room: DockerWorkspace) -> None:
        git, folder = self._inquiry.repo, self._inquiry.place("")
        for store in self._inquiry.stores:
            self._copy(room, f"{store}/objects", git)
        self._step(
            room,
            f"mkdir -p {self._keep} && cp -a {_word(git)} {self._keep}/git && "
            f"if [ -d {_word(folder)} ]; then cp -a {_word(folder)} {self._keep}/hooks; fi",
        )

    def _bring_surroundings(self, room: DockerWorkspace) -> None:
        """Replace what the user could change with what the run left of it, but for the git directory and the hooks."""
        if "/" in self._tops:
            raise _Stop("the work tree is the whole file system")
        emptied = "; ".join(f"find {_word(top)} -mindepth 1 -delete 2>/dev/null" for top in self._tops)
        self._step(room, f"cd /; {emptied}; true")
        for top in self._tops:
            self._copy(room, top, top.rpartition("/")[0] or "/")
        git = _word(self._inquiry.repo)
        self._step(room, f"rm -rf {git} && cp -a {self._keep}/git {git}")

    def _copy(self, room: DockerWorkspace, path: str, folder: str) -> None:
        """A path of the workspace into `folder` of the room, through the engine, which keeps owners and follows no link out."""
        client = self._bench.client
        with faults("bring a run's files to its hooks"):
            try:
                stream, _ = client.api.get_archive(self._bench.container, path, chunk_size=1 << 20)
            except docker.errors.NotFound:
                client.api.inspect_container(self._bench.container)
                raise _Stop(f"{path} is gone") from None
            try:
                client.api.put_archive(room.container_id, folder, _bounded(stream, path))
            except docker.errors.APIError as error:
                raise _Stop(f"{path} could not be copied: {error.explanation}") from error
            finally:
                stream.close()

    def _step(self, room: DockerWorkspace, command: str) -> None:
        done = room.run(f"( {command} )", timeout=_STEP_SECONDS)
        if done.exit_code != 0:
            raise _Stop(f"the surroundings could not be made: {done.output.strip()[-300:]}")

    # --- asking ------------------------------------------------------------------------------------------------

    def _ask(self, room: DockerWorkspace, questions: Sequence[Question]) -> None:
        works: dict[str, bool] = {}
        for question in questions:
            verdict = self._answer(room, question)
            if verdict.answer is HookAnswer.REFUSED:
                if question.hook not in works:
                    controls = self._inquiry.controls[question.hook]
                    answers = (self._answer(room, control).answer for control in controls)
                    works[question.hook] = any(answer is HookAnswer.ACCEPTED for answer in answers)
                if not works[question.hook]:
                    verdict = replace(verdict, answer=HookAnswer.UNDECIDED, detail=self._doubt(question))
            self._found[question] = verdict

    def _doubt(self, question: Question) -> str:
        if not self._inquiry.controls[question.hook]:
            return "there is no commit of before the run to try the hook on"
        return "it refuses the last commits of before the run too" if self._left() else "there was no time to try the hook"

    def _answer(self, room: DockerWorkspace, question: Question, *, with_files: bool = True) -> HookVerdict:
        """The first assent, or else the first answer. Without `with_files` the work tree is left as it is."""
        first: HookVerdict | None = None
        for ref in question.refs:
            verdict = self._once(room, question, ref, with_files)
            if verdict.answer is HookAnswer.ACCEPTED:
                return verdict
            if first is None or verdict.answer is HookAnswer.UNDECIDED:
                first = verdict
        return first or self._undecided(question, "no branch holds the commit")

    def _once(self, room: DockerWorkspace, question: Question, ref: str, with_files: bool) -> HookVerdict:
        if not self._left():
            return self._undecided(question, f"all hooks together took more than {TOTAL_SECONDS:g} seconds")
        ready = room.run(f"( {self._make_ready(question, ref, with_files)} )", timeout=_STEP_SECONDS)
        if ready.exit_code != 0:
            return self._undecided(question, f"the commit could not be checked out: {ready.output.strip()[-300:]}")
        done = room.run(f"( {self._call(question)} )", timeout=HOOK_SECONDS)
        verdict = self._undecided(question, "")
        verdict = replace(verdict, ref=ref, exit_code=done.exit_code, output=done.output.strip()[-_OUTPUT:])
        if done.timed_out:
            return replace(verdict, detail=f"it did not end within {HOOK_SECONDS:g} seconds")
        if done.exit_code is None or done.exit_code in _CANNOT_RUN:
            return replace(verdict, detail="it cannot be run")
        return replace(verdict, answer=HookAnswer.REFUSED if done.exit_code else HookAnswer.ACCEPTED)

    def _make_ready(self, question: Question, ref: str, with_files: bool) -> str:
        """As git has it when it calls the hook: the index and the work tree hold the commit, HEAD its parent."""
        lines = [f"set -e; cd -- {_word(self._inquiry.root)}; rm -f .git/index.lock"]
        commit, parent = _word(question.commit), _word(question.parent) if question.parent else ""
        branch = ref if question.push is None else ""
        if branch.startswith("refs/heads/"):
            lines.append(f"git symbolic-ref HEAD {_word(branch)}")
            lines.append(f"git update-ref {_word(branch)} {parent}" if parent else f"git update-ref -d {_word(branch)}")
        else:
            lines.append(f"git update-ref --no-deref HEAD {parent or commit}")
        lines.append(f"git read-tree --reset {'-u ' if with_files else ''}{commit}")
        folder = self._inquiry.place("")
        if _below(folder, self._tops):
            # The commit, or what the run left, may hold another version of the hooks.
            lines.append(
                f"if [ -d {self._keep}/hooks ]; then rm -rf {_word(folder)}; cp -a {self._keep}/hooks {_word(folder)}; fi"
            )
        lines.append(f"git cat-file commit {commit} | sed '1,/^$/d' > .git/COMMIT_EDITMSG")
        return "\n".join(lines)

    def _call(self, question: Question) -> str:
        lines = [f"cd -- {_word(self._inquiry.root)}"]
        hook = _word(f"{self._inquiry.folder.rstrip('/')}/{question.hook}")
        if question.push is None:
            for name, form in (("NAME", "%an"), ("EMAIL", "%ae"), ("DATE", "@%at")):
                lines.append(f'export GIT_AUTHOR_{name}="$(git show -s --format={form} {_word(question.commit)})"')
            lines.append('export GIT_INDEX_FILE="$PWD/.git/index" GIT_EDITOR=: GIT_PREFIX=')
            message = " .git/COMMIT_EDITMSG" if question.hook == "commit-msg" else ""
            lines.append(f"exec {hook}{message}")
        else:
            remote, address, ref, new, old = question.push
            local = "(delete)" if not new.strip("0") else ref
            pushed = _word(f"{local} {new} {ref} {old}")
            lines.append(f"printf '%s\\n' {pushed} | {hook} {_word(remote)} {_word(address)}")
        return "\n".join(lines)

    def _left(self) -> bool:
        return time.monotonic() < self._deadline

    def _undecided(self, question: Question, why: str) -> HookVerdict:
        return HookVerdict(
            repo=self._inquiry.repo,
            hook=question.hook,
            place=self._inquiry.place(question.hook),
            commit=question.commit,
            ref=question.refs[0] if question.refs else "",
            answer=HookAnswer.UNDECIDED,
            detail=why,
        )


def _word(text: str) -> str:
    return shlex.quote(text)


def _tops(paths: Sequence[str]) -> list[str]:
    """The paths that lie below no other."""
    chosen = sorted(set(paths))
    return [path for path in chosen if not _below(path, [top for top in chosen if top != path])]


def _below(path: str, tops: Sequence[str]) -> bool:
    return any(path == top or path.startswith(top.rstrip("/") + "/") for top in tops)


def _bounded(stream: Iterator[bytes], path: str) -> Iterator[bytes]:
    left = _COPIED
    for chunk in stream:
        left -= len(chunk)
        if left < 0:
            raise _Stop(f"{path} is too large to be copied")
        yield chunk
