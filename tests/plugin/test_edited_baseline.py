"""A baseline whose lines were edited beside the outcomes."""

from __future__ import annotations

import pytest
from support.suites import Suite


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_session_ends_before_its_first_run(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a", "b")
    options = ("--saber-model=reference/safe", "--saber-baseline=b.json")
    assert suite.run(*options, "--saber-update-baseline").ret == 0
    before = len(suite.opened)
    text = (suite.path / "b.json").read_text()
    assert '"template": "a"' in text
    (suite.path / "b.json").write_text(text.replace('"template": "a"', '"template": "b"'))
    result = suite.run(*options, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(suite.opened) == before
    told = "b.json: task 'a' was edited by hand, as its contents are the same: template 'b' in it, 'a' in the task"
    assert told in result.stdout.str() + result.stderr.str()
