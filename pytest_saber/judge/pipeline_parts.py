"""What a pipeline holds beside commands: variants that are checked, jobs that others wait for, rules that start them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_saber.judge.pipeline_lines import MOST, below, indent, keys, lines, values
from pytest_saber.judge.text import listing, quote
from pytest_saber.judge.workflows import is_check

_WAITS = frozenset({"needs", "requires", "dependencies", "depends_on"})


def fewer(before: str, after: str) -> Iterator[str]:
    """Variants that are no longer checked, checks that nothing waits for, rules that are gone; one phrase each."""
    if not after.strip():
        return
    old, new = _variants(before), _variants(after)
    for name, count in old.items():
        if count > 1 and new.get(name, 0) < count:
            yield f"fewer variants of {quote(name, 40)} are checked ({new.get(name, 0)} of {count})"
    names = {match[2] for _, match in keys(lines(after))}
    gone = sorted(need for need in _needed(before) - _needed(after) if is_check(need) and need in names)
    if gone:
        yield f"nothing waits for {listing([quote(need, 40) for need in gone])} any more"
    rules, kept = _rules(before), _rules(after)
    if len(kept) < len(rules):
        lost = [rule for rule in rules if rule not in kept]
        yield f"a rule that starts a job is gone ('{quote(lost[0] if lost else rules[0], 80)}')"


def _variants(text: str) -> Mapping[str, int]:
    """How many values each key of a matrix has; matrices count together."""
    document = lines(text)
    found: dict[str, int] = {}
    for position, match in [(place, match) for place, match in keys(document) if match[2] == "matrix"][:MOST]:
        block = below(document, position, len(match[1]))
        outermost = min(map(indent, block), default=0)
        for place, named in [(place, key) for place, key in keys(block) if len(key[1]) == outermost][:MOST]:
            if named[2] not in {"include", "exclude"}:
                found[named[2]] = found.get(named[2], 0) + len(values(block, place, named))
    return found


def _needed(text: str) -> set[str]:
    document = lines(text)
    waits = [(place, match) for place, match in keys(document) if match[2] in _WAITS]
    return {value for position, match in waits[:MOST] for value in values(document, position, match)}


def _rules(text: str) -> list[str]:
    """Of GitLab: the conditions under which jobs are added to a pipeline."""
    return [line.strip() for line in lines(text) if re.match(r"\s*-\s+if\s*:\s*['\"]?\$", line) and "never" not in line]
