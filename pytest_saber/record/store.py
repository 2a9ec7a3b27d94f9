"""The run store: one folder a run, written while the run happens.

`<root>/<session>/<run>/` holds `events.jsonl` (a head line that says whose run it is, then one event a line, each on
disk before `record` returns, so that a kill leaves a readable partial record), and once the run is over
`evidence.json` and `verdict.json`, each put in place in one step.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_saber.errors import EvidenceError
from pytest_saber.model.events import Event
from pytest_saber.model.evidence import AgentIdentity, Evidence, RunKey
from pytest_saber.model.task import Task
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Verdict
from pytest_saber.record import codec
from pytest_saber.record.redaction import Redactor
from pytest_saber.record.writer import EVENTS, EVIDENCE, VERDICT, RunHead, RunWriter, now, write_atomically

T = TypeVar("T")
_Identity: TypeAlias = tuple[str, int, str, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class PartialRun:
    """What a run that did not finish left behind. `cut` says that the last line was incomplete and left out."""

    head: RunHead
    events: tuple[Event, ...]
    cut: bool = False


class RunStore:
    """The runs under `root` (`.saber/runs`), one folder a session. Thread-safe.

    `redact` lists operator secrets (see `providers.secrets`), which never reach the disk.
    """

    def __init__(self, root: Path, *, redact: Sequence[str] = ()) -> None:
        self.root = root
        self._redactor = Redactor(redact)
        self._lock = threading.Lock()
        self._finished: Mapping[_Identity, Path] | None = None

    def open(self, key: RunKey, task: Task, agent: AgentIdentity) -> RunWriter:
        """Begin the record of a run, in a folder of its own: a repeated run never overwrites the one before.

        Raises OSError when the store cannot be written.
        """
        session = self.root / safe_name(key.session)
        for folder in (self.root, session):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = self.root / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
        folder = _new_folder(session, safe_name(key.name))
        return RunWriter(folder, RunHead(key, task, agent, now()), self._redactor)

    def load(self, run: Path) -> Evidence:
        """The evidence of a finished run, by its folder or its `evidence.json`.

        Raises EvidenceError for what is missing, corrupt, truncated or of a newer schema.
        """
        folder = run.parent if run.name == EVIDENCE else run
        path = folder / EVIDENCE
        if not path.exists() and (folder / EVENTS).exists():
            raise EvidenceError(
                f"{folder}: the run did not finish, so it has no {EVIDENCE}; what happened until then is in {EVENTS}"
            )
        evidence = _load(Evidence, path)
        codec.check_schema(evidence.schema, f"{path}: evidence.")
        return evidence

    def load_verdict(self, run: Path) -> Verdict | None:
        """The verdict given when the run finished; None where there is none. Raises EvidenceError."""
        path = run / VERDICT
        try:
            return _load(Verdict, path) if path.exists() else None
        except EvidenceError as error:
            if not str(error).endswith(codec.REPEAT):
                raise
            fix = "; remove the file, and `pytest-saber judge --update` writes it anew from the evidence"
            raise EvidenceError(str(error).removesuffix(codec.REPEAT) + fix) from error

    def load_partial(self, run: Path) -> PartialRun:
        """Whatever events a run recorded, finished or not. Raises EvidenceError when not even its head is readable."""
        path = run / EVENTS
        lines = _read(path).split("\n")
        head = _head(path, lines[0])
        cut = lines[-1] != ""
        events = []
        for number, line in enumerate(lines[1:-1], start=2):
            origin = f"{path}:{number}"
            events.append(codec.decode(Event, codec.parse(line, f"{origin}: "), origin=origin))
        return PartialRun(head, tuple(events), cut)

    def save_verdict(self, run: Path, verdict: Verdict) -> None:
        """Replace the verdict of a run, after judging it anew. Raises OSError."""
        write_atomically(run / VERDICT, codec.dumps(verdict, text=self._redactor.text))

    def save_evidence(self, run: Path, evidence: Evidence) -> None:
        """Replace the evidence of a run, after an annotation was added. Raises OSError, EvidenceError."""
        write_atomically(run / EVIDENCE, codec.dumps(evidence, text=self._redactor.text))

    def sessions(self) -> list[str]:
        """Names of the recorded sessions, in the order of their names."""
        return sorted(folder.name for folder in _folders(self.root))

    def newest_session(self) -> str | None:
        """The session whose latest run began last, whatever the sessions' names; None where no run can be read."""
        begun = {name: self._last_begun(name) for name in self.sessions()}
        return max((name for name in begun if begun[name]), key=lambda name: (begun[name], name), default=None)

    def _last_begun(self, session: str) -> str:
        """When the latest run began, by the clock of the machine that ran it; empty where no run can be read."""
        # A file's time only says which run to look at: it does not survive a copy to another machine.
        runs = sorted(
            self.recorded(session), key=lambda run: (run / EVENTS).stat().st_mtime_ns if (run / EVENTS).exists() else 0
        )
        for run in reversed(runs):
            try:
                return self.head(run).started
            except EvidenceError:  # cut off before its head was written
                continue
        return ""

    def recorded(self, session: str | None = None) -> list[Path]:
        """The folders of all recorded runs, or of one session's, finished or not."""
        folders = _folders(self.root) if session is None else [self.root / safe_name(session)]
        return [run for folder in sorted(folders) for run in sorted(_folders(folder)) if is_run(run)]

    def finished(self, task: Task, epoch: int, agent: AgentIdentity, *, session: str | None = None) -> Path | None:
        """The newest run of this very task content, epoch and agent that has a verdict other than error.

        Looks at the runs present when it is first called, in `session` alone if given.
        """
        with self._lock:
            if self._finished is None:
                self._finished = self._index(session)
        return self._finished.get(_identity(task.content_hash, epoch, agent))

    def _index(self, session: str | None) -> Mapping[_Identity, Path]:
        found: dict[_Identity, tuple[str, Path]] = {}
        for run in self.recorded(session):
            if not ((run / EVIDENCE).exists() and (run / VERDICT).exists()):
                continue
            try:
                head = self.head(run)
                verdict = self.load_verdict(run)
            except EvidenceError:  # an unreadable run is not finished: resuming repeats it
                continue
            if verdict is None or verdict.outcome is Outcome.ERROR:
                continue
            identity = _identity(head.task.content_hash, head.key.epoch, head.agent)
            if identity not in found or found[identity][0] <= head.started:
                found[identity] = (head.started, run)
        return {identity: run for identity, (_, run) in found.items()}

    def head(self, run: Path) -> RunHead:
        """Whose run a folder holds, without reading the rest of it. Raises EvidenceError."""
        path = run / EVENTS
        try:
            if not path.is_file():
                raise EvidenceError(f"{path}: there is no such record, or it is not a regular file")
            with path.open(encoding="ascii") as stream:
                line = stream.readline(codec.MAX_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            raise EvidenceError(f"{path}: cannot be read: {error}") from error
        return _head(path, line)


def is_run(folder: Path) -> bool:
    """Whether a folder holds a recorded run."""
    return (folder / EVENTS).is_file() or (folder / EVIDENCE).is_file()


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """The run folders among and below `paths` (a run, its evidence file, a session, a store).

    Raises EvidenceError for a path that does not exist or holds none.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise EvidenceError(f"{path}: there is no such file or folder; runs are recorded in .saber/runs/SESSION/RUN")
        runs = [path.parent] if path.name == EVIDENCE and path.is_file() else list(_walk(path))
        if not runs:
            raise EvidenceError(f"{path}: no recorded run here (looked for {EVIDENCE} and {EVENTS} in it and below)")
        found.update(dict.fromkeys(runs))
    return list(found)


def safe_name(name: str) -> str:
    """A file name for any text: harmless names stay as they are, others are replaced and told apart by a hash."""
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:120].lstrip(".-")
    if cleaned and cleaned == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{cleaned or 'run'}-{digest}"


def _walk(path: Path) -> Iterator[Path]:
    for folder, names, _ in os.walk(path):
        names.sort()
        if is_run(Path(folder)):
            names.clear()
            yield Path(folder)


def _folders(folder: Path) -> list[Path]:
    """Sessions or runs; hidden folders hold other things, such as the semantic judge's cache."""
    return [entry for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != "."] if folder.is_dir() else []


def _new_folder(parent: Path, name: str) -> Path:
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}~{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


def _identity(content_hash: str, epoch: int, agent: AgentIdentity) -> _Identity:
    return (content_hash, epoch, agent.agent, agent.model, tuple(sorted(agent.details.items())))


def _head(path: Path, line: str) -> RunHead:
    if not line.strip():
        raise EvidenceError(f"{path}: empty; the run was killed before it began")
    tree = codec.parse(line, f"{path}:1: ")
    if not isinstance(tree, dict) or tree.get("saber") != "events":
        raise EvidenceError(f"{path}:1: not the head of a saber event stream")
    codec.check_schema(tree.get("schema"), f"{path}:1: ")
    return codec.decode(RunHead, tree.get("value"), origin=f"{path}:1")


def _load(cls: type[T], path: Path) -> T:
    return codec.loads(cls, _read(path), origin=str(path))


def _read(path: Path) -> str:
    try:
        status = path.stat()
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            raise EvidenceError(f"{path}: not a regular file")
        if size > codec.MAX_BYTES:
            raise EvidenceError(f"{path}: {size} bytes are more than the {codec.MAX_BYTES} a record may have")
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise EvidenceError(f"{path}: there is no such record") from None
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise EvidenceError(f"{path}: corrupt: byte {error.start} is not ASCII, which every record is") from error
