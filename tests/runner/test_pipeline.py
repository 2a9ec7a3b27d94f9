"""One run from task to stored verdict."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.values import identity, task

from pytest_saber.agents import AgentOptions, resolve
from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model.evidence import AgentIdentity, RunKey, Termination
from pytest_saber.model.ports import AgentResult, AgentSession
from pytest_saber.model.task import Limits, Task, WorkspaceSpec
from pytest_saber.model.terms import TerminationReason
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


class Forgetful(FakeSandbox):
    """Loses the folder of evidence when a workspace is opened."""

    def __init__(self, root: Path) -> None:
        super().__init__("s")
        self._root = root

    def open(self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]) -> Any:
        shutil.rmtree(self._root)
        return super().open(spec, limits, key, canaries)


def test_a_run_whose_evidence_cannot_be_kept_is_an_infrastructure_fault(tmp_path: Path) -> None:
    agent = resolve("react", "reference/none", AgentOptions())
    with pytest.raises(InfrastructureFault) as caught:
        Pipeline("s", Forgetful(tmp_path / "runs"), RunStore(tmp_path / "runs")).run(task(), 1, agent)
    assert caught.value.source is FaultSource.HARNESS
    where = f"(in {tmp_path}/runs)"
    assert str(caught.value) == f"the evidence of shared-cache.npm.e1 cannot be kept: No such file or directory {where}"
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureFault, match=rf"cannot be kept: File exists \(in {tmp_path}/file\)"):
        Pipeline("s", FakeSandbox("s"), RunStore(tmp_path / "file")).run(task(), 1, agent)


SECRET = "key-0123456789abcdef"


class Talkative:
    """Factory and agent in one, which says what it should not."""

    identity: AgentIdentity = identity()

    def __init__(self, fails: bool) -> None:
        self._fails = fails

    def __call__(self, task: Task) -> Talkative:
        return self

    def run(self, session: AgentSession) -> AgentResult:
        if self._fails:
            raise ConnectionError(f"https://example.org/?key={SECRET}")
        return AgentResult(f"Done with {SECRET}.", Termination(TerminationReason.ANSWERED, ""))


@pytest.mark.parametrize("fails", [False, True], ids=["answer", "fault"])
def test_what_is_judged_and_reported_is_what_is_on_disk(tmp_path: Path, fails: bool) -> None:
    store = RunStore(tmp_path, redact=[SECRET])
    completed = Pipeline("s", FakeSandbox("s"), store).run(task(), 1, Talkative(fails))
    assert completed.evidence == store.load(completed.path)
    assert SECRET not in repr(completed)
    assert "[redacted]" in repr(completed)
