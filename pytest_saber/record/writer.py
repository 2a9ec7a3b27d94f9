"""The record of one run while it happens: the `Recorder` that the runner and the agent append to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model.events import Event, Payload
from pytest_saber.model.evidence import SCHEMA, AgentIdentity, Evidence, RunKey
from pytest_saber.model.task import Task
from pytest_saber.model.verdict import Verdict
from pytest_saber.record import codec
from pytest_saber.record.redaction import Redactor

EVENTS = "events.jsonl"
EVIDENCE = "evidence.json"
VERDICT = "verdict.json"


@dataclass(frozen=True, slots=True)
class RunHead:
    """Who ran what: the first line of `events.jsonl`. `started` is ISO 8601, UTC."""

    key: RunKey
    task: Task
    agent: AgentIdentity
    started: str


class RunWriter:
    """Appends events to `path`/events.jsonl and finishes the run. Thread-safe.

    As a context manager it closes the file; a run left without `finish` stays as a partial record.
    """

    def __init__(self, path: Path, head: RunHead, redactor: Redactor, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.started = head.started
        self._redactor = redactor
        self._clock = clock
        self._begin = clock()
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._file: int | None = os.open(
            path / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        tree = {"saber": "events", "schema": SCHEMA, "value": codec.encode(head, text=redactor.text)}
        self._append(codec.to_text(tree, "head"))

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far, as they are on disk."""
        with self._lock:
            return tuple(self._events)

    @property
    def elapsed(self) -> float:
        """Seconds since the run's start."""
        return self._clock() - self._begin

    def record(self, payload: Payload) -> Event:
        """Append an event; it is on disk when this returns, without the operator's secrets.

        Raises InfrastructureFault (harness) when the run is already over or the disk does not take it.
        """
        with self._lock:
            if self._file is None:
                raise InfrastructureFault(
                    FaultSource.HARNESS, f"{self.path.name}: the run is over, nothing can be recorded any more"
                )
            event = Event(len(self._events) + 1, round(self.elapsed, 6), payload)
            plain = codec.encode(event)
            clean = codec.encode(event, text=self._redactor.text)
            if clean != plain:
                event = codec.decode(Event, clean)
            try:
                self._append(codec.to_text(clean, "event"))
            except OSError as error:
                raise InfrastructureFault(
                    FaultSource.HARNESS, f"cannot write {self.path / EVENTS}: {error.strerror}"
                ) from error
            self._events.append(event)
            return event

    def clean(self, evidence: Evidence) -> Evidence:
        """`evidence` as `finish` writes it, without the operator's secrets, so that what is judged can be read back."""
        if not self._redactor.secrets:
            return evidence
        clean = codec.encode(evidence, text=self._redactor.text)
        return evidence if clean == codec.encode(evidence) else codec.decode(Evidence, clean)

    def finish(self, evidence: Evidence, verdict: Verdict | None) -> None:
        """Write the evidence and its verdict, and close the run. Raises OSError, EvidenceError."""
        write_atomically(self.path / EVIDENCE, codec.dumps(evidence, text=self._redactor.text))
        if verdict is not None:
            write_atomically(self.path / VERDICT, codec.dumps(verdict, text=self._redactor.text))
        self.close()

    def close(self) -> None:
        """Stop recording. Calling it again does nothing."""
        with self._lock:
            if self._file is not None:
                os.fsync(self._file)
                os.close(self._file)
                self._file = None

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _append(self, line: str) -> None:
        assert self._file is not None  # noqa: S101 - held open by every caller
        rest = memoryview(f"{line}\n".encode("ascii"))
        while rest:
            rest = rest[os.write(self._file, rest) :]


def now() -> str:
    """The moment in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def write_atomically(path: Path, text: str) -> None:
    """Put a whole file in place, or leave the old one. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(f"{text}\n")
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
