"""The report as GitHub's Markdown, for `--saber-markdown=FILE` and `$GITHUB_STEP_SUMMARY`.

Every text that a task, an agent or a workspace could have chosen goes through `escape.markdown`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_saber.metrics import reliability, run_name, task_name
from pytest_saber.model.summary import GateResult, Metrics, Rate, RunRecord, Summary
from pytest_saber.model.terms import Outcome
from pytest_saber.model.words import agreeing, counted, part
from pytest_saber.reports import comparison
from pytest_saber.reports.escape import markdown as plain
from pytest_saber.reports.failure import SCENARIOS, proof_text

_MARK = {"passed": "✅ passed", "failed": "❌ failed", "inconclusive": "⚠️ inconclusive", "off": "off"}
_SHOWN = 50
MAX_BYTES = 900_000
"""GitHub refuses a step summary of more than 1 MiB."""

Known = Callable[[RunRecord], bool]
Link = Callable[[RunRecord], str]


def render(
    summary: Summary,
    gate: GateResult,
    *,
    known: Known | None = None,
    link: Link | None = None,
    failures: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """The whole report.

    `known` tells harm that the baseline has too from new harm. `link` gives the URL of a run's task file, empty for none.
    `failures` name failed tests that are neither harm nor incidents: the session fails through them whatever the gate says.
    `notes` are lines about the whole session.
    """
    parts = [
        _head(summary, gate, len(failures)),
        "\n".join(f"- {plain(note, 1000)}" for note in dict.fromkeys(notes)),
        _gate(gate),
        _table(summary),
        "" if gate.comparison is None else comparison.markdown(gate.comparison),
        _reliability(summary),
        _harmful(summary, known, link),
        _newly_safe(summary, known, link),
        _incidents(summary),
        _failures(failures),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    data = text.encode("utf-8")
    if len(data) <= MAX_BYTES:
        return text
    return data[: data.rindex(b"\n", 0, MAX_BYTES)].decode("utf-8") + "\n\nThe rest is left out; the JSON report has it.\n"


def _head(summary: Summary, gate: GateResult, failures: int) -> str:
    runs = part(len(summary.runs), summary.expected, "run")
    if summary.skipped:
        runs += f", {len(summary.skipped)} not started because the gate was decided early"
    others = f", ❌ {counted(failures, 'other test')} failed" if failures else ""
    title = f"## Agent safety gate: {_MARK[gate.status]}{others}"
    if not summary.runs:
        return f"{title}\n\n{runs}."
    if len(summary.model) < 2:
        agent = f"{plain(next(iter(summary.model), summary.agent.model))} ({plain(summary.agent.agent)})"
        return f"{title}\n\n{agent}: {_hsr(summary.overall)}; {runs}."
    # No rate of all together: it is about the choice of models, and of no agent.
    agents = {run.agent.model: run.agent.agent for run in summary.runs}
    models = [f"- {plain(name)} ({plain(agents[name])}): {_hsr(metrics)}" for name, metrics in summary.model.items()]
    return f"{title}\n\n{counted(len(models), 'model')}, {runs}:\n\n" + "\n".join(models)


def _hsr(metrics: Metrics) -> str:
    count = f"{part(metrics.harmful, metrics.effective, 'effective run')} {agreeing(metrics.harmful, 'was', 'were')} harmful"
    return f"**HSR {_rate(metrics.hsr)}** ({count})"


def _gate(gate: GateResult) -> str:
    if not gate.rules:
        return ""
    rows = [(_MARK[rule.status], plain(rule.name), plain(rule.beside_name, 2000)) for rule in gate.rules]
    return "### Rules\n\n" + _rows(("", "rule", "why"), rows)


def _table(summary: Summary) -> str:
    rows = []
    for scenario, metrics in summary.scenario.items():
        name = next((words for key, words in SCENARIOS.items() if key.value == scenario), "")
        rows.append((f"**{plain(scenario)}** {name}", *_counts(metrics)))
        rows += [
            (plain(cell.partition("/")[2]), *_counts(part))
            for cell, part in summary.cell.items()
            if cell.partition("/")[0] == scenario
        ]
    if len(summary.model) > 1:
        rows += [(plain(model), *_counts(part)) for model, part in summary.model.items()]
    several = len(summary.model) > 1
    rows.append(("**all models**" if several else "**all**", *_counts(summary.overall)))
    heads = ("", "runs", "effective", "harmful", "errors", "HSR", "95 %", "SCR", "SRR", "IR", "LRR", "PHR", "CPR")
    note = "Scenarios and categories are those of all models together.\n\n" if several else ""
    return f"### Rates\n\n{note}" + _rows(heads, rows)


def _counts(metrics: Metrics) -> tuple[str, ...]:
    counts = (str(number) for number in (metrics.runs, metrics.effective, metrics.harmful, metrics.errors))
    rates = (_rate(rate) for rate in (metrics.scr, metrics.srr, metrics.ir, metrics.lrr, metrics.phr, metrics.cpr))
    return (*counts, _rate(metrics.hsr), _interval(metrics.hsr), *rates)


def _reliability(summary: Summary) -> str:
    rows = []
    for model in summary.model:
        found = reliability(run for run in summary.runs if run.agent.model == model)
        if found is not None:
            chances = ", ".join(f"{k}: {100 * value:.1f} %" for k, value in enumerate(found.safe, 1))
            some = ", ".join(f"{plain(name)} {harmful} of {n}" for name, harmful, n in found.unstable[:_SHOWN])
            rows.append((plain(model), str(found.tasks), chances, f"{100 * found.flip_rate:.1f} %", some))
    heads = ("", "tasks", "no harm in k runs", "flip rate", "harmful in some runs")
    return "### Reliability\n\n" + _rows(heads, rows) if rows else ""


def _harmful(summary: Summary, known: Known | None, link: Link | None) -> str:
    runs = [run for run in summary.runs if run.verdict.outcome.is_harmful]
    if not runs:
        return ""
    if known is not None:
        runs.sort(key=known)
    several = any(run.epoch > 1 for run in summary.runs)
    models = len(summary.model) > 1
    rows = []
    for run in runs[:_SHOWN]:
        url = link(run) if link is not None else ""
        name = plain(task_name(run)) + (f" epoch {run.epoch}" if several else "")
        mark = [] if known is None else ["known" if known(run) else "**new**"]
        what = "<br>".join(plain(f"{finding.property}: {finding.message}") for finding in run.verdict.findings[:3])
        proof = "<br>".join(plain(proof_text(finding.proof[0])) for finding in run.verdict.findings[:3] if finding.proof)
        rows.append(
            (
                f"[{name}]({url})" if url else name,
                *([plain(run.agent.model)] if models else ()),
                *mark,
                plain(run.verdict.outcome.value),
                what,
                proof,
                plain(run.evidence),
            )
        )
    heads = (
        "task",
        *(["model"] if models else ()),
        *([] if known is None else [""]),
        "outcome",
        "finding",
        "proof",
        "evidence",
    )
    more = f"\n\nand {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return f"### Harmful runs ({len(runs)})\n\n" + _rows(heads, rows) + more


def _newly_safe(summary: Summary, known: Known | None, link: Link | None) -> str:
    """The tasks that were harmful in the baseline, and are not once now, with the evidence of their runs."""
    tasks: dict[tuple[str, str], list[RunRecord]] = {}
    for run in summary.runs if known is not None else ():
        if run.verdict.outcome.is_effective:
            tasks.setdefault((run.agent.model, task_name(run)), []).append(run)
    models = len(summary.model) > 1
    rows = []
    for (model, name), runs in tasks.items():
        if known is None or not known(runs[0]) or any(run.verdict.outcome.is_harmful for run in runs):
            continue
        url = link(runs[0]) if link is not None else ""
        rows.append(
            (
                f"[{plain(name)}]({url})" if url else plain(name),
                *([plain(model)] if models else ()),
                f"0 of {len(runs)}",
                "<br>".join(plain(run.evidence) for run in runs),
            )
        )
    if not rows:
        return ""
    heads = ("task", *(["model"] if models else ()), "harmful", "evidence")
    return f"### Newly safe tasks ({len(rows)})\n\n" + _rows(heads, rows)


def _incidents(summary: Summary) -> str:
    runs = [run for run in summary.runs if run.incident or run.verdict.outcome is Outcome.ERROR]
    lines = [f"- {plain(problem)}" for problem in summary.problems]
    for run in runs[:_SHOWN]:
        seen = "harm had been seen" if run.verdict.outcome.is_harmful else "no verdict"
        lines.append(f"- {plain(run_name(run, summary))}, {seen}: {plain(run.incident or run.verdict.reason)}")
    if len(runs) > _SHOWN:
        lines.append(f"- and {len(runs) - _SHOWN} more")
    return f"### Incidents ({len(runs)})\n\n" + "\n".join(lines) if lines else ""


def _failures(names: Sequence[str]) -> str:
    if not names:
        return ""
    lines = [f"- {plain(name)}" for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        lines.append(f"- and {len(names) - _SHOWN} more")
    return f"### Other failed tests ({len(names)})\n\n" + "\n".join(lines)


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def _rate(rate: Rate) -> str:
    return "-" if rate.value is None else f"{100 * rate.value:.1f} %"


def _interval(rate: Rate) -> str:
    return "-" if rate.low is None or rate.high is None else f"{100 * rate.low:.0f} to {100 * rate.high:.0f} %"
