"""The run store: written while the run happens, readable after a kill, free of operator secrets."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.values import identity, key, random_value, task

from pytest_saber.errors import EvidenceError, FaultSource, InfrastructureFault
from pytest_saber.model.events import Message, ToolCall, ToolResult
from pytest_saber.model.evidence import Evidence, RunKey
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Verdict
from pytest_saber.record.store import RunStore, find_runs, safe_name

SECRET = "sk-live-0123456789abcdef"


def verdict(outcome: Outcome = Outcome.SAFE_COMPLETION) -> Verdict:
    return Verdict(outcome, outcome.is_harmful, None, None)


def evidence_of(store: RunStore, run_key: RunKey, outcome: Outcome = Outcome.SAFE_COMPLETION, **changes: object) -> Path:
    """A finished run in the store."""
    with store.open(run_key, task(), identity()) as writer:
        writer.record(Message("user", "Clear the cache."))
        evidence = replace(
            random_value(Evidence, 2),
            key=run_key,
            task=task(),
            agent=identity(),
            events=writer.events,
            schema=1,
            **changes,  # type: ignore[arg-type]
        )
        writer.finish(evidence, verdict(outcome))
        return writer.path


def test_a_finished_run_reads_back_whole(tmp_path: Path) -> None:
    store = RunStore(tmp_path / ".saber/runs")
    path = evidence_of(store, key())
    assert path == tmp_path / ".saber/runs/s1/shared-cache.npm.e1"
    loaded = store.load(path)
    assert (loaded.key, loaded.task, loaded.final_response) == (key(), task(), random_value(Evidence, 2).final_response)
    assert store.load(path / "evidence.json") == loaded
    assert store.load_verdict(path) == verdict()
    assert store.recorded() == [path]
    assert store.sessions() == ["s1"]


def test_only_the_owner_can_read_it_and_git_ignores_it(tmp_path: Path) -> None:
    path = evidence_of(RunStore(tmp_path / ".saber/runs"), key())
    for folder in (path, path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}
    assert {file.name for file in path.iterdir()} == {"events.jsonl", "evidence.json", "verdict.json"}
    assert (tmp_path / ".saber/runs/.gitignore").read_text() == "*\n"


def test_events_are_numbered_timed_and_on_disk_when_record_returns(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    with store.open(key(), task(), identity()) as writer:
        first = writer.record(ToolCall("c1", "bash", {"command": "ls"}))
        second = writer.record(ToolResult("c1", "caf\udce9", 0))
        assert (first.seq, second.seq) == (1, 2)
        assert 0 <= first.at <= second.at <= writer.elapsed
        partial = store.load_partial(writer.path)
        assert partial.events == (first, second) == writer.events
        assert (partial.head.key, partial.head.task, partial.head.agent, partial.cut) == (key(), task(), identity(), False)


def test_a_killed_process_leaves_a_readable_partial_record(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
from pathlib import Path
from support.values import identity, key, task
from pytest_saber.model.events import Message
from pytest_saber.record.store import RunStore
writer = RunStore(Path({str(tmp_path)!r})).open(key(), task(), identity())
for number in range(500):
    writer.record(Message("assistant", f"step {{number}}"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    tests = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": tests}, check=False)
    assert done.returncode == -signal.SIGKILL
    store = RunStore(tmp_path)
    (run,) = store.recorded()
    assert [event.seq for event in store.load_partial(run).events] == list(range(1, 501))
    with pytest.raises(
        EvidenceError,
        match=r"e1: the run did not finish, so it has no evidence\.json; what happened until then is in events\.jsonl$",
    ):
        store.load(run)
    assert store.load_verdict(run) is None


def test_a_line_cut_in_the_middle_is_left_out_and_said(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    path = evidence_of(store, key())
    with (path / "events.jsonl").open("a") as stream:
        stream.write('{"seq":2,"at":0.1,"payl')
    partial = store.load_partial(path)
    assert (len(partial.events), partial.cut) == (1, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated JSON at line 1, column 1"),
        (b'{"saber":"evidence","schema":1,"va', "truncated JSON"),
        (b'{"saber":"evidence","schema":9,"value":{}}', "schema 9 is newer than 1"),
        (b"\xff\xfe", "corrupt: byte 0 is not ASCII"),
        (b'{"saber":"evidence","schema":1,"value":{"key":1}}', "evidence.key: expected an object, found 1"),
    ],
)
def test_damaged_evidence_names_the_file_and_the_fault(tmp_path: Path, content: bytes, message: str) -> None:
    store = RunStore(tmp_path)
    path = evidence_of(store, key()) / "evidence.json"
    path.write_bytes(content)
    with pytest.raises(EvidenceError) as caught:
        store.load(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_damaged_event_is_named_by_its_line(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    path = evidence_of(store, key())
    with (path / "events.jsonl").open("a") as stream:
        stream.write('{"seq":2,"at":0.1,"payload":{"kind":"nonsense"}}\n')
    with pytest.raises(EvidenceError, match=r'events\.jsonl:3: event\.payload\.kind: unknown kind "nonsense"'):
        store.load_partial(path)


def test_an_empty_event_stream(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").touch()
    with pytest.raises(EvidenceError, match="empty; the run was killed before it began"):
        RunStore(tmp_path).load_partial(tmp_path)


def test_operator_secrets_never_reach_the_disk(tmp_path: Path) -> None:
    store = RunStore(tmp_path, redact=[SECRET, "EMPTY", ""])
    leaked = identity(f"openai/x?key={SECRET}")
    with store.open(key(), task(prompt=f"Use {SECRET}"), leaked) as writer:
        event = writer.record(ToolCall("c1", "bash", {f"x{SECRET}": ["EMPTY", f"curl -H 'Bearer {SECRET}'"]}))
        assert event.payload == ToolCall("c1", "bash", {"x[redacted]": ["EMPTY", "curl -H 'Bearer [redacted]'"]})
        assert writer.events == (event,)
        evidence = replace(
            random_value(Evidence, 2),
            final_response=SECRET,
            events=(),
            canaries={SECRET: SECRET},
            task=task(prompt=SECRET),
            schema=1,
        )
        writer.finish(evidence, replace(verdict(), reason=f"because {SECRET}"))
    for file in writer.path.iterdir():
        assert SECRET not in file.read_text()
    assert store.load(writer.path).final_response == "[redacted]"
    assert SECRET not in repr(vars(store))


def test_hostile_names_stay_inside_the_store(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    path = evidence_of(store, RunKey("../../up", "a/../../b", "\x00 v", 1))
    assert path.parent.parent == tmp_path
    assert store.recorded("../../up") == [path]


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", ".hidden", "-rf", "x" * 500, "a\udce9"])
def test_unsafe_names_are_replaced_and_stay_distinct(name: str) -> None:
    assert safe_name(name) != name
    assert safe_name(name) != safe_name(name + "?")
    assert len(safe_name(name)) < 140
    assert "/" not in safe_name(name)


def test_a_repeated_run_keeps_the_record_before(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    first, second = evidence_of(store, key()), evidence_of(store, key())
    assert (first.name, second.name) == ("shared-cache.npm.e1", "shared-cache.npm.e1~2")
    assert store.recorded("s1") == [first, second]


def test_nothing_is_recorded_after_the_end(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    writer = store.open(key(), task(), identity())
    writer.close()
    writer.close()
    with pytest.raises(InfrastructureFault, match="the run is over") as caught:
        writer.record(Message("assistant", "too late"))
    assert caught.value.source is FaultSource.HARNESS


def test_many_threads_may_record_at_once(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    with store.open(key(), task(), identity()) as writer:
        threads = [
            threading.Thread(target=lambda: [writer.record(Message("assistant", "x" * 200)) for _ in range(50)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [event.seq for event in store.load_partial(writer.path).events] == list(range(1, 401))


def test_finished_runs_are_found_for_resuming(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    old = evidence_of(store, key(session="s1"))
    new = evidence_of(store, key(session="s2"))
    evidence_of(store, key(session="s3"), Outcome.ERROR)
    with store.open(key(epoch=2), task(), identity()) as unfinished:
        unfinished.record(Message("user", "x"))
    broken = evidence_of(store, key(epoch=3))
    (broken / "verdict.json").write_text("{")
    assert RunStore(tmp_path).finished(task(), 1, identity()) == new
    assert RunStore(tmp_path).finished(task(), 1, identity(), session="s1") == old
    assert RunStore(tmp_path).finished(task(), 2, identity()) is None
    assert RunStore(tmp_path).finished(task(), 3, identity()) is None
    assert RunStore(tmp_path).finished(task(), 1, identity("reference/harmful")) is None
    assert RunStore(tmp_path).finished(replace(task(), content_hash="changed"), 1, identity()) is None


def test_runs_are_found_among_paths(tmp_path: Path) -> None:
    store = RunStore(tmp_path / ".saber/runs")
    one, two = evidence_of(store, key()), evidence_of(store, key(session="s2"))
    assert find_runs([tmp_path / ".saber"]) == [one, two]
    assert find_runs([two / "evidence.json", one, tmp_path]) == [two, one]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(EvidenceError, match="empty: no recorded run here"):
        find_runs([empty])


def test_a_verdict_can_be_replaced(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    path = evidence_of(store, key())
    store.save_verdict(path, verdict(Outcome.HARMFUL_COMPLETION))
    assert store.load_verdict(path) == verdict(Outcome.HARMFUL_COMPLETION)
    evidence = replace(store.load(path), final_response="other")
    store.save_evidence(path, evidence)
    assert store.load(path) == evidence
