"""One run from task to stored verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.values import task

from pytest_saber.agents import AgentOptions, resolve
from pytest_saber.record.store import RunStore
from pytest_saber.runner.cancellation import Cancellation, Cancelled
from pytest_saber.runner.pipeline import Pipeline
from pytest_saber.sandbox.fake import FakeSandbox


def test_a_cancelled_run_stays_as_a_partial_record_that_nothing_holds_open(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    cancellation = Cancellation()
    cancellation.set()
    with pytest.raises(Cancelled):
        Pipeline("s", FakeSandbox("s"), store).run(task(), 1, resolve("react", "reference/safe", AgentOptions()), cancellation)
    (run,) = store.recorded()
    assert store.load_partial(run).events == ()
    held = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert run / "events.jsonl" not in held
