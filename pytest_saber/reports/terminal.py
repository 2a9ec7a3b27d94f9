"""The summary in the terminal: one table, the worst findings with their proof, incidents, and the gate's rules."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from pytest_saber.metrics import reliability, run_name
from pytest_saber.model.summary import GateResult, Metrics, Rate, RunRecord, Summary
from pytest_saber.model.terms import Outcome
from pytest_saber.model.words import counted, part
from pytest_saber.reports import comparison
from pytest_saber.reports.columns import blocks
from pytest_saber.reports.escape import cells, fit, line, wrap
from pytest_saber.reports.failure import finding_text, proof_text

_WORST = 5
_INCIDENTS = 10
_CODES = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}
_IMPORTANCE = (0, 1, 2, 4, 3, 6, 5, 7, 8, 9, 10, 11)
"""Columns of the table by number: the first are the most important, but the interval gives way before SCR does."""
_STATUS_COLOR = {"passed": "green", "failed": "red", "inconclusive": "yellow", "off": "bold"}

Cell = Callable[[Metrics], str]


def render(
    summary: Summary,
    gate: GateResult,
    width: int,
    color: bool = False,
    known: Callable[[RunRecord], bool] | None = None,
) -> list[str]:
    """The lines of the summary, none wider than `width` (40 at least is sensible).

    `known` tells harm that the baseline has too from new harm; without it no run is marked.
    """
    paint = _painter(color)
    lines = [*_title(summary, width), ""]
    lines += _table(summary, width, paint)
    if gate.comparison is not None:
        lines += ["", *comparison.terminal(gate.comparison, width)]
    lines += _reliability(summary, width)
    lines += _findings(summary, width, paint, known)
    lines += _incidents(summary, width, paint)
    where = _evidence(summary)
    if where:
        lines += ["", fit(f"evidence: {where}", width)]
    lines += _gate(gate, width, paint)
    return lines


def _title(summary: Summary, width: int) -> list[str]:
    models = ", ".join(summary.model) or summary.agent.model
    # An agent without a run is not known to be the one that was asked for.
    who = f"{line(models)} ({line(summary.agent.agent)}), " if summary.runs else ""
    text = f"{who}session {line(summary.session)}: "
    text += f"{part(len(summary.runs), summary.expected, 'run')}"
    if summary.skipped:
        text += f", {len(summary.skipped)} not started: decided early"
    return wrap(text, width)


def _table(summary: Summary, width: int, paint: Callable[[str, str], str]) -> list[str]:
    columns: list[tuple[str, Cell]] = [
        ("runs", lambda m: str(m.runs)),
        ("eff", lambda m: str(m.effective)),
        ("harm", lambda m: str(m.harmful)),
        ("err", lambda m: str(m.errors)),
        ("HSR", lambda m: _value(m.hsr)),
        ("95 %", lambda m: _interval(m.hsr)),
        ("SCR", lambda m: _value(m.scr)),
        ("SRR", lambda m: _value(m.srr)),
        ("IR", lambda m: _value(m.ir)),
        ("LRR", lambda m: _value(m.lrr)),
        ("PHR", lambda m: _value(m.phr)),
        ("CPR", lambda m: _value(m.cpr)),
    ]
    cell_rows: dict[str, Metrics] = {}
    rows: list[tuple[str, Metrics]] = []
    for scenario, metrics in summary.scenario.items():
        parts = {name: part for name, part in summary.cell.items() if name.partition("/")[0] == scenario}
        cell_rows |= parts
        rows += [*parts.items(), (f"{scenario} all", metrics)]
    if len(summary.model) > 1:
        rows += [(line(name, 60), part) for name, part in summary.model.items()]
    total = "all models" if len(summary.model) > 1 else "all"
    rows.append((total, summary.overall))
    label = min(max(cells(name) for name, _ in rows), max(width - 40, 12))
    texts = [[cell(metrics) for _, cell in columns] for _, metrics in rows]
    sizes = [max(len(head), *(len(row[i]) for row in texts)) for i, (head, _) in enumerate(columns)]
    lines: list[str] = []
    for number, shown in enumerate(blocks(sizes, width - label, _IMPORTANCE)):
        lines += [""] if number else []
        lines.append(" " * label + "".join(f"  {columns[i][0]:>{sizes[i]}}" for i in shown))
        for (name, metrics), row in zip(rows, texts, strict=True):
            if number and name in cell_rows:
                # What a narrow terminal has no room for is shown of the totals.
                continue
            name = fit(name, label)
            text = name + " " * (label - cells(name)) + "".join(f"  {row[i]:>{sizes[i]}}" for i in shown)
            if name == total or name.endswith(" all"):
                text = paint(text, "bold")
            elif metrics.harmful:
                text = paint(text, "red")
            lines.append(text)
    return lines


def _reliability(summary: Summary, width: int) -> list[str]:
    lines: list[str] = []
    for model in summary.model:
        found = reliability(run for run in summary.runs if run.agent.model == model)
        if found is None:
            continue
        chances = ", ".join(f"{counted(k, 'run')} {value:.3f}" for k, value in enumerate(found.safe, 1))
        of = f" of {line(model)}" if len(summary.model) > 1 else ""
        text = f"reliability{of}: no harm in {chances}; flip rate {found.flip_rate:.3f} over {counted(found.tasks, 'task')}"
        lines += ["", *wrap(text, width, "", "  ")]
        shown = ", ".join(f"{line(name)} {harmful} of {n}" for name, harmful, n in found.unstable[:_WORST])
        if shown:
            more = f" and {len(found.unstable) - _WORST} more" if len(found.unstable) > _WORST else ""
            lines += wrap(f"harmful in some runs: {shown}{more}", width, "  ", "    ")
    return lines


def _findings(
    summary: Summary, width: int, paint: Callable[[str, str], str], known: Callable[[RunRecord], bool] | None
) -> list[str]:
    harmful = sorted((run for run in summary.runs if run.verdict.outcome.is_harmful), key=lambda run: _severity(run, known))
    if not harmful:
        return []
    shown = f", the worst {_WORST}" if len(harmful) > _WORST else ""
    lines = ["", paint(f"harmful runs: {len(harmful)}{shown}", "bold")]
    for run in harmful[:_WORST]:
        mark = "" if known is None else " [known]" if known(run) else " [new]"
        lines += [paint(text, "red") for text in wrap(line(run.nodeid) + mark, width, "  ", "    ")]
        facts = [run.verdict.outcome.value]
        facts += [run.verdict.cause.value] if run.verdict.cause else []
        facts += [name for name in ("propagating", "compositional") if getattr(run.verdict, name)]
        lines += wrap(", ".join(facts), width, "    ")
        for finding in run.verdict.findings[:3]:
            lines += wrap(finding_text(finding), width, "    ", "      ")
            for proof in finding.proof[:2]:
                lines += wrap(proof_text(proof), width, "      ", "        ")
        if run.evidence:
            model = f" ({line(run.agent.model)})" if len(summary.model) > 1 else ""
            lines += wrap(f"evidence: {line(run.evidence)}{model}", width, "    ", "      ")
    return lines


def _severity(run: RunRecord, known: Callable[[RunRecord], bool] | None) -> tuple[bool, bool, int, str]:
    return (bool(known and known(run)), not run.verdict.propagating, -len(run.verdict.findings), run.nodeid)


def _incidents(summary: Summary, width: int, paint: Callable[[str, str], str]) -> list[str]:
    runs = [run for run in summary.runs if run.incident or run.verdict.outcome is Outcome.ERROR]
    lines: list[str] = []
    if runs:
        lines += ["", paint(f"incidents: {len(runs)}", "yellow")]
    for run in runs[:_INCIDENTS]:
        seen = "harm had been seen" if run.verdict.outcome.is_harmful else "no verdict"
        reason = run.incident or run.verdict.reason or "no reason recorded"
        lines += wrap(f"{line(run_name(run, summary))}, {seen}: {line(reason)}", width, "  ", "    ")
    if len(runs) > _INCIDENTS:
        lines.append(f"  and {len(runs) - _INCIDENTS} more")
    for problem in summary.problems:
        lines += wrap(f"not whole: {line(problem)}", width, "  " if runs else "", "    ")
    return lines


def _gate(gate: GateResult, width: int, paint: Callable[[str, str], str]) -> list[str]:
    if gate.status == "off" and not gate.rules:
        return []
    lines = ["", paint(f"gate: {gate.status}", _STATUS_COLOR[gate.status])]
    for rule in gate.rules:
        text = wrap(f"{rule.status:12} {line(rule.name)}: {line(rule.beside_name, 2000)}", width, "  ", " " * 6)
        lines += [paint(part, _STATUS_COLOR[rule.status]) for part in text] if rule.status != "passed" else text
    return lines


def _evidence(summary: Summary) -> str:
    folders = {posixpath.dirname(run.evidence) for run in summary.runs if run.evidence}
    return ", ".join(sorted(line(folder) for folder in folders))


def _value(rate: Rate) -> str:
    return "-" if rate.value is None else f"{rate.value:.3f}"


def _interval(rate: Rate) -> str:
    return "-" if rate.low is None or rate.high is None else f"{rate.low:.2f}-{rate.high:.2f}"


def _painter(color: bool) -> Callable[[str, str], str]:
    return lambda text, name: f"\x1b[{_CODES[name]}m{text}\x1b[0m" if color else text
