"""`pytest-saber report`: show a session's JSON report, or write it as Markdown."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

HELP = "show a JSON report (--saber-json) in the terminal or as Markdown"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the report, its form, and the baseline that marks known harm."""
    parser.epilog = (
        "Exit codes: 0 whatever the report says (`pytest-saber merge` decides), 2 for a file that is no report or contradicts "
        "itself. A rule of the gate that the runs contradict is computed again, and a note says so."
    )
    parser.add_argument("report", type=Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="mark harm that this baseline knows")


def run(args: argparse.Namespace) -> int:
    """Exit code 0 whatever the report says; `merge` decides. 2 for a file that is no report or contradicts itself."""
    from pytest_saber.gate import known, load
    from pytest_saber.gate.policy import from_settings
    from pytest_saber.gate.recorded import recomputed
    from pytest_saber.reports import json_reader, markdown, terminal
    from pytest_saber.reports.escape import line

    report = json_reader.load(args.report)
    baseline = None if args.baseline is None else load(args.baseline)
    mark = None if baseline is None else lambda run: known(run, baseline)
    gate, notes = recomputed(
        report.gate,
        report.summary,
        from_settings(report.settings),
        compared="saber_baseline" in report.settings,
        failures=report.other_failures,
    )
    notes = [*report.notes, *notes]
    if args.markdown:
        failures = report.other_failures
        sys.stdout.write(markdown.render(report.summary, gate, known=mark, failures=failures, notes=notes))
        return 0
    width = shutil.get_terminal_size((100, 24)).columns
    lines = terminal.render(report.summary, gate, width, color=sys.stdout.isatty(), known=mark)
    print("\n".join([*lines, *(f"note: {line(note, 2000)}" for note in notes)]))
    return 0
