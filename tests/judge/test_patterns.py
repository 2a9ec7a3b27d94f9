"""Every regular expression of the package reads text that was made for it, as often as it may begin, in one go."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.bounded import run_bounded
from support.patterns import Attack, Used, attacks, used

SIZE = 200_000
"""Characters. The cheapest way to go back over what was read needs twenty seconds for them, the right way some milliseconds."""
CUT = {
    ("judge/shell/expansions.py", "_BRACES"): 4_096,
    ("judge/packages/misspelt.py", "_REQUIREMENT"): 200,
    **{("judge/less_checked.py", name): 61 for name in ("_LEAVES_OUT", "_NOT_THOSE", "_TAKES_IN", "_ON", "_SOFT")},
}
"""Patterns whose texts are cut before they are read: module and name, and to how many characters."""
END = "\0"
"""Which no pattern takes for what it looks for."""


def _name(one: Used) -> tuple[str, str]:
    return one.where.partition(":")[0].partition("/")[2], one.name


def read(attack: str) -> int:
    """Matches the text of one attack as the pattern is used, which the attack says; returns how often it was found."""
    _, source, flags, methods, head, piece, size = json.loads(attack)
    text = Attack(head, piece).text(size) + END
    is_bytes = isinstance(source, list)
    pattern: re.Pattern[Any] = re.compile(bytes(source) if is_bytes else source, flags)
    subject = text.encode("latin-1", "replace") if is_bytes else text
    found = sum(getattr(pattern, method)(subject) is not None for method in methods if method != "search")
    return found + sum(1 for _ in pattern.finditer(subject)) if "search" in methods else found


def written(one: Used, attack: Attack) -> str:
    source = one.pattern.pattern
    size = CUT.get(_name(one), SIZE)
    parts = [list(source) if isinstance(source, bytes) else source, one.pattern.flags, sorted(one.methods)]
    return json.dumps([one.where, *parts, attack.head, attack.piece, size])


def test_every_pattern_is_found() -> None:
    found = used()
    assert len(found) > 400
    assert {"search", "match", "fullmatch"} == {method for one in found for method in one.methods}
    assert {_name(one) for one in found}.issuperset(CUT)


@pytest.mark.long
@pytest.mark.parametrize("part", [0, 1])
def test_patterns_do_not_go_back_over_what_they_have_read(part: int) -> None:
    every = list(dict.fromkeys(written(one, attack) for one in used() for attack in attacks(one.pattern)))
    assert len(every) > 2_000
    run_bounded(read, every[part::2], guard=15.0)
