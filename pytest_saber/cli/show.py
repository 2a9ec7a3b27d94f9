"""`pytest-saber show`: the story of one recorded run."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_saber.model.words import counted

if TYPE_CHECKING:
    from pytest_saber.annotate.story import Told
    from pytest_saber.model.evidence import Annotation, Evidence
    from pytest_saber.model.verdict import Verdict
    from pytest_saber.record.store import PartialRun

HELP = (
    "print the story of a recorded run: request, steps, changes, findings with their proof, outcome; of several, one line each"
)

_NO_LIMIT = 10**9
_OUTPUT_LINES = 12
_OUTPUT_CHARACTERS = 2_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Texts of agents and workspaces are shown with control and invisible characters escaped, and shortened unless "
        "--full is given. Exit codes: 0 whatever the run did, 2 when it cannot be read."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run or its evidence.json; or a session")
    parser.add_argument("--events", metavar="A-B", help="only the events of these numbers (7, 3-9, 20-)")
    parser.add_argument("--full", action="store_true", help="do not shorten texts")


def run(args: argparse.Namespace) -> int:
    """Exit code 0 whatever the run did; 2 when its evidence cannot be read."""
    from pytest_saber.errors import UsageError
    from pytest_saber.record.attempts import counting, repetition
    from pytest_saber.record.store import find_runs
    from pytest_saber.reports.escape import line

    first, last = _range(args.events)
    found = find_runs([args.run])
    folder = found[0]
    if len(found) > 1:
        chosen = counting([args.run])
        folder = chosen.runs[0]
        if len(chosen.runs) > 1:
            if args.events is not None or args.full:
                raise UsageError(f"{args.run} holds {len(chosen.runs)} runs; name one, such as {folder}")
            print("\n".join(_rows(chosen.runs)))
        for text in chosen.lines:
            print(line(text, 2000))
        if len(chosen.runs) > 1:
            return 0
    former = repetition(folder)
    if former is not None:
        print(line(f"This {former.why} does not count: it was repeated as {former.repeated}", 2000))
    for text in story(folder, first, last, full=args.full):
        print(text)
    return 0


def _rows(runs: Sequence[Path]) -> list[str]:
    """What each run came to, a line each."""
    from pytest_saber.reports.escape import cells, line

    rows = [[line(cell) for cell in _row(run)] for run in runs]
    widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]


def _row(run: Path) -> tuple[str, str, str, str]:
    """Outcome, task and epoch, model, folder."""
    from pytest_saber.errors import EvidenceError
    from pytest_saber.record.store import RunStore
    from pytest_saber.record.writer import EVIDENCE

    store = RunStore(run.parent.parent)
    try:
        verdict = store.load_verdict(run)
        outcome = verdict.outcome.value if verdict is not None else "no verdict"
    except EvidenceError:  # `judge` says what is wrong with it
        outcome = "damaged verdict"
    if not (run / EVIDENCE).exists():
        outcome = "unfinished"
    try:
        head = store.head(run)
    except EvidenceError:  # the story of the run says it
        return outcome, "?", "?", str(run)
    return outcome, f"{head.task.name} epoch {head.key.epoch}", head.agent.model, str(run)


def story(folder: Path, first: int = 1, last: int = _NO_LIMIT, *, full: bool = False) -> Iterator[str]:
    """The lines about one run. Raises EvidenceError."""
    from pytest_saber.errors import EvidenceError
    from pytest_saber.record.store import RunStore
    from pytest_saber.record.writer import EVENTS, EVIDENCE

    page = _Page(max(shutil.get_terminal_size((100, 24)).columns, 40), first, last, full=full)
    store = RunStore(folder.parent.parent)
    if not (folder / EVIDENCE).exists() and (folder / EVENTS).exists():
        return page.partial(store.load_partial(folder), folder)
    evidence = store.load(folder)
    try:
        return page.whole(evidence, store.load_verdict(folder), folder)
    except EvidenceError as error:
        return page.whole(evidence, None, folder, str(error))


def _range(text: str | None) -> tuple[int, int]:
    """First and last event to show. Raises UsageError."""
    from pytest_saber.errors import UsageError

    if text is None:
        return 1, _NO_LIMIT
    match = re.fullmatch(r"(\d{1,9})(?:(-)(\d{0,9}))?", text)
    if match is None:
        raise UsageError(f"--events: {text!r} is not a number or a range such as 7, 3-9 or 20-")
    first = int(match[1])
    last = first if not match[2] else int(match[3]) if match[3] else _NO_LIMIT
    if last < first:
        raise UsageError(f"--events: {text!r} ends before it begins")
    return first, last


class _Page:
    """Makes the lines; none is wider than the terminal, but for words that were recorded wider."""

    def __init__(self, width: int, first: int, last: int, *, full: bool) -> None:
        self._width = width
        self._first = first
        self._last = last
        self._full = full

    def whole(self, evidence: Evidence, verdict: Verdict | None, folder: Path, problem: str = "") -> Iterator[str]:
        from pytest_saber.annotate import story
        from pytest_saber.reports.escape import fit, line

        task = evidence.task
        yield from self._wrap(f"{line(task.name)} epoch {evidence.key.epoch}: {line(task.title)}")
        yield from self._wrap(
            f"{line(evidence.agent.agent)} with {line(evidence.agent.model)}, scenario {task.scenario.value}, "
            f"{task.category.value}, {evidence.seconds:.0f} s, {evidence.started or 'no time recorded'}",
            "  ",
        )
        yield from self._wrap(f"task {line(task.path)}:{task.line}; evidence {line(str(folder))}", "  ")
        yield from self._events(story.events(evidence))
        ended = f"ended: {evidence.termination.reason.value}"
        yield from self._wrap(ended + (f" ({line(evidence.termination.detail)})" if evidence.termination.detail else ""))
        for incident in evidence.incidents:
            yield from self._wrap(f"incident of {line(incident.source)}: {line(incident.detail, 600)}")
        yield ""
        yield "final answer:"
        yield from self._text(evidence.final_response or "(none)", "  ", prose=True)
        yield ""
        yield "changes:"
        changes = [(surface, text) for surface, lines in story.deltas(evidence).items() for text in lines]
        for surface, text in changes:
            if text.startswith(" "):
                yield fit(f"  {text}", self._width)
            else:
                yield from self._wrap(f"{surface}: {text}", "  ", "      ")
        if not changes:
            yield "  none"
        for annotation in evidence.annotations:
            yield from self._annotation(annotation)
        yield ""
        if verdict is None:
            yield from self._wrap(f"verdict: none{f', as it cannot be read: {line(problem)}' if problem else ''}")
        else:
            yield from self._verdict(verdict)

    def partial(self, run: PartialRun, folder: Path) -> Iterator[str]:
        """A run that did not finish."""
        from pytest_saber.annotate import story
        from pytest_saber.reports.escape import line

        head = run.head
        yield from self._wrap(f"{line(head.task.name)} epoch {head.key.epoch}: {line(head.task.title)}")
        yield from self._wrap(f"{line(head.agent.agent)} with {line(head.agent.model)}; record {line(str(folder))}", "  ")
        yield from self._wrap(
            "This run did not finish: it has neither a final state nor a verdict. What was recorded until then:"
            + (" (the last event is incomplete and left out)" if run.cut else "")
        )
        yield from self._events(tuple(map(story.told, run.events)))

    def _events(self, told: Iterable[Told]) -> Iterator[str]:
        from pytest_saber.reports.escape import fit

        items = list(told)
        shown = [item for item in items if self._first <= item.seq <= self._last]
        yield ""
        if items and not shown:
            yield f"the run has {counted(len(items), 'event')}, none {self._asked()}"
        elif len(shown) < len(items):
            yield f"{len(shown)} of {counted(len(items), 'event')}:"
        for item in shown:
            yield fit(f"{item.seq:>4}  {item.head}", self._width)
            yield from self._text(item.body, "      ", prose=item.head.startswith("message "))
        yield ""

    def _asked(self) -> str:
        """The range of events in words."""
        if self._last == _NO_LIMIT:
            return f"from {self._first} on"
        return f"with the number {self._first}" if self._first == self._last else f"from {self._first} to {self._last}"

    def _text(self, text: str, indent: str, *, prose: bool = False) -> Iterator[str]:
        """Untrusted text, line by line, within the width; only prose is broken at spaces."""
        from pytest_saber.reports.escape import block, cells, wrap

        lines = block(text, len(text) + 1 if self._full else _OUTPUT_CHARACTERS).splitlines()
        if not self._full and len(lines) > _OUTPUT_LINES:
            half = _OUTPUT_LINES // 2
            lines = [*lines[:half], f"[{len(lines) - 2 * half} lines left out; --full shows them]", *lines[-half:]]
        room = self._width - len(indent)
        for part in lines:
            if prose:
                yield from wrap(part, self._width, indent) or [""]
                continue
            while cells(part) > room:
                taken = next(n for n in range(room, 0, -1) if cells(part[:n]) <= room)
                yield indent + part[:taken]
                part = part[taken:]
            yield (indent + part).rstrip()

    def _annotation(self, annotation: Annotation) -> Iterator[str]:
        from pytest_saber.annotate import UNDECIDED
        from pytest_saber.judge.semantic import SEMANTIC
        from pytest_saber.reports.escape import line

        if annotation.kind not in (SEMANTIC, UNDECIDED):
            return
        data: dict[str, Any] = dict(annotation.data)
        tally = data.get("tally")
        counts = ", ".join(f"{name} {count}" for name, count in tally.items()) if isinstance(tally, dict) else "no tally"
        yield ""
        harmful = data.get("harmful")
        label = "no label" if not isinstance(harmful, bool) else "harmful" if harmful else "harmless"
        yield from self._wrap(f"semantic judge {line(str(data.get('model')))}: {label} (votes: {line(counts)})")
        if data.get("rationale"):
            yield from self._wrap(line(str(data["rationale"]), 2_000), "  ")
        if data.get("cause"):
            yield from self._wrap(f"cause: {line(str(data['cause']))}", "  ")
        if data.get("refusal") in ("justified", "unnecessary"):
            yield f"  refusal: {data['refusal']}"

    def _verdict(self, verdict: Verdict) -> Iterator[str]:
        from pytest_saber.reports.escape import line
        from pytest_saber.reports.failure import finding_text, proof_text

        yield from self._wrap(f"verdict: {verdict.outcome.value}. {line(verdict.reason)}")
        terms = {"q": verdict.completion, "a": verdict.abort, "cause": verdict.cause}
        facts = [f"{name} {term.value}" for name, term in terms.items() if term is not None]
        facts += [name for name in ("propagating", "compositional") if getattr(verdict, name)]
        facts += [] if verdict.semantic else ["the semantic layer did not run"]
        yield from self._wrap(", ".join(facts), "  ")
        for finding in verdict.findings:
            yield from self._wrap(f"{finding.kind.value} {finding_text(finding)}", "  ", "    ")
            for proof in finding.proof:
                yield from self._wrap(proof_text(proof), "      ", "        ")

    def _wrap(self, text: str, indent: str = "", hang: str | None = None) -> list[str]:
        from pytest_saber.reports.escape import wrap

        return wrap(text, self._width, indent, f"{indent}  " if hang is None else hang)
