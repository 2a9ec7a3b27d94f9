"""The table of a session of several models, for the terminal, for Markdown and for the JSON report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pytest_saber.model.summary import ModelComparison, ModelRow, Rate
from pytest_saber.reports.columns import blocks
from pytest_saber.reports.escape import cells, fit, line, wrap
from pytest_saber.reports.escape import markdown as plain

_NARROWEST = 24
"""Columns that the name of a model has before figures make room for it."""

_COLUMNS: Sequence[tuple[str, Callable[[ModelRow], str]]] = (
    ("HSR", lambda row: "-" if row.hsr.value is None else f"{row.hsr.value:.3f}"),
    ("95 %", lambda row: "-" if row.hsr.low is None or row.hsr.high is None else f"{row.hsr.low:.2f}-{row.hsr.high:.2f}"),
    ("change", lambda row: "" if row.change is None else f"{100 * row.change:+.1f}"),
    ("95 %", lambda row: "" if row.low is None or row.high is None else f"{100 * row.low:+.0f} to {100 * row.high:+.0f}"),
    ("p", lambda row: "" if row.adjusted is None else _p(row.adjusted)),
    ("tasks", lambda row: "" if row.change is None else str(row.tasks)),
    ("runs", lambda row: "" if row.change is None else f"{row.runs}:{row.reference_runs}"),
    ("alone", lambda row: "" if row.change is None else f"{row.unmatched_runs}:{row.unmatched_reference_runs}"),
)
_CHANGE = 2
_IMPORTANCE = (0, _CHANGE, 4, 3, 1, 5, 6, 7)
"""Columns by number, those first that a narrow terminal keeps."""


def terminal(comparison: ModelComparison, width: int) -> list[str]:
    """The lines of the table; columns that `width` has no room for follow below it."""
    names = [f"  {row.slice}" if row.slice else line(row.model, 60) for row in comparison.rows]
    texts = [[show(row) for _, show in _COLUMNS] for row in comparison.rows]
    # The first row is the reference's own.
    texts[0][_CHANGE] = "ref."
    sizes = [max(len(head), *(len(row[i]) for row in texts)) for i, (head, _) in enumerate(_COLUMNS)]
    label = min(max(map(cells, names)), max(width - sum(sizes) - 2 * len(sizes), _NARROWEST))
    label = min(label, width)
    lines = [*wrap(f"models compared: {_explained(comparison)}", width, "", "  ")]
    for number, shown in enumerate(blocks(sizes, width - label, _IMPORTANCE)):
        lines += [""] if number else []
        lines.append((" " * label + "".join(f"  {_COLUMNS[i][0]:>{sizes[i]}}" for i in shown)).rstrip())
        for name, text in zip(names, texts, strict=True):
            if number and not any(text[i] for i in shown):
                # The reference, which is compared with nothing.
                continue
            name = fit(name, label)
            lines.append((name + " " * (label - cells(name)) + "".join(f"  {text[i]:>{sizes[i]}}" for i in shown)).rstrip())
    for row in comparison.rows:
        if row.note:
            lines += wrap(f"{line(row.model, 60)} is not compared: {line(row.note)}", width, "  ", "    ")
    return lines


def markdown(comparison: ModelComparison) -> str:
    """A section of the report."""
    rows = []
    for row in comparison.rows:
        name = plain(row.model) if not row.slice else f"&emsp;{plain(row.slice)}"
        if row.model == comparison.reference and not row.slice:
            name = f"{name} (reference)"
        interval = "-" if row.low is None or row.high is None else f"{100 * row.low:+.0f} to {100 * row.high:+.0f}"
        rows.append(
            (
                name,
                _percent(row.hsr),
                "" if row.change is None else f"**{100 * row.change:+.1f}**",
                "" if row.change is None else interval,
                "" if row.adjusted is None else _p(row.adjusted),
                plain(row.note) if row.change is None else str(row.tasks),
                "" if row.change is None else f"{row.runs} : {row.reference_runs}",
                "" if row.change is None else f"{row.unmatched_runs} : {row.unmatched_reference_runs}",
            )
        )
    heads = ("", "HSR (95 %)", "change, points", "95 %", "p", "tasks", "runs", "runs of one alone")
    table = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    explained = _explained(comparison)
    return "### Models compared\n\n" + "\n".join(table) + f"\n\n{plain(explained[0].upper() + explained[1:], 1000)}"


def document(comparison: ModelComparison | None) -> dict[str, object] | None:
    """As a value of JSON: the fields of `ModelRow`, rates from 0 to 1 and changes from -1 to 1."""
    if comparison is None:
        return None
    return {
        "reference": comparison.reference,
        "correction": "holm",
        "rows": [asdict(row) for row in comparison.rows],
    }


def read(value: object) -> ModelComparison | None:
    """What `document` gave.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    if value is None:
        return None
    rows = [_object(row) for row in _object(value)["rows"]]
    if not rows:
        raise ValueError("comparison has no rows")
    return ModelComparison(
        _text(_object(value)["reference"]),
        tuple(ModelRow(**{name: read(row[name]) for name, read in _FIELDS.items()}) for row in rows),
    )


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a part of comparison is {value!r:.100}, not an object")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a part of comparison is {value!r:.100}, not a text")
    return value


def _count(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"a part of comparison is {value!r:.100}, not a whole number")
    return value


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _rate(value: Any) -> Rate:
    rate = _object(value)
    return Rate(*(_count(rate[name]) for name in ("count", "n")), *(_number(rate[name]) for name in ("value", "low", "high")))


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("model", "slice", "note"), _text),
    **dict.fromkeys(("tasks", "templates", "runs", "reference_runs", "unmatched_runs", "unmatched_reference_runs"), _count),
    **dict.fromkeys(("change", "low", "high", "p", "adjusted"), _number),
    "hsr": _rate,
}
"""How each field of a `ModelRow` is read; a later version may add others."""


def _explained(comparison: ModelComparison) -> str:
    models = len({row.model for row in comparison.rows}) - 1
    text = (
        f"change of HSR in points from {line(comparison.reference, 60)}, over the tasks on which both had an effective run; "
        "paired by task, clustered by template"
    )
    if models > 1 or any(row.slice for row in comparison.rows):
        over = f" over {models} models" if models > 1 else " over the scenarios"
        if models > 1 and any(row.slice for row in comparison.rows):
            over += ", and over their scenarios"
        text += f"; p is two-sided and corrected by Holm's method{over}, each interval holds by itself"
    else:
        text += "; p is two-sided"
    return text + "; runs and alone: the model's : the reference's, alone those on tasks without an effective run of the other"


def _p(value: float) -> str:
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def _percent(rate: Rate) -> str:
    if rate.value is None:
        return "-"
    interval = "" if rate.low is None or rate.high is None else f" ({100 * rate.low:.0f} to {100 * rate.high:.0f})"
    return f"{100 * rate.value:.1f} %{interval}"
