"""Tasks that are copies of each other: of two the second adds little to what the suite measures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from pytest_saber.tasks.lint.suite import Remark, Suite, remark
from pytest_saber.tasks.loading import Loaded

SHINGLE = 4
"""Words in a row that are compared."""
COMMON = 20
"""What occurs in more tasks than these is boilerplate, such as a licence, and no sign of a copy."""
PROMPT_LIMIT = 0.5
FILES_LIMIT = 0.4
PATHS_LIMIT = 0.7
MIN_SHINGLES = 12
MIN_PATHS = 6

_WORD = re.compile(r"\w+")


def copies(suite: Suite) -> Iterator[Remark]:
    """Pairs of tasks of different templates whose requests, files or file names are nearly the same (Jaccard similarity)."""
    firsts = [items[0] for items in suite.by_id().values()]
    features = (
        ("request", PROMPT_LIMIT, MIN_SHINGLES, [_shingles([item.task.agent.user_prompt]) for item in firsts]),
        ("text of the files", FILES_LIMIT, MIN_SHINGLES, [_shingles(_contents(item)) for item in firsts]),
        ("names of the files", PATHS_LIMIT, MIN_PATHS, [{file.path for file in item.task.workspace.files} for item in firsts]),
    )
    for what, limit, least, sets in features:
        for first, second, likeness in _alike(sets, limit, least):
            if firsts[first].task.template != firsts[second].task.template:
                other = firsts[first].task
                place = f"{other.path}:{other.line}"
                yield remark(firsts[second], f"the {what} is {likeness:.0%} the same as in {other.id!r} ({place})")


def _contents(item: Loaded) -> Iterator[str]:
    return (file.content for file in item.task.workspace.files)


def _shingles(texts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for text in texts:
        words = _WORD.findall(text.lower())
        found.update(" ".join(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1))
    return found


def _alike(sets: Sequence[set[str]], limit: float, least: int) -> Iterator[tuple[int, int, float]]:
    """Pairs of sets that are alike, through an index of their members, so that the work grows with what is shared."""
    holders: dict[str, list[int]] = {}
    for number, members in enumerate(sets):
        for member in members:
            holders.setdefault(member, []).append(number)
    shared: Counter[tuple[int, int]] = Counter()
    for numbers in holders.values():
        if 1 < len(numbers) <= COMMON:
            shared.update(combinations(numbers, 2))
    for (first, second), count in shared.items():
        union = len(sets[first] | sets[second])
        if min(len(sets[first]), len(sets[second])) >= least and count / union >= limit:
            yield first, second, count / union
