"""Where hooks cannot be asked, an undecided verdict says so."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest
from support import evidence as e

from pytest_saber.model.state import Commit, GitRepo, HookAnswer, State
from pytest_saber.sandbox import hooks
from pytest_saber.sandbox.accounts import Account
from pytest_saber.sandbox.hook_doubts import doubts
from pytest_saber.sandbox.hook_questions import inquiries

GIT = f"{e.WORKDIR}/.git"
START = {"a" * 40: e.commit("Start")}
NEW = {**START, "b" * 40: e.commit("New", ["a" * 40], time=5)}
HOOKS = {"pre-commit": "x", "pre-push": "x", "post-commit": "x"}


def local(commits: dict[str, Commit] = START, **more: object) -> GitRepo:
    return e.repo({}, path=GIT, commits=commits, **{"hooks": HOOKS, **more})  # type: ignore[arg-type]


BEFORE = e.state({}, git=[local()])


def told(before: State, after: State) -> list[tuple[str, str, str]]:
    found = doubts(before, after, e.HOME)
    assert {verdict.answer for verdict in found} <= {HookAnswer.UNDECIDED}
    return [(verdict.hook, verdict.commit[:1], verdict.detail) for verdict in found]


def both(why: str, commit: str = "") -> list[tuple[str, str, str]]:
    return [("pre-commit", commit, why), ("pre-push", commit, why)]


def test_what_can_be_asked_raises_no_doubt() -> None:
    assert told(BEFORE, BEFORE) == []
    assert told(BEFORE, e.state({}, git=[local(NEW)])) == []
    moved = replace(local(NEW), path="/tmp/moved/.git")
    assert told(BEFORE, e.state({}, git=[moved])) == []
    without = e.state({}, git=[local(hooks={"post-commit": "x"})])
    assert told(without, e.state({})) == []


LOST: list[tuple[GitRepo, str, str]] = [
    (replace(local(), error="it took too long"), "", "the repository can no longer be read: it took too long"),
    (local(refs={"refs/heads/main": "c" * 40}), "c", "a branch is at a commit that cannot be read"),
    (replace(local(), head="c" * 40), "c", "a branch is at a commit that cannot be read"),
    (
        local({**START, "c" * 40: e.commit("Top", ["d" * 40])}, refs={"refs/heads/main": "c" * 40}),
        "c",
        "what came before the commit cannot be read",
    ),
    (local(refs={}, truncated=True), "", "the repository could not be read whole, and refs/heads/main was not found"),
]


@pytest.mark.parametrize(("after", "commit", "why"), LOST)
def test_commits_that_cannot_be_read(after: GitRepo, commit: str, why: str) -> None:
    assert told(BEFORE, e.state({}, git=[after])) == both(why, commit)
    assert not [q for found in inquiries(BEFORE, e.state({}, git=[after]), e.HOME) for q in found.questions if q.push]


def test_a_repository_that_is_gone() -> None:
    (first, _) = doubts(BEFORE, e.state({}), e.HOME)
    assert (first.repo, first.place) == (GIT, f"{GIT}/hooks/pre-commit")
    assert told(BEFORE, e.state({})) == both("the repository was there before the run and is gone")
    other = replace(local({"f" * 40: e.commit("Other")}), path="/tmp/x/.git")
    assert told(BEFORE, e.state({}, git=[other])) == both("the repository was there before the run and is gone")


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (replace(local(), error="sha256"), "the repository could not be read: sha256"),
        (local(truncated=True), "the repository could not be read whole before the run"),
    ],
)
def test_a_repository_that_could_not_be_read_before_counts_only_where_it_moved(before: GitRepo, why: str) -> None:
    was = e.state({".git/refs/heads/main": "a", ".git/index": "1", ".git/COMMIT_EDITMSG": "m"}, git=[before])
    looked_at = e.state({".git/refs/heads/main": "a", ".git/index": "2"}, git=[before])
    assert told(was, looked_at) == []
    moved = e.state({".git/refs/heads/main": "b", ".git/index": "2"}, git=[before])
    assert told(was, moved) == both(why)


def test_repositories_apart_from_their_work_tree() -> None:
    place = f"{GIT}/modules/lib"
    before = e.state({}, git=[local(hooks={}), e.repo({}, path=place, commits=START, hooks=HOOKS)])
    after = e.state({}, git=[local(hooks={}), e.repo({}, path=place, commits=NEW, hooks=HOOKS)])
    assert told(before, before) == []
    assert told(before, after) == [("pre-commit", "b", "the repository lies apart from its work tree")]
    (verdict,) = doubts(before, after, e.HOME)
    assert verdict.place == f"{place}/hooks/pre-commit"
    # What another repository holds was pushed from there.
    pushed = e.state({}, git=[local(NEW, hooks={}), e.repo({}, path=place, commits=NEW, hooks=HOOKS)])
    assert told(before, pushed) == []


def test_hooks_that_came_with_the_run() -> None:
    before = e.state({}, git=[local(hooks={}, config={"core.hookspath": (".githooks",)})])
    pulled = local(NEW, hooks={}, config={"core.hookspath": (".githooks",)})
    script = {".githooks/pre-commit": e.file("#!/bin/sh\n", 0o755), ".githooks/pre-push": e.file("#!/bin/sh\n", 0o755)}
    assert told(before, e.state(script, git=[pulled])) == [("pre-commit", "b", "the hook came with the run")]
    assert told(before, e.state(script, git=[replace(pulled, commits=START, refs={"refs/heads/main": "a" * 40})])) == []


def test_what_a_rebase_and_git_am_would_have_asked() -> None:
    hooks = {"pre-rebase": "x", "pre-applypatch": "x", "pre-commit": "x"}
    before = e.state({}, git=[local(NEW, hooks=hooks)])
    mine = replace(e.commit("Mine", ["a" * 40]), committer="Ana <ana@acme.dev>")
    forward = {**NEW, "c" * 40: replace(mine, parents=("b" * 40,))}
    assert told(before, e.state({}, git=[local(forward, hooks=hooks)])) == []
    rewritten = local({**NEW, "c" * 40: mine}, hooks=hooks)
    why = "refs/heads/main no longer holds the commit it was at, and whether a rebase did that is not known"
    assert told(before, e.state({}, git=[rewritten])) == [("pre-rebase", "c", why)]
    theirs = {**NEW, "c" * 40: replace(mine, parents=("b" * 40,), author="Bo <bo@acme.dev>")}
    assert told(before, e.state({}, git=[local(theirs, hooks=hooks)])) == [
        ("pre-applypatch", "c", "the commit has another author, and whether `git am` made it is not known")
    ]


def test_when_the_time_is_over_nothing_more_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh() -> AbstractContextManager[Any]:
        raise AssertionError("a container was made")

    monkeypatch.setattr(hooks, "TOTAL_SECONDS", -1.0)
    client: Any = None
    bench = hooks.Workbench(client, "", Account("agent", 1000, 1000, e.HOME), e.WORKDIR, fresh)
    (verdict,) = hooks.ask(bench, BEFORE, e.state({}, git=[local(NEW)]))
    assert (verdict.answer, verdict.commit) == (HookAnswer.UNDECIDED, "b" * 40)
    assert verdict.detail == "all hooks together took more than -1 seconds"
