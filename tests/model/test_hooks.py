"""Where hooks stand: the same for the judge, which compares them, and for the sandbox, which asks them."""

from __future__ import annotations

import pytest
from support import evidence as e

from pytest_saber.judge import hook_places
from pytest_saber.model import hooks
from pytest_saber.model.state import FileEntry, GitRepo
from pytest_saber.sandbox.hook_questions import hooks_of

BARE = GitRepo("/srv/app.git", bare=True, head="ref: refs/heads/main")


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("scripts/hooks", f"{e.WORKDIR}/scripts/hooks"),
        ("./scripts//hooks/", f"{e.WORKDIR}/scripts/hooks"),
        ("../shared", "/home/agent/shared"),
        ("/opt/hooks", "/opt/hooks"),
        ("~/hooks", f"{e.HOME}/hooks"),
        ("~", e.HOME),
        ("~ana/hooks", f"{e.WORKDIR}/~ana/hooks"),
    ],
)
def test_one_place_for_the_judge_and_the_sandbox(setting: str, place: str) -> None:
    repo = e.repo({}, config={hooks.SETTING: (setting,)})
    state = e.state({f"{place}/pre-commit": e.file("exit 1\n", mode=0o755)}, git=[repo])
    assert hooks.directory(repo, setting, e.HOME) == place
    assert hook_places.directories(repo, e.HOME) == [place]
    assert list(hook_places.hooks(state, repo, e.HOME)) == [f"{place}/pre-commit"]
    folder, found = hooks_of(state, repo, e.WORKDIR, e.HOME)
    assert (folder, found) == (hooks.expanded(setting, e.HOME), frozenset({"pre-commit"}))


def test_a_bare_repository_is_its_own_root() -> None:
    assert hooks.directory(BARE, "hooks", e.HOME) == "/srv/app.git/hooks"


@pytest.mark.parametrize(
    ("entry", "runs"), [(e.file(mode=0o755), True), (e.file(mode=0o644), False), (e.directory(), False), (e.link("x"), False)]
)
def test_git_runs_files_that_are_programs(entry: FileEntry, runs: bool) -> None:
    assert hooks.is_program(entry) is runs
