"""Which hooks git asks about merges, amendments and replayed commits: as git does it, with git."""

from __future__ import annotations

import pytest
from support.hooks import NO_SECRETS, by_message, repository, verdicts
from support.sandbox import output, run

from pytest_saber.sandbox.docker import DockerSandbox

pytestmark = pytest.mark.docker

NO_MERGES = "#!/bin/sh\n! git rev-parse -q --verify HEAD >/dev/null || { echo 'no merges'; exit 1; }\n"
NO_MARKS = "#!/bin/sh\n! git diff --cached | grep '^+TODO' || exit 1\n"
SIDE = "git checkout -qb side; echo side > a.txt; git commit -qanm 'T-2 Side'; git checkout -q main"
APART = f"{SIDE}; echo 2 > m; git add m; git commit -qnm 'T-3 Main'"
AT_ODDS = f"{SIDE}; echo main > a.txt; git commit -qanm 'T-3 Main'"


def test_a_merge_that_git_makes_asks_the_hook_for_merges_only(sandbox: DockerSandbox) -> None:
    """`git merge` asks no pre-commit; concluded by hand it is the other way round (githooks, pre-merge-commit)."""
    hooks = {
        "pre-commit": "#!/bin/sh\n[ ! -e .git/MERGE_HEAD ] || exit 1\n",
        "pre-merge-commit": "#!/bin/sh\ncat a.txt; exit 1\n",
    }
    with repository(sandbox, hooks) as workspace:
        output(workspace, f"{APART}; git merge -q --no-verify -m 'T-4 Merge' side")
        found = by_message(workspace)
        assert found["T-2 Side", "pre-commit"] == "accepted"
        assert ("T-4 Merge", "pre-commit") not in found
        # There is no merge of before to try it on.
        assert found["T-4 Merge", "pre-merge-commit"] == "it refuses the last commits of before the run too"


def test_a_merge_that_was_concluded_by_hand_asks_pre_commit(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": NO_MARKS, "pre-merge-commit": NO_MERGES}) as workspace:
        output(workspace, AT_ODDS)
        run(workspace, "git merge -q side")
        output(workspace, "printf 'TODO\\n' > a.txt; git add .; git commit -qnm 'T-6 By hand'")
        found = by_message(workspace)
    assert found["T-6 By hand", "pre-commit"] == "refused"
    assert ("T-6 By hand", "pre-merge-commit") not in found


def test_merges_that_git_makes_with_another_strategy(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": "#!/bin/sh\n[ ! -e .git/MERGE_HEAD ] || exit 1\n"}) as workspace:
        output(workspace, AT_ODDS)
        for number, way in enumerate(("-X ours", "-X theirs", "-s ours")):
            output(workspace, f"git checkout -qb m{number} main; git merge -q {way} -m 'T-6 Merge {number}' side")
        found = by_message(workspace)
    assert set(found.values()) == {"accepted"}
    assert {message for message, _ in found} == {"T-2 Side", "T-3 Main"}


def test_an_amendment_is_shown_what_differs_from_the_amended(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, "echo secret > b; git add .; git -c core.hooksPath=/ commit -qm 'T-2 Around'")
        output(workspace, "echo fine > c; git add .; git commit -q --amend -m 'T-3 Amended'")
        # The hook accepted the amendment, but not what it amends.
        assert by_message(workspace) == {("T-2 Around", "pre-commit"): "refused"}
        output(workspace, "git rm -qf b; git commit -q --amend -m 'T-4 Better'")
        assert by_message(workspace) == {("T-4 Better", "pre-commit"): "accepted"}


def test_replays_of_before_are_told_from_commits_that_merely_look_like_it(sandbox: DockerSandbox) -> None:
    only_first = "#!/bin/sh\n! git rev-parse -q --verify HEAD >/dev/null\n"
    with repository(sandbox, {"pre-commit": only_first}) as workspace:
        output(workspace, "git revert --no-edit HEAD; git revert --no-edit HEAD")
        output(workspace, "echo more > a.txt; git add .; git commit -qn -C HEAD~2")
        found = {verdict.commit: verdict for verdict in verdicts(workspace)}
        order = output(workspace, "git rev-list HEAD").split()
    assert [found[oid].replayed for oid in order[:3]] == [False, True, True]
