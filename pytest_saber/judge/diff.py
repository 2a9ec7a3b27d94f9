"""Differences between the baseline and the final state, with renames found by content and noise left out."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pytest_saber.judge import noise
from pytest_saber.model.state import FileEntry, FileType, State

_SIMILAR = 0.5
_COMPARED_PAIRS = 2_000
JSON = (".json", ".jsonc", ".ipynb", ".geojson", ".webmanifest")


class Change(StrEnum):
    """How a path differs between the two states."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class FileDelta:
    """What happened to one path. `moved_to` of a deleted path: where its content is now; `moved_from` the reverse."""

    path: str
    change: Change
    before: FileEntry | None
    after: FileEntry | None
    moved_to: str | None = None
    moved_from: str | None = None

    @property
    def is_content(self) -> bool:
        """A regular file or a link, not a directory or special file."""
        entry = self.before or self.after
        return entry is not None and entry.type in {FileType.FILE, FileType.SYMLINK}


def same_content(before: FileEntry, after: FileEntry) -> bool:
    """Type, content and link target are equal; a file too large to hash compares by size."""
    if before.type is not after.type:
        return False
    if before.type is FileType.FILE:
        return before.size == after.size and before.sha256 == after.sha256
    return before.target == after.target


def same_metadata(before: FileEntry, after: FileEntry) -> bool:
    """Whether mode, owner, group and extended attributes agree."""
    return (before.mode, before.uid, before.gid, before.xattrs) == (after.mode, after.uid, after.gid, after.xattrs)


def file_deltas(baseline: State, final: State) -> tuple[FileDelta, ...]:
    """Every path outside git directories that differs, sorted by path; noise is left out."""
    git_directories = {*baseline.git, *final.git}
    raw: list[FileDelta] = []
    for path in sorted({*baseline.files, *final.files}):
        before, after = baseline.files.get(path), final.files.get(path)
        if before is after or noise.is_noise(path) or _inside(path, git_directories):
            continue
        if before is None:
            raw.append(FileDelta(path, Change.CREATED, before, after))
        elif after is None:
            raw.append(FileDelta(path, Change.DELETED, before, after))
        elif not same_content(before, after):
            raw.append(FileDelta(path, Change.MODIFIED, before, after))
        elif not same_metadata(before, after):
            raw.append(FileDelta(path, Change.METADATA, before, after))
    return tuple(_with_moves(raw))


def _inside(path: str, directories: set[str]) -> bool:
    if path in directories:
        return True
    while (parent := posixpath.dirname(path)) != path:
        if parent in directories:
            return True
        path = parent
    return False


def _with_moves(deltas: list[FileDelta]) -> Iterator[FileDelta]:
    """Pair deleted with created files of the same content, then deleted with similar created text files."""
    created: dict[str, list[FileDelta]] = {}
    for delta in deltas:
        if delta.change is Change.CREATED and delta.after and delta.after.sha256 and delta.after.size:
            created.setdefault(delta.after.sha256, []).append(delta)
    to: dict[str, str] = {}
    source: dict[str, str] = {}
    for delta in deltas:
        if delta.change is not Change.DELETED or delta.before is None or not delta.before.sha256:
            continue
        options = created.get(delta.before.sha256, [])
        chosen = min(
            options,
            key=lambda option: (posixpath.basename(option.path) != posixpath.basename(delta.path), option.path),
            default=None,
        )
        if chosen is not None:
            to[delta.path], source[chosen.path] = chosen.path, delta.path
    _pair_similar(deltas, to, source)
    for delta in deltas:
        yield FileDelta(delta.path, delta.change, delta.before, delta.after, to.get(delta.path), source.get(delta.path))


def _pair_similar(deltas: list[FileDelta], to: dict[str, str], source: dict[str, str]) -> None:
    lost = [d for d in deltas if d.change is Change.DELETED and d.path not in to and d.before and d.before.text]
    new = [d for d in deltas if d.change is Change.CREATED and d.path not in source and d.after and d.after.text]
    if len(lost) * len(new) > _COMPARED_PAIRS:
        return
    lines = {d.path: line_counts((d.before or d.after).text or "") for d in (*lost, *new) if d.before or d.after}  # type: ignore[union-attr]
    for gone in lost:
        scored = [
            (similarity(lines[gone.path], lines[option.path]), option.path) for option in new if option.path not in source
        ]
        best = max(scored, default=(0.0, ""))
        if best[0] > _SIMILAR:
            to[gone.path], source[best[1]] = best[1], gone.path


def line_counts(text: str) -> Counter[str]:
    """The lines of `text` that say something, each with how often it occurs."""
    return Counter(line.strip() for line in text.splitlines() if line.strip())


def similarity(before: Counter[str], after: Counter[str]) -> float:
    """The share of the lines of the longer text that both have, 0 to 1."""
    longer = max(before.total(), after.total())
    return (before & after).total() / longer if longer else 0.0


def lost_lines(before: str, after: str) -> list[str]:
    """Lines of `before` that `after` has no more (or fewer times), in order of appearance."""
    return list((line_counts(before) - line_counts(after)).elements())


def lost_content(path: str, before: str, after: str) -> tuple[list[str], int]:
    """What `before` says and `after` no more, and how much it said: values of a JSON document in any layout, else lines."""
    if path.endswith(JSON):
        old, new = _leaves(before), _leaves(after)
        if old is not None and new is not None:
            return list((old - new).elements()), old.total()
    return lost_lines(before, after), line_counts(before).total()


def _leaves(text: str) -> Counter[str] | None:
    """`key.key = value` for each value of a JSON document; None where the text is none. An item of a list has no number."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found: Counter[str] = Counter()
    pending: list[tuple[str, object]] = [("", document)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict) and value:
            pending += [(f"{place}.{key}" if place else str(key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list) and value:
            pending += [(f"{place}[]", inner) for inner in reversed(value)]
        else:
            found[f"{place} = {json.dumps(value)}"] += 1
    return found


def added_lines(before: str, after: str) -> list[str]:
    """Lines that `after` holds more often than `before`, as often as that."""
    return list((line_counts(after) - line_counts(before)).elements())


def mapping_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str | None, str | None]]:
    """`(key, old, new)` of every key whose value differs, sorted."""
    keys = sorted({*before, *after})
    return [(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]
