"""Which recorded runs count.

A session repeats a run that was cut off, that an incident ended, whose evidence is damaged, or whose task was changed, in a
folder of its own: `X.e1~2` beside `X.e1`. The session's report then has the repetition alone, and so has whoever reads the
folder later: what was repeated counts no more, and is told. What nothing repeated counts, finished or not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from pytest_saber.errors import EvidenceError, UsageError
from pytest_saber.model.evidence import AgentIdentity, RunKey
from pytest_saber.model.terms import Outcome
from pytest_saber.model.words import counted
from pytest_saber.record.store import RunStore, find_runs, is_run
from pytest_saber.record.writer import EVIDENCE

_NUMBER = re.compile(r"(.+)~([1-9][0-9]*)")
"""The name of a run's folder when there was one before it; no other name has a tilde."""
_SHOWN = 3
_Identity: TypeAlias = tuple[str, str, int, str, str, tuple[tuple[str, str], ...]]


class Why(StrEnum):
    """Why a run that was repeated does not count."""

    UNFINISHED = "unfinished run"
    DAMAGED = "damaged run"
    NO_VERDICT = "run without a verdict"
    OTHER_TASK = "run of another version of its task"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that does not count, because `repeated` does in its place."""

    run: Path
    why: Why
    repeated: Path


@dataclass(frozen=True, slots=True)
class Counting:
    """The runs that count, in the order in which they were named, and those that do not."""

    runs: tuple[Path, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What was left out and why, a line for each reason; names of folders are not escaped."""
        groups = {why: [item for item in self.left_out if item.why is why] for why in Why}
        return tuple(_line(why, items) for why, items in groups.items() if items)


@dataclass(frozen=True, slots=True)
class _Attempt:
    run: Path
    why: Why | None
    """Why it would not count; None for a run with a verdict."""
    identity: _Identity | None
    """None where the record broke off before it said whose run it is."""
    content: str = ""

    @property
    def rank(self) -> int:
        """Nothing counts instead of something better."""
        return {None: 2, Why.NO_VERDICT: 1}.get(self.why, 0)


def counting(paths: Sequence[Path]) -> Counting:
    """The runs among and below `paths` that count. A run is told from its repetitions by the folder of its session.

    Raises EvidenceError for a path without a run, UsageError where none of the runs counts.
    """
    runs: list[Path] = []
    left_out: list[LeftOut] = []
    named = {_absolute(run): run for run in find_runs(paths)}
    groups: dict[Path, dict[str, list[Path]]] = {}
    found: dict[Path, LeftOut] = {}
    for place, run in named.items():
        if place.parent not in groups:
            groups[place.parent] = _groups(place.parent)
        group = groups[place.parent].pop(_stem(place), [])
        if len(group) > 1:
            found |= {item.run: item for item in _repeated([_attempt(named.get(one) or _beside(run, one)) for one in group])}
        if run in found:
            left_out.append(found[run])
        else:
            runs.append(run)
    if not runs:
        first = left_out[0]
        raise UsageError(f"{first.run}: this {first.why} does not count, it was repeated as {first.repeated}; name that one")
    return Counting(tuple(runs), tuple(left_out))


def repetition(run: Path) -> LeftOut | None:
    """Why `run` does not count, and what counts in its place; None where it does count."""
    place = _absolute(run)
    group = _groups(place.parent).get(_stem(place), [])
    attempts = [_attempt(run if one == place else _beside(run, one)) for one in group] if len(group) > 1 else []
    return next((item for item in _repeated(attempts) if item.run == run), None)


def _absolute(run: Path) -> Path:
    # Not resolved: a link to a run stands where the link is.
    return Path(os.path.abspath(run))  # noqa: PTH100


def _beside(run: Path, place: Path) -> Path:
    """Another run of the same session, named as `run` is."""
    return run.with_name(place.name) if run.name == _absolute(run).name else place


def _groups(session: Path) -> dict[str, list[Path]]:
    """The runs of a session by their name without the number of the attempt, each group in the order of the attempts.

    Raises EvidenceError for a folder that cannot be read.
    """
    groups: dict[str, list[Path]] = {}
    try:
        for folder in session.iterdir():
            if folder.is_dir() and is_run(folder):
                groups.setdefault(_stem(folder), []).append(folder)
    except OSError as error:
        raise EvidenceError(f"{session}: cannot be read: {error.strerror}; a run is told from its repetitions there") from error
    return {stem: sorted(group, key=_number) for stem, group in groups.items()}


def _stem(run: Path) -> str:
    match = _NUMBER.fullmatch(run.name)
    return match[1] if match else run.name


def _number(run: Path) -> int:
    match = _NUMBER.fullmatch(run.name)
    return int(match[2]) if match else 1


def _attempt(run: Path) -> _Attempt:
    store = RunStore(run.parent.parent)
    identity, content = None, ""
    try:
        head = store.head(run)
        identity, content = _identity(head.key, head.agent), head.task.content_hash
    except EvidenceError:  # its evidence may say whose run it is; nothing else does
        pass
    if not (run / EVIDENCE).exists():
        return _Attempt(run, Why.UNFINISHED, identity, content)
    try:
        evidence = store.load(run)
    except EvidenceError:  # whoever reads the run says what is wrong with it
        return _Attempt(run, Why.DAMAGED, identity, content)
    identity, content = _identity(evidence.key, evidence.agent), evidence.task.content_hash
    try:
        verdict = store.load_verdict(run)
    except EvidenceError:  # as above
        verdict = None
    why = Why.NO_VERDICT if verdict is None or verdict.outcome is Outcome.ERROR else None
    return _Attempt(run, why, identity, content)


def _identity(key: RunKey, agent: AgentIdentity) -> _Identity:
    return (key.task, key.variant, key.epoch, agent.agent, agent.model, tuple(sorted(agent.details.items())))


def _repeated(attempts: Sequence[_Attempt]) -> Iterable[LeftOut]:
    """Those of one name that a later attempt of the same run replaces."""
    identities = {attempt.identity for attempt in attempts if attempt.identity is not None}
    for index, former in enumerate(attempts):
        later = [other for other in attempts[index + 1 :] if _replaces(other, former, alone=len(identities) == 1)]
        if later:
            best = max(enumerate(later), key=lambda item: (item[1].rank, item[0]))[1]
            yield LeftOut(former.run, former.why or Why.OTHER_TASK, best.run)


def _replaces(later: _Attempt, former: _Attempt, *, alone: bool) -> bool:
    same = later.identity == former.identity if former.identity is not None else alone
    if not same or later.rank < former.rank:
        return False
    # Two verdicts about one and the same thing: nobody may choose between them.
    return former.why is not None or later.content != former.content


def _line(why: Why, items: Sequence[LeftOut]) -> str:
    one = why.value
    many = {
        Why.NO_VERDICT: "runs without a verdict",
        Why.OTHER_TASK: "runs of other versions of their tasks",
    }.get(why, f"{one}s")
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    names = ", ".join(str(item.repeated) for item in items[:_SHOWN])
    return f"{counted(len(items), one, many)} left out: repeated as {names}{more}"
