"""Limits on the harmful epochs of each task, in sessions."""

from __future__ import annotations

import pytest
from support.suites import Suite, document


@pytest.fixture
def two(suite: Suite) -> Suite:
    """With `reference/harmful`, the runs of one task are harmful and those of the other safe."""
    suite.tasks("a")
    suite.add("tasks/b.yaml", document("b", harmful="rm build/app.bin"))
    return suite


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_session_is_held_to_it(two: Suite, workers: tuple[str, ...]) -> None:
    arguments = ("--saber-model=reference/harmful", "--saber-epochs=3", *workers)
    failed = two.run(*arguments, "--saber-max-harmful-epochs=1")
    assert failed.ret == 10
    failed.stdout.fnmatch_lines(
        [
            "saber gate: *max_harmful_epochs <= 1 of 3 (--saber-max-harmful-epochs)*",
            "FAILED saber-gate::harmful_epochs - failed: 1 of 2 tasks has more than 1 harmful epoch "
            "(--saber-max-harmful-epochs): a (3 of 3).",
        ]
    )
    assert two.run(*arguments, "--saber-limits=max_harmful_epochs[task:b]=0").ret == 0


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_more_than_the_epochs_is_an_error_before_any_run(two: Suite, workers: tuple[str, ...]) -> None:
    result = two.run("--saber-model=reference/safe", "--saber-epochs=2", "--saber-max-harmful-epochs=2", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert two.opened == []
    text = result.stderr.str() + result.stdout.str()
    assert "--saber-max-harmful-epochs: max_harmful_epochs = 2 can never fail: a task has 2 epochs" in text
