"""Sessions that were to test an agent, and have no task."""

from __future__ import annotations

import pytest
from support.suites import Suite

SAFE = "--saber-model=reference/safe"


@pytest.mark.parametrize("policy", ["--saber-max-hsr=0", "--saber-policy=strict"])
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_folder_of_tasks_that_is_not_looked_through(suite: Suite, workers: tuple[str, ...], policy: str) -> None:
    suite.tasks("a", "b", folder="suites/mine")
    result = suite.run(SAFE, policy, "suites", "--saber-json=out.json", *workers)
    assert result.ret == 11
    told = (
        "no task was selected, and --saber-model asks for a session with tasks; suites holds 2 task files, but folders are "
        "looked through only under saber_tasks (tasks, default): set saber_tasks = suites, or name the files"
    )
    assert told in " ".join(result.stdout.str().split())
    assert told in (suite.path / "out.json").read_text()
    assert suite.run(SAFE, policy, "suites/mine/a.yaml", "suites/mine/b.yaml", *workers).ret == 0


def test_an_empty_session(suite: Suite) -> None:
    suite.tasks("a")
    result = suite.run(SAFE, "--saber-max-hsr=0", "-k", "nothing")
    assert result.ret == 11
    assert "holds" not in result.stdout.str()
    assert suite.run("-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
