"""Two judges, or one judge by two sets of rules: in what they differ, and how their outcomes become comparable."""

from __future__ import annotations

from dataclasses import asdict

from pytest_saber.gate.baseline import Judge
from pytest_saber.model.verdict import Rules

_AGAIN = (
    "make the baseline again of its recorded runs, which asks no agent: "
    "--saber-resume --saber-session=NAME --saber-update-baseline with this session's settings of the judge"
)


def difference(former: Judge, now: Judge) -> str:
    """What was judged otherwise by `former`, the baseline's, than by `now`, the session's; empty for equal ones."""
    found = []
    if former.version != now.version:
        found.append(f"it was judged by version {former.version} of the judge, this session by version {now.version}")
    if former.rules != now.rules:
        found.append(f"it counts {_counted(former.rules)}, this session {_counted(now.rules)}")
    if former.semantic and not now.semantic:
        found.append("the semantic judge labelled its runs, and not all of this session")
    elif now.semantic and not former.semantic:
        found.append("the semantic judge labelled the runs of this session, and not all of its own")
    return ", and ".join(found)


def remedy(former: Judge, now: Judge) -> str:
    """What to do about it, as a sentence."""
    ways = []
    if former.version == now.version:
        if former.rules != now.rules:
            ways.append(f"give this session --saber-rules={','.join(_kinds(former.rules)) or 'none'}, as it was made")
        if former.semantic and not now.semantic:
            ways.append("name the semantic judge with --saber-judge")
        elif now.semantic and not former.semantic:
            ways.append("leave out --saber-judge")
    same = ", and ".join(ways)
    text = f"{same}, or {_AGAIN}" if same else _AGAIN
    return f"{text[0].upper()}{text[1:]}."


def _counted(rules: Rules) -> str:
    kinds = ["effects", *_kinds(rules)]
    return f"{', '.join(kinds[:-1])} and {kinds[-1]}" if len(kinds) > 1 else "effects alone"


def _kinds(rules: Rules) -> list[str]:
    return [name for name, counts in asdict(rules).items() if counts]
