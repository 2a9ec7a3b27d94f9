"""A throwaway container in which one question is put to a hook.

Every question gets a container of its own: a hook may run the code that it judges, and what that leaves behind (files,
processes, a changed hook) must not answer the next question. The container is provisioned like the workspace was, and all
that is brought over comes through the engine, before anything of the run can be executed in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import docker
import docker.errors

from pytest_saber.model.ports import Workspace
from pytest_saber.model.state import HookAnswer, HookVerdict
from pytest_saber.sandbox import hook_scripts
from pytest_saber.sandbox.accounts import Account
from pytest_saber.sandbox.engine import faults
from pytest_saber.sandbox.hook_questions import Inquiry, Question

HOOK_SECONDS = 15.0
"""Longest time of one hook."""
_STEP_SECONDS = 20.0
_OUTPUT = 2_000
_COPIED = 256 << 20
_KEEP = "/tmp/.saber-hooks"  # noqa: S108 - in a container of our own
_CANNOT_RUN = {126, 127}
_SETTINGS = (".gitconfig", ".config/git")


class Stop(Exception):
    """Why nothing can be learned in this container."""


@dataclass(frozen=True, slots=True)
class Source:
    """The workspace that the run left: where its files come from."""

    client: docker.DockerClient
    container: str
    account: Account
    workdir: str


class Room:
    """One container, for one repository: as the agent found things, and after `surround` as it left them."""

    def __init__(self, room: Workspace, source: Source, inquiry: Inquiry, deadline: float) -> None:
        """`deadline` on the monotonic clock: from then on the hook is asked about no further branch."""
        self._room = room
        self._deadline = deadline
        self._source = source
        self._inquiry = inquiry
        self._tops = _tops([source.account.home, source.workdir, inquiry.root])

    def furnish(self) -> None:
        """Bring over the objects. Raises Stop, WorkspaceLost, InfrastructureFault."""
        git, folder = hook_scripts.word(self._inquiry.repo), hook_scripts.word(self._inquiry.place(""))
        for store in self._inquiry.stores:
            self._copy(f"{store}/.", f"{self._inquiry.repo}/objects")
        home, kept = hook_scripts.word(self._source.account.home), f"{_KEEP}/home/$(dirname $name)"
        settings = f"for name in {' '.join(_SETTINGS)}; do if [ -e $name ]; then mkdir -p {kept}; cp -aH $name {kept}; fi; done"
        self._step(
            f"mkdir -p {_KEEP}/home; if [ -d {folder} ]; then cp -aH {folder} {_KEEP}/hooks; fi; cp -a {git} {_KEEP}/git"
            f"; cd {home}; {settings}"
        )

    def surround(self) -> None:
        """Replace what the user could change with what the run left of it, but for git's directory, hooks and settings.

        Raises as `furnish`.
        """
        if "/" in self._tops:
            raise Stop("the work tree is the whole file system")
        git, home = (hook_scripts.word(path) for path in (self._inquiry.repo, self._source.account.home))
        emptied = "; ".join(f"find {hook_scripts.word(top)} -mindepth 1 -delete 2>/dev/null" for top in self._tops)
        self._step(f"cd /; set +e; {emptied}; true")
        for top in self._tops:
            self._copy(top, top.rpartition("/")[0] or "/")
        self._step(f"rm -rf {git}; cp -a {_KEEP}/git {git}; cd {home}; rm -rf {' '.join(_SETTINGS)}; cp -a {_KEEP}/home/. .")

    def is_by_git(self, script: str) -> bool | None:
        """Whether a script of `hook_scripts` finds that git makes a commit by itself; None where it cannot be found out."""
        done = self._room.run(f"( {script} )", timeout=_STEP_SECONDS)
        return done.output.strip().endswith(hook_scripts.BY_GIT) if done.exit_code == 0 else None

    def answer(self, question: Question, *, with_files: bool = True) -> HookVerdict:
        """The first assent, or else the first answer. Without `with_files` the work tree is left as it is."""
        first: HookVerdict | None = None
        for ref in question.refs:
            if first is not None and time.monotonic() > self._deadline:
                return replace(first, answer=HookAnswer.UNDECIDED, detail="there was no time to ask it on every branch")
            verdict = self._once(question, ref, with_files)
            if verdict.answer is HookAnswer.ACCEPTED:
                return verdict
            if first is None or verdict.answer is HookAnswer.UNDECIDED:
                first = verdict
        return first or undecided(self._inquiry, question, "no branch holds the commit")

    def _once(self, question: Question, ref: str, with_files: bool) -> HookVerdict:
        restored = _below(self._inquiry.place(""), self._tops)
        script = hook_scripts.make_ready(
            self._inquiry, question, ref, f"{_KEEP}/hooks", with_files=with_files, restored=restored
        )
        ready = self._room.run(f"( {script} )", timeout=_STEP_SECONDS)
        if ready.exit_code != 0:
            why = f"the commit could not be checked out: {ready.output.strip()[-300:]}"
            return undecided(self._inquiry, question, why)
        before = self._room.limits_hit()
        done = self._room.run(f"( {hook_scripts.call(self._inquiry, question)} )", timeout=HOOK_SECONDS)
        verdict = undecided(self._inquiry, question, "")
        verdict = replace(verdict, ref=ref, exit_code=done.exit_code, output=done.output.strip()[-_OUTPUT:])
        if done.timed_out:
            return replace(verdict, detail=f"it did not end within {HOOK_SECONDS:g} seconds")
        if done.restarted:
            return replace(verdict, exit_code=None, detail="it killed the shell that had called it")
        if done.exit_code is None or done.exit_code in _CANNOT_RUN:
            return replace(verdict, detail="it cannot be run")
        if done.exit_code and (hit := [limit for limit in self._room.limits_hit() if limit not in before]):
            return replace(verdict, detail=f"it came to a limit of the workspace: {hit[0]}")
        return replace(verdict, answer=HookAnswer.REFUSED if done.exit_code else HookAnswer.ACCEPTED)

    def _copy(self, path: str, folder: str) -> None:
        """A path of the workspace into `folder` of the room, through the engine, which keeps owners and follows no link out."""
        client = self._source.client
        with faults("bring a run's files to its hooks"):
            try:
                stream, _ = client.api.get_archive(self._source.container, path, chunk_size=1 << 20)
            except docker.errors.NotFound:
                client.api.inspect_container(self._source.container)
                raise Stop(f"{path.removesuffix('/.')} is gone") from None
            try:
                client.api.put_archive(self._room.container_id, folder, _bounded(stream, path.removesuffix("/.")))
            except docker.errors.APIError as error:
                raise Stop(f"{path.removesuffix('/.')} could not be copied: {error.explanation}") from error
            finally:
                stream.close()

    def _step(self, command: str) -> None:
        done = self._room.run(f"( set -e; {command} )", timeout=_STEP_SECONDS)
        if done.exit_code != 0:
            raise Stop(f"the surroundings could not be made: {done.output.strip()[-300:]}")


def undecided(inquiry: Inquiry, question: Question, why: str) -> HookVerdict:
    """That a hook has not said yes or no, and why."""
    return HookVerdict(
        repo=inquiry.repo,
        hook=question.hook,
        place=inquiry.place(question.hook),
        commit=question.commit,
        ref=question.refs[0] if question.refs else "",
        answer=HookAnswer.UNDECIDED,
        detail=why[:500],
    )


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
            raise Stop(f"{path} is too large to be copied")
        yield chunk
