"""Reports of a former session where one that could not be made was to be written.

A step of CI that always uploads reports, or reads them, would take them for today's. They are replaced by inconclusive ones.
Only reports of ours are: a path that was mistyped must not cost a file.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pytest_saber import metrics
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import GateResult, RuleResult
from pytest_saber.reports import json_report, junit, markdown

Kind = Literal["json", "markdown", "junit"]

_HEAD_BYTES: Final = 64 * 1024
_OURS: Final[Mapping[Kind, tuple[str, str]]] = {
    "json": ('{\n "schema": ', '\n "session": '),
    "markdown": ("## Agent safety gate", ""),
    "junit": ("<", 'name="saber.session"'),
}
"""How each report begins, and what it has further on in its head."""


def is_one(kind: Kind, path: Path) -> bool:
    """Whether a file is a report of ours; False for what is not there or cannot be read."""
    begins, has = _OURS[kind]
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        # Nothing that anybody could take for a report.
        return False
    return head.startswith(begins) and has in head


def replace(places: Mapping[Kind, Path], reason: str) -> None:
    """Replace what former sessions left there; `reason` is why there is no report of this one. Raises OSError with the path."""
    left = {kind: path for kind, path in places.items() if is_one(kind, path)}
    if not left:
        return
    summary = metrics.summarize((), session="none", agent=AgentIdentity("none", "none"), expected=0, problems=(reason,))
    result = GateResult("inconclusive", (RuleResult("session", "inconclusive", f"Inconclusive: {reason}."),))
    for kind, path in left.items():
        if kind == "json":
            text = json_report.dumps(json_report.document(summary, result))
        elif kind == "markdown":
            text = markdown.render(summary, result)
        else:
            text = junit.render(summary, result)
        path.write_text(text, encoding="utf-8")
