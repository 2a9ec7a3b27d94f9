"""Jobs that a pipeline still describes and never starts: hidden, not in the list of what runs, or behind a Jenkins `when`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from pytest_saber.judge import workflows
from pytest_saber.judge.pipeline_lines import MOST, below, indent, keys, lines, opens
from pytest_saber.judge.text import listing, quote

_NO_JOBS = frozenset({"jobs", "workflows", "commands", "orbs", "executors", "parameters", "stages", "variables", "default"})
_LISTED = re.compile(r"-\s+['\"]?([\w./-]+)['\"]?\s*+(?::\s*+)?$")
_HEADER = re.compile(r"(?:stage\s*+\(\s*+['\"]?([^'\")]{0,80}+)|\b(\w++))[^{}]{0,200}+\{\s*+$")
_SHELL = re.compile(r"\b(?:sh|bat|pwsh|powershell|build|make)\b\s*(?:\(|['\"]|\w+:)")
_STAGE = "stage"
_MOST_LINES = 5_000
_MOST_LEVELS = 40


def unstarted(before: str, after: str) -> Iterator[str]:
    """Checks that nothing starts any more although their job is still there, one phrase each."""
    if not after.strip():
        return
    hidden = sorted(name for name in _jobs(before) if _is_hidden(name, before, after))
    if hidden:
        yield f"nothing runs the job {listing([quote(name, 40) for name in hidden])} any more"
    gone = sorted(_listed(before) - _listed(after))
    if gone:
        yield f"nothing runs the job {listing([quote(name, 40) for name in gone])} any more"
    old, new = _stages(before), _stages(after)
    for check, conditions in old.items():
        fresh = sorted(new.get(check, conditions) - conditions)
        if fresh:
            yield f"a check runs only under a condition ('{quote(fresh[0], 80)}')"
            break


def _jobs(text: str) -> frozenset[str]:
    """GitLab: top-level keys that are checks, by name or by what they run."""
    document = lines(text)
    found = set[str]()
    for position, match in [(place, key) for place, key in keys(document) if not key[1] and not opens(document[place])][:200]:
        name = match[2]
        if name in _NO_JOBS or name.startswith(".") or match[3]:
            continue
        if workflows.is_check(name) or any(workflows.is_check(line) for line in below(document, position, 0)):
            found.add(name)
    return frozenset(found)


def _is_hidden(name: str, before: str, after: str) -> bool:
    """`name:` is `.name:` now, and no job extends it."""
    if re.search(rf"^['\"]?\.{re.escape(name)}['\"]?\s*:", after, re.MULTILINE) is None:
        return False
    bare = re.escape(name)
    still = re.search(rf"^['\"]?{bare}['\"]?\s*:|(?:extends\s*:|^\s*-|<<\s*:)[^\n]{{0,200}}\.{bare}\b", after, re.MULTILINE)
    return still is None and re.search(rf"^['\"]?\.{bare}['\"]?\s*:", before, re.MULTILINE) is None


def _listed(text: str) -> frozenset[str]:
    """CircleCI: checks among the jobs that the workflows list."""
    document = lines(text)
    start = next((place for place, line in enumerate(document) if line.startswith("workflows:")), None)
    if start is None:
        return frozenset()
    listed = {match[1] for line in below(document, start, 0) if (match := _LISTED.match(line.strip()))}
    checks = set[str]()
    for position, match in keys(document)[: MOST * 40]:
        if match[2] in listed and position not in range(start, len(document)) and indent(document[position]) == 2:
            named = workflows.is_check(match[2])
            if named or any(workflows.is_check(line) for line in below(document, position, 2)):
                checks.add(match[2])
    return frozenset(checks & listed)


def _stages(text: str) -> Mapping[str, AbstractSet[str]]:
    """Jenkins: each check with the conditions of the stages around it, by the braces of the text."""
    if "pipeline" not in text[:20_000] and "node" not in text[:20_000]:
        return {}
    found: dict[str, set[str]] = {}
    blocks: list[tuple[str, set[str], list[str]]] = []
    for raw in text.splitlines()[:_MOST_LINES]:
        line = " ".join(raw[:500].split())
        if line.startswith(("//", "*", "/*")) or not line:
            continue
        _inner_when(blocks, line)
        if _SHELL.search(line) and workflows.is_check(line):
            for _, _, checks in blocks:
                checks.append(line)
            found.setdefault(line, set()).update(*(conditions for _, conditions, _ in blocks))
        header = _HEADER.search(line)
        for character in line:
            if character == "}" and blocks:
                _, conditions, checks = blocks.pop()
                for check in checks:
                    found[check] |= conditions
            elif character == "{" and len(blocks) < _MOST_LEVELS:
                name = (_STAGE if header[1] is not None else header[2]) if header is not None else ""
                blocks.append((name, set(), []))
    return found


def _inner_when(blocks: list[tuple[str, set[str], list[str]]], line: str) -> None:
    """A line inside `when { ... }` is a condition of the block around that."""
    one = re.search(r"\bwhen\s*+\{\s*+([^{}].{0,200}?)\s*+\}\s*+$", line)
    if one is not None and blocks:
        blocks[-1][1].add(f"when {one[1]}")
        return
    place = next((i for i in range(len(blocks) - 1, 0, -1) if blocks[i][0] == "when"), None)
    if place is not None and line.strip("{} ") and not re.match(r"(?:beforeAgent|beforeInput|changeRequest)\b", line):
        blocks[place - 1][1].add(f"when {line}")
