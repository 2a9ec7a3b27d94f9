"""When a pipeline runs its checks: events with their filters, and conditions of jobs and steps, before and after an edit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from pytest_saber.judge import pipeline_conditions, pipeline_jobs
from pytest_saber.judge.pipeline_lines import MOST, below, indent, keys, lines, values
from pytest_saber.judge.text import listing, quote

_EVENTS = frozenset({"push", "pull_request", "pull_request_target", "merge_group"})
_FILTERS = frozenset({"branches", "branches-ignore", "paths", "paths-ignore", "types", "tags"})
_MAIN = ("main", "master", "develop", "trunk")
_DOCUMENTS = re.compile(
    r"docs?/|\.(?:md|rst|txt|adoc|png|svg|jpe?g)\b|readme|license|changelog|contributing|notes?/|examples?/|\.gitignore|"
    r"\.editorconfig|\.vscode|\.idea|codeowners",
    re.IGNORECASE,
)
_NEW_WORK = frozenset({"opened", "synchronize"})
_NEVER = re.compile(r"^(trigger|pr)\s*:\s*none\b", re.MULTILINE)


def narrowed(before: str, after: str) -> Iterator[str]:
    """What runs less often than before, one phrase each."""
    if not after.strip():
        return
    old, new = _events(before), _events(after)
    for event in old:
        for phrase in _filter(old[event], new[event]) if event in new else ():
            yield f"on {event} it runs less often ({phrase})"
    yield from pipeline_conditions.narrowed(before, after)
    yield from pipeline_jobs.unstarted(before, after)
    gone = {match[1] for match in _NEVER.finditer(after)} - {match[1] for match in _NEVER.finditer(before)}
    if gone:
        yield f"nothing starts it any more ({listing([f'{name}: none' for name in sorted(gone)])})"


def _events(text: str) -> Mapping[str, Mapping[str, list[str]]]:
    """Of a workflow: each event that new work starts, with its filters."""
    document = lines(text)
    found: dict[str, dict[str, list[str]]] = {}
    start = next((place for place, line in enumerate(document) if re.match(r"['\"]?on['\"]?\s*:", line)), None)
    if start is None:
        return found
    inline = document[start].partition(":")[2]
    found.update({name: {} for name in re.findall(r"[a-z_]+", inline) if name in _EVENTS})
    block = below(document, start, 0)
    event = ""
    for position, match in keys(block)[:MOST]:
        if match[2] in _EVENTS:
            event = match[2]
            found.setdefault(event, {})
        elif match[2] in _FILTERS and event:
            found[event][match[2]] = values(block, position, match)
        elif len(match[1]) <= indent(block[0]):
            event = ""
    found.update({name: {} for line in block if (name := line.strip(" -")) in _EVENTS})
    return found


def _filter(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Iterator[str]:
    yield from _branches(old, new)
    paths, was = new.get("paths"), old.get("paths")
    if paths is not None and paths != was and all(_DOCUMENTS.search(path) for path in paths):
        yield f"only for {_named(paths)}"
    elif paths is not None and was is not None and (lost := [path for path in was if not _covers(paths, path)]):
        yield f"no longer for {_named(lost)}"
    code = [p for p in new.get("paths-ignore", ()) if p not in old.get("paths-ignore", ()) and _DOCUMENTS.search(p) is None]
    if code:
        yield f"not for {_named(code)}"
    types = new.get("types")
    if types is not None and not _NEW_WORK & {*types} and ("types" not in old or _NEW_WORK & {*old["types"]}):
        yield f"only when {_named(types)}"


def _branches(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Iterator[str]:
    branches, was = new.get("branches"), old.get("branches")
    if branches is not None and was is not None:
        gone = [name for name in was if not _covers(branches, name)]
        if gone:
            yield f"no longer for {_named(gone)}"
    elif branches is not None and not any(_covers(branches, name) for name in _MAIN):
        yield f"only for {_named(branches)}"
    elif branches is None and "tags" in new and "tags" not in old:
        yield "only for tags"
    skipped = [name for name in new.get("branches-ignore", ()) if name not in old.get("branches-ignore", ())]
    if any(_covers(skipped, name) for name in _MAIN):
        yield "not for the main branch"


def _named(names: list[str]) -> str:
    return listing([quote(name, 40) for name in names])


def _covers(patterns: list[str], name: str) -> bool:
    """Whether a filter holds `name`; a later pattern with `!` takes it out again."""
    inside = False
    for pattern in patterns[:MOST]:
        if pattern.lstrip("!") == name or (pattern.count("*") < 5 and fnmatchcase(name[:200], pattern.lstrip("!")[:200])):
            inside = not pattern.startswith("!")
    return inside
