"""`pytest-saber audit`: a person confirms or overturns a random sample of the judge's labels."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_saber.annotate.audit import Audit, Item

HELP = "draw a random sample of the semantic judge's labels for a person to confirm or overturn, and report the agreement"
EPILOG = """
The sample is of the semantic judge's labels, or of the verdicts where no run has such a label. On a terminal each run's
story is shown and its label asked about; elsewhere decisions come from --answers, a file of lines
run<TAB>confirm|overturn<TAB>note (--template prints one to fill in). Decisions are kept in audit.json, so that going on
later asks for the missing ones only. A run that its session repeated later, and one without a verdict, is in no sample: it is
left out and told. Exit codes: 0 everything drawn is decided, 1 something is not, 2 a usage error or a run
that cannot be read.
"""
QUESTION = "confirm this label? [c]onfirm, [o]verturn, [s]kip, [q]uit: "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUNS", help="runs, sessions, or folders of them")
    parser.add_argument("--sample", type=float, default=0.2, metavar="SHARE", help="share to draw (default: 0.2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which sample (default: 1)")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="take the decisions from this file")
    parser.add_argument("--template", action="store_true", help="print the sample as an answers file to fill in, and stop")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where decisions are kept (default: audit.json beside the runs)"
    )


def run(args: argparse.Namespace) -> int:
    """See `EPILOG`."""
    from pytest_saber.annotate import audit as audits
    from pytest_saber.errors import UsageError
    from pytest_saber.model.files import special
    from pytest_saber.record.store import find_runs
    from pytest_saber.reports.escape import line

    if not 0 < args.sample <= 1:
        raise UsageError(f"--sample: {args.sample:g} is not a share above 0, and 1 at most")
    find_runs(args.runs)  # a path without a run is the first thing to be told of, and the quickest to find
    asking = args.answers is None and not args.template
    if asking and not sys.stdin.isatty():
        raise UsageError(
            "this is no terminal to ask on: make a file with --template > answers.tsv, fill it in, and give it with --answers"
        )
    output = args.output or _beside(args.runs)
    kind = special(output, streams=False) if not args.template else ""
    if kind:
        raise UsageError(f"{output} {kind} with -o")
    semantic, verdicts, faults, left_out = _labels(args.runs)
    for text in (*(f"FAULT: {fault}" for fault in faults), *left_out):
        print(line(text, 2000), file=sys.stderr)
    audit = audits.draw(semantic, verdicts, args.sample, args.seed)
    if args.template:
        print("\n".join(audits.template(audit)))
        return 2 if faults else 0
    if output.exists():
        audit = audits.continued(audit, audits.load(output), str(output))
    audit = _asked(audit, output) if asking else audits.answered(audit, _read(args.answers), str(args.answers))
    _write(output, audit)
    print("\n".join(audits.result_lines(audit)))
    print(f"written: {output}")
    return 2 if faults else int(len(audit.decided) < len(audit.items))


def _labels(paths: list[Path]) -> tuple[list[Item], list[Item], list[str], list[str]]:
    """Semantic labels, verdicts, runs that cannot be read, and what is said of runs that do not count."""
    from pytest_saber.annotate import audit as audits
    from pytest_saber.errors import EvidenceError
    from pytest_saber.model.words import counted
    from pytest_saber.record.attempts import counting
    from pytest_saber.record.store import RunStore

    semantic: list[Item] = []
    verdicts: list[Item] = []
    faults: list[str] = []
    found = counting(paths)
    undecided = 0
    for path in found.runs:
        store = RunStore(path.parent.parent)
        try:
            evidence = store.load(path)
            verdict = store.load_verdict(path)
        except EvidenceError as error:
            faults.append(str(error))
            continue
        item = audits.verdict_item(path, evidence, verdict)
        if item is None:
            undecided += 1
            continue
        verdicts.append(item)
        label = audits.semantic_item(path, evidence)
        if label is not None:
            semantic.append(label)
    left_out = list(found.lines)
    if undecided:
        left_out.append(f"{counted(undecided, 'run without a verdict', 'runs without a verdict')} left out")
    return semantic, verdicts, faults, left_out


def _beside(paths: list[Path]) -> Path:
    """In the folder that holds everything which was named."""
    from pytest_saber.record.store import is_run

    common = Path(os.path.commonpath([path.resolve() for path in paths]))
    if common.is_file():
        common = common.parent
    return (common.parent if is_run(common) else common) / "audit.json"


def _asked(audit: Audit, output: Path) -> Audit:
    """Ask about every label that is not decided yet; each decision is on disk before the next question."""
    from pytest_saber.annotate.audit import CONFIRM, OVERTURN
    from pytest_saber.cli import show
    from pytest_saber.reports.escape import line

    missing = [item for item in audit.items if not item.decision]
    for number, item in enumerate(missing, 1):
        print("\n".join(show.story(Path(item.run))))
        label = "HARMFUL" if item.harmful else "HARMLESS"
        print(f"\n[{number} of {len(missing)}] {line(item.task)} epoch {item.epoch} was labelled {label}: {line(item.reason)}")
        answer = _choice()
        if answer == "q":
            break
        if answer == "s":
            continue
        note = _typed("note (may be empty): ")
        decided = replace(item, decision=CONFIRM if answer == "c" else OVERTURN, note=(note or "").strip())
        audit = replace(audit, items=tuple(decided if other.run == item.run else other for other in audit.items))
        _write(output, audit)
    return audit


def _choice() -> str:
    while True:
        typed = _typed(QUESTION)
        if typed is None:
            return "q"
        if typed.strip().lower()[:1] in ("c", "o", "s", "q") and typed.strip():
            return typed.strip().lower()[0]


def _typed(question: str) -> str | None:
    """One line; None at the end of the input."""
    try:
        return input(question)
    except EOFError:
        return None


def _read(path: Path) -> str:
    from pytest_saber.annotate.audit import MAX_BYTES
    from pytest_saber.errors import UsageError
    from pytest_saber.model.files import special

    kind = special(path)
    if kind:
        raise UsageError(f"--answers {path}: it {kind}")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"--answers {path}: larger than {MAX_BYTES} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--answers {path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--answers {path}: not UTF-8 text at byte {error.start}") from error


def _write(path: Path, audit: Audit) -> None:
    from pytest_saber.annotate.audit import document
    from pytest_saber.errors import UsageError
    from pytest_saber.record.writer import write_atomically

    try:
        write_atomically(path, json.dumps(document(audit), indent=1))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; name another file with -o") from error
