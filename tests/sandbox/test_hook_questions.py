"""What hooks are asked about."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace

from support import evidence as e

from pytest_saber.model.state import Commit, FileEntry, GitRepo, State
from pytest_saber.sandbox.hook_questions import COMMITS, Inquiry, inquiries

GIT = f"{e.WORKDIR}/.git"
BARE = "/srv/git/app.git"
START = {"a" * 40: e.commit("Start")}
ZERO = "0" * 40


def local(commits: dict[str, Commit] | None = None, **more: object) -> GitRepo:
    return e.repo({}, path=GIT, commits={**START, **(commits or {})}, **more)  # type: ignore[arg-type]


def asked(before: State, after: State) -> tuple[Inquiry, ...]:
    return inquiries(before, after, e.HOME)


def told(before: State, after: State) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [
        (question.hook, question.commit[:1], question.parent[:1], question.refs)
        for inquiry in asked(before, after)
        for question in inquiry.questions
    ]


HOOKS = {"pre-commit": "x", "commit-msg": "x", "pre-push": "x"}
BEFORE = e.state({}, git=[local(hooks=HOOKS)])
NEW = {"b" * 40: e.commit("New", ["a" * 40], time=5)}
MAIN = ("refs/heads/main",)


def test_each_new_commit_once_for_each_hook() -> None:
    after = e.state({}, git=[local(NEW, hooks={})])
    assert told(BEFORE, after) == [("pre-commit", "b", "a", MAIN), ("commit-msg", "b", "a", MAIN)]
    (inquiry,) = asked(BEFORE, after)
    assert inquiry.place("pre-commit") == f"{GIT}/hooks/pre-commit"
    assert [(c.hook, c.commit[:1], c.refs) for c in inquiry.controls["pre-commit"]] == [
        ("pre-commit", "a", ("refs/heads/main", "refs/heads/control"))
    ]


def test_nothing_where_there_is_no_hook_or_no_new_commit() -> None:
    after = e.state({}, git=[local(NEW)])
    assert asked(e.state({}, git=[local(hooks={"post-commit": "x"})]), after) == ()
    assert asked(BEFORE, BEFORE) == ()
    assert asked(BEFORE, e.state({})) == ()
    unreached = local(NEW, refs={"refs/heads/main": "a" * 40, "refs/stash": "b" * 40, "refs/remotes/o/x": "b" * 40})
    assert asked(BEFORE, e.state({}, git=[unreached])) == ()


def test_commits_that_a_remote_had_are_not_new() -> None:
    remote = e.repo(path=BARE, bare=True, commits={**START, **NEW})
    before = e.state({}, git=[local(hooks=HOOKS), remote])
    assert asked(before, e.state({}, git=[local(NEW), remote])) == ()


def test_merges_detached_heads_and_branches_of_before() -> None:
    commits = {"b" * 40: e.commit("Side", ["a" * 40], time=2), "c" * 40: e.commit("Merge", ["a" * 40, "b" * 40], time=3)}
    before = e.state({}, git=[local(hooks={"pre-commit": "x", "pre-merge-commit": "x"})])
    after = replace(local(commits), checkouts=("side", "a" * 40, "main"))
    refs = ("refs/heads/main", "refs/heads/side", "HEAD")
    assert told(before, e.state({}, git=[after])) == [
        ("pre-merge-commit", "c", "a", refs),
        ("pre-commit", "c", "a", refs),
        ("pre-commit", "b", "a", refs),
    ]
    (inquiry,) = asked(before, e.state({}, git=[after]))
    assert [question.merged for question in inquiry.questions] == [("b" * 40,), ("b" * 40,), ()]
    detached = replace(local(NEW, refs={"refs/heads/main": "a" * 40}), head="b" * 40)
    assert told(before, e.state({}, git=[detached])) == [("pre-commit", "b", "a", ("HEAD",))]
    in_another = local(NEW, refs={"refs/heads/main": "a" * 40}, reflog={"worktrees/x/HEAD": ("a" * 40, "b" * 40)})
    assert told(before, e.state({}, git=[in_another])) == [("pre-commit", "b", "a", ("HEAD",))]


def test_where_hooks_are_looked_for() -> None:
    script = e.file("#!/bin/sh\n", 0o755)
    places: list[tuple[dict[str, FileEntry | str], dict[str, tuple[str, ...]], str]] = [
        ({".githooks/pre-commit": script}, {"core.hookspath": (".githooks",)}, f"{e.WORKDIR}/.githooks/pre-commit"),
        ({"~/hooks/pre-commit": script}, {"core.hookspath": ("~/hooks",)}, f"{e.HOME}/hooks/pre-commit"),
        ({"/srv/hooks/pre-commit": script, "~/.gitconfig": "[core]\n  hooksPath = /srv/hooks/\n"}, {}, "/srv/hooks/pre-commit"),
        ({"/srv/h/pre-commit": script, "/etc/gitconfig": "[core]\nhooksPath=/srv/h\n"}, {}, "/srv/h/pre-commit"),
        ({"hooks/pre-commit": e.link("../x")}, {"core.hookspath": ("hooks",)}, f"{e.WORKDIR}/hooks/pre-commit"),
    ]
    after = e.state({}, git=[local(NEW)])
    for entries, config, place in places:
        (inquiry,) = asked(e.state(entries, git=[local(config=config)]), after)
        assert [(q.hook, inquiry.place(q.hook)) for q in inquiry.questions] == [("pre-commit", place)]
    # The setting hides .git/hooks, and what cannot be run is no hook.
    quiet = e.state(
        {".githooks/pre-commit": "#!/bin/sh\n"}, git=[local(hooks=HOOKS, config={"core.hookspath": (".githooks",)})]
    )
    assert asked(quiet, after) == ()


def test_pushes_of_the_repositorys_own_commits() -> None:
    config = {"remote.origin.url": (f"file://{BARE}",), "remote.far.url": ("https://git.acme.dev/app",)}
    remote = e.repo(path=BARE, bare=True, commits=START, refs={"refs/heads/main": "a" * 40, "refs/heads/old": "a" * 40})
    before = e.state({}, git=[local(hooks={"pre-push": "x"}, config=config), remote])
    theirs = "d" * 40
    pushed = replace(remote, refs={"refs/heads/main": "b" * 40, "refs/heads/theirs": theirs}, commits={**START, **NEW})
    (inquiry,) = asked(before, e.state({}, git=[local(NEW, config=config), pushed]))
    assert [question.push for question in inquiry.questions] == [
        ("origin", f"file://{BARE}", "refs/heads/main", "b" * 40, "a" * 40),
        ("origin", f"file://{BARE}", "refs/heads/old", ZERO, "a" * 40),
    ]
    assert [control.push and control.push[2] for control in inquiry.controls["pre-push"]] == ["refs/heads/control"]


def test_the_newest_of_many_commits() -> None:
    ids = [f"{number:040x}" for number in range(1, COMMITS + 4)]
    commits = {
        oid: e.commit(str(number), [ids[number - 1]] if number else ["a" * 40], time=number) for number, oid in enumerate(ids)
    }
    (inquiry,) = asked(e.state({}, git=[local(hooks={"pre-commit": "x"})]), e.state({}, git=[local(commits)]))
    assert [question.commit for question in inquiry.questions] == ids[:2:-1]
    assert inquiry.left_out == (ids[2], ids[1], ids[0])


def test_thousands_of_branches_need_little_memory() -> None:
    ids = ["a" * 40, *(f"{number:040x}" for number in range(1, 3_000))]
    commits = {oid: e.commit("More", [parent], time=n) for n, (parent, oid) in enumerate(itertools.pairwise(ids))}
    refs = {f"refs/heads/b{number:04}": oid for number, oid in enumerate(reversed(ids[1:]))}
    after = e.state({}, git=[local(commits, refs=refs)])
    tracemalloc.start()
    try:
        (inquiry,) = asked(BEFORE, after)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20
    assert inquiry.questions[0].commit == ids[-1]
    assert inquiry.questions[0].refs == ("refs/heads/b0000",)
    assert inquiry.questions[-1].refs == tuple(f"refs/heads/b{number:04}" for number in range(4))


def test_commits_that_were_pushed_and_are_in_no_branch_here() -> None:
    config = {"remote.origin.url": (BARE,), "user.name": ("Ana",), "user.email": ("ana@acme.dev",)}
    remote = e.repo(path=BARE, bare=True, commits=START, refs={"refs/heads/main": "a" * 40})
    before = e.state({}, git=[local(hooks={"pre-commit": "x"}, config=config), remote])
    mine = replace(NEW["b" * 40], committer="Ana <ana@acme.dev>")
    pushed = replace(remote, commits={**START, "b" * 40: mine}, refs={"refs/heads/release": "b" * 40})
    # Pushed and then taken back here: the objects are here, and git's branches do not lead to them.
    back = local(NEW, config=config, refs={"refs/heads/main": "a" * 40})
    (inquiry,) = asked(before, e.state({}, git=[back, replace(pushed, commits={**START, **NEW})]))
    assert [(q.hook, q.commit, q.refs) for q in inquiry.questions] == [("pre-commit", "b" * 40, ("refs/heads/release",))]
    assert inquiry.stores == (f"{GIT}/objects",)
    # Pushed from a clone, which has no hooks.
    (inquiry,) = asked(before, e.state({}, git=[local(config=config), pushed]))
    assert [(q.commit, q.refs) for q in inquiry.questions] == [("b" * 40, ("refs/heads/release",))]
    assert inquiry.stores == (f"{GIT}/objects", f"{BARE}/objects")
    # Somebody else's.
    theirs = replace(pushed, commits={**START, **NEW})
    assert asked(before, e.state({}, git=[local(config=config), theirs])) == ()
    assert asked(before, e.state({}, git=[local(config=config)])) == ()


def test_a_repository_that_the_run_moved() -> None:
    elsewhere = replace(local(NEW), path="/tmp/g")
    fewer = replace(local(), path="/tmp/clone")
    (inquiry,) = asked(BEFORE, e.state({}, git=[fewer, elsewhere]))
    assert (inquiry.repo, inquiry.root, inquiry.stores) == (GIT, e.WORKDIR, ("/tmp/g/objects",))
    assert [question.commit for question in inquiry.questions] == ["b" * 40] * 2
    # Another repository, which has not all that was here.
    assert asked(BEFORE, e.state({}, git=[replace(elsewhere, commits=NEW)])) == ()
    linked = replace(local(NEW), stores=("/tmp/g/objects", "/tmp/more"))
    (inquiry,) = asked(BEFORE, e.state({}, git=[linked]))
    assert inquiry.stores == ("/tmp/g/objects", "/tmp/more")


def test_what_git_may_have_made_from_commits_of_before() -> None:
    old = {"a" * 40: e.commit("Start"), "1" * 40: e.commit("Fix it\n", ["a" * 40], time=2)}
    commits = {
        "b" * 40: e.commit("Fix it\n\n(cherry picked from commit 1111111)\n", ["a" * 40], time=5),
        "c" * 40: e.commit('Revert "Fix it"\n\nThis reverts commit 1111111.\n', ["b" * 40], time=6),
        "d" * 40: e.commit("Fix it", ["c" * 40], author="Bo <bo@acme.dev>", time=7),
    }
    before = e.state({}, git=[e.repo({}, path=GIT, commits=old, hooks={"pre-commit": "x"})])
    (inquiry,) = asked(before, e.state({}, git=[e.repo({}, path=GIT, commits={**old, **commits})]))
    assert {question.commit[:1]: question.originals for question in inquiry.questions} == {
        "b": (("cherry-pick", "1" * 40),),
        "c": (("revert", "1" * 40),),
        "d": (),
    }


def test_what_a_commit_may_be_an_amendment_of() -> None:
    start = {"a" * 40: e.commit("Start"), "1" * 40: e.commit("Old", ["a" * 40], time=2)}
    commits = {oid * 40: e.commit(f"Try {oid}", ["a" * 40], time=5) for oid in "bcd"}
    commits["e" * 40] = e.commit("Other author", ["a" * 40], author="Bo <bo@acme.dev>")
    log = {"HEAD": tuple(oid * 40 for oid in "a1bcde")}
    before = e.state({}, git=[e.repo({}, path=GIT, commits=start, hooks=HOOKS)])
    after = e.repo({}, path=GIT, commits={**start, **commits}, refs={"refs/heads/main": "d" * 40}, reflog=log)
    (inquiry,) = asked(before, e.state({}, git=[after]))
    commit, message = inquiry.questions
    assert (commit.hook, message.hook, message.amended) == ("pre-commit", "commit-msg", ())
    # The last first; what is new is asked itself, about what came before it.
    assert [oid[:1] for oid, _ in commit.amended] == ["c", "b", "1"]
    third, second, first = (own for _, own in commit.amended)
    assert third is not None
    assert second is not None
    assert first is None
    assert (third.commit[:1], [oid[:1] for oid, _ in third.amended]) == ("c", ["b", "1"])
    assert (second.commit[:1], [oid[:1] for oid, _ in second.amended]) == ("b", ["1"])
