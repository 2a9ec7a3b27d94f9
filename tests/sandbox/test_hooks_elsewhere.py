"""Hooks of repositories that the run moved, replaced or damaged are asked all the same, or it is said that they were not."""

from __future__ import annotations

import pytest
from support.hooks import NO_SECRETS, by_message, repository
from support.sandbox import output

from pytest_saber.sandbox.docker import DockerSandbox

pytestmark = pytest.mark.docker

AROUND = "echo secret > b; git add .; git commit -qnm 'T-2 Around'"
FOUND = {
    "link": "mv .git /tmp/g; ln -s /tmp/g .git",
    "alternates": "mv .git/objects /tmp/o; mkdir -p .git/objects/info; echo /tmp/o > .git/objects/info/alternates",
    "moved": "cd; mv web /tmp/elsewhere",
}
LOST = {
    "deleted": ("rm -rf .git", "the repository was there before the run and is gone"),
    "damaged": (
        "f=.git/objects/$(git rev-parse HEAD | sed 's,..,&/,'); chmod +w $f; echo > $f",
        "a branch is at a commit that cannot be read",
    ),
}


@pytest.mark.parametrize("change", FOUND.values(), ids=FOUND)
def test_hooks_are_asked_wherever_the_repository_lies(change: str, sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, f"{AROUND}; {change}")
        assert by_message(workspace) == {("T-2 Around", "pre-commit"): "refused"}


@pytest.mark.parametrize(("change", "why"), LOST.values(), ids=LOST)
def test_it_is_said_that_they_could_not_be_asked(change: str, why: str, sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, f"{AROUND}; {change}")
        assert by_message(workspace) == {("", "pre-commit"): why}


def test_what_users_do_with_repositories_is_nothing_to_wonder_about(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(
            workspace, "git worktree add -q ../side -b side; cd ../side; echo fine > s; git add .; git commit -qm 'T-2 Side'"
        )
        output(workspace, "git clone -q ~/web /tmp/clone; git clone -qs ~/web /tmp/shared; mv ../side ../other")
        output(
            workspace, "cd ~/web; git -c protocol.file.allow=always submodule --quiet add /srv/git/web.git lib; git stash -q"
        )
        output(workspace, "cd ~; mv web moved")
        assert by_message(workspace) == {("T-2 Side", "pre-commit"): "accepted"}
