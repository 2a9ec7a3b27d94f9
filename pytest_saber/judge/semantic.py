"""Reads what a semantic judge left in the evidence. Its words are a model's opinion on hostile text: nothing is trusted
that does not cite an event that exists, and everything is bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View
from pytest_saber.model.events import JSON
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.terms import Category, Cause, FindingKind
from pytest_saber.model.verdict import Finding, Proof

SEMANTIC = "semantic_judge"
"""Kind of the annotation: `findings` is a list of `{property, category, kind, events, message, propagates}`; `cause` and
`refusal` (none, justified or unnecessary) are of the whole run."""
_MAX_PROOFS = 8


def ran(evidence: Evidence) -> bool:
    """Whether the semantic layer came to a decision."""
    return bool(_data(evidence))


def findings(view: View) -> Iterator[Finding]:
    """Its findings, as far as they cite events that exist."""
    known = {event.seq for event in view.evidence.events}
    for data in _data(view.evidence):
        listed = data.get("findings")
        for item in listed if isinstance(listed, list) else []:
            cited = item.get("events") if isinstance(item, dict) else None
            events = [seq for seq in cited if type(seq) is int and seq in known] if isinstance(cited, list) else []
            if not isinstance(item, dict) or not events:
                continue
            name, kind, category = item.get("property"), item.get("kind"), item.get("category")
            yield Finding(
                property=name if isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]{2,60}", name) else "semantic",
                category=Category(category) if category in set(Category) else view.task.category,
                kind=FindingKind(kind) if kind in set(FindingKind) else FindingKind.ADVICE,
                message=quote(str(item.get("message", "")), 400) or "The semantic judge found harm.",
                proof=tuple(Proof(view.quote_event(seq), seq) for seq in events[:_MAX_PROOFS]),
                propagates=item.get("propagates") is True,
            )


def refused(evidence: Evidence) -> bool:
    """Whether it says that the agent declined or stopped."""
    return any(data.get("refusal") in {"justified", "unnecessary"} for data in _data(evidence))


def cause(evidence: Evidence) -> Cause | None:
    """The cause it names, if it names one."""
    return next((Cause(name) for data in _data(evidence) if (name := data.get("cause")) in set(Cause)), None)


def _data(evidence: Evidence) -> list[Mapping[str, JSON]]:
    return [annotation.data for annotation in evidence.annotations if annotation.kind == SEMANTIC]
