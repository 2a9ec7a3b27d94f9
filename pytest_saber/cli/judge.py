"""`pytest-saber judge`: judge recorded runs again, offline, and show what changed."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_saber.model.words import counted

if TYPE_CHECKING:
    from pytest_saber.annotate.semantic import SemanticJudge
    from pytest_saber.model.evidence import Evidence
    from pytest_saber.model.summary import SemanticLabel
    from pytest_saber.model.verdict import Finding, Rules, Verdict
    from pytest_saber.record.attempts import Counting
    from pytest_saber.record.store import RunStore
    from pytest_saber.runner.rejudge import CurrentTasks

HELP = "judge recorded runs again without running anything, and show what changed against their stored verdicts"
EPILOG = """
Exit codes: 0 no verdict changed, or the changes were written (--update); 1 a verdict changed; 2 a run could not be judged:
its evidence is missing, corrupt, truncated or of a newer schema, its task changed since, or the semantic judge that was
asked gave no label. A run whose task changed is judged by the task as it was recorded with `--task-changes recorded`.
A run that its session repeated later, such as one that was cut off and `--saber-resume` did again, is left out and told.
"""
T = TypeVar("T")

ASKED_AT_ONCE = 8
"""Runs that a semantic judge is asked about at once."""
_KINDS = ("effects", "attempts", "reads", "semantic")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUNS", help="runs, sessions, or folders of them")
    parser.add_argument(
        "--rules", metavar="KINDS", help=f"kinds of finding that count: {','.join(_KINDS)}; effects always (default: as stored)"
    )
    parser.add_argument("--update", action="store_true", help="write the new verdicts")
    parser.add_argument("--json", action="store_true", help="print the changes and faults as JSON")
    parser.add_argument(
        "--task-changes",
        choices=("refuse", "recorded"),
        default="refuse",
        help="what to do with a run whose task file changed since (default: refuse)",
    )
    judge = parser.add_argument_group("semantic judge", "ask a model about the runs, and store its labels with them")
    judge.add_argument("--judge", metavar="PROVIDER/NAME", help="ask this model about runs that it has not labelled")
    judge.add_argument("--judge-votes", metavar="K", help="labels for each run; the majority counts (default: 1)")
    judge.add_argument("--judge-base-url", metavar="URL", help="address of its server")
    judge.add_argument("--judge-arg", action="append", default=[], metavar="KEY=VALUE", help="a setting of its client")


@dataclass(frozen=True, slots=True)
class Judged:
    """One run, judged again. `before` is None where it had no verdict."""

    path: Path
    task: str
    epoch: int
    before: Verdict | None
    after: Verdict
    semantic: SemanticLabel | None

    @property
    def changed(self) -> bool:
        """Whether anything of the verdict differs, its findings and its cause included."""
        return self.before != self.after


def run(args: argparse.Namespace) -> int:
    """See `EPILOG`."""
    from pytest_saber.errors import EvidenceError
    from pytest_saber.record.attempts import counting
    from pytest_saber.record.store import RunStore
    from pytest_saber.runner.rejudge import CurrentTasks

    rules = _rules(args.rules)
    found = counting(args.runs)
    paths = list(found.runs)
    judge = _semantic(args, paths)
    store = RunStore(paths[0].parent.parent, redact=_secrets())
    tasks = CurrentTasks(refuse=args.task_changes == "refuse")
    done: list[Judged] = []
    faults: list[tuple[Path, str]] = []

    def attempt(path: Path) -> Judged | EvidenceError:
        try:
            return _judged(path, store, tasks, rules, judge)
        except EvidenceError as error:
            return error

    begin = time.monotonic()
    try:
        for path, result in zip(paths, _mapped(attempt, paths, threads=1 if judge is None else ASKED_AT_ONCE), strict=True):
            if isinstance(result, EvidenceError):
                faults.append((path, str(result)))
                continue
            done.append(result)
            label = result.semantic
            if judge is not None and label is not None and label.harmful is None:
                faults.append((path, f"{path}: judged by the rules alone, the semantic judge gave no label: {label.problem}"))
    finally:
        if judge is not None:
            judge.close()
    seconds = time.monotonic() - begin
    changes = [item for item in done if item.changed]
    if args.update:
        for item in changes:
            with _writing(item.path):
                store.save_verdict(item.path, item.after)
    if args.json:
        print(json.dumps(_document(done, changes, faults, found, updated=args.update), indent=1))
    else:
        _report(done, changes, faults, found, seconds, updated=args.update)
    return 2 if faults else 1 if changes and not args.update else 0


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say which run could not be written."""
    from pytest_saber.errors import UsageError

    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _mapped(function: Callable[[Path], T], paths: list[Path], *, threads: int) -> Iterator[T]:
    """Results in order; a model that is asked is waited for in several threads."""
    if threads == 1:
        yield from map(function, paths)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, paths)


def _judged(path: Path, store: RunStore, tasks: CurrentTasks, rules: Rules | None, judge: SemanticJudge | None) -> Judged:
    """Raises EvidenceError for what cannot be judged."""
    from pytest_saber.annotate.agreement import semantic_label
    from pytest_saber.judge import judge as decide
    from pytest_saber.runner.pipeline import annotated

    evidence = store.load(path)
    before = store.load_verdict(path)
    tasks.check(evidence, path)
    if judge is not None and not _labelled(evidence, judge):
        evidence = annotated(evidence, judge)
        with _writing(path):
            store.save_evidence(path, evidence)
    chosen = rules or (before.rules if before is not None else None)
    after = decide(evidence.task, evidence, chosen) if chosen is not None else decide(evidence.task, evidence)
    return Judged(path, evidence.task.name, evidence.key.epoch, before, after, semantic_label(evidence, after.rules))


def _labelled(evidence: Evidence, judge: SemanticJudge) -> bool:
    """Whether this very model has labelled the run."""
    from pytest_saber.judge.semantic import SEMANTIC

    return any(a.kind == SEMANTIC and a.data.get("model") == judge.model for a in evidence.annotations)


def _rules(text: str | None) -> Rules | None:
    """Raises UsageError for a kind that there is not. Effects count whether they are named or not, as in `--saber-rules`."""
    from pytest_saber.errors import UsageError
    from pytest_saber.model.verdict import Rules
    from pytest_saber.record.shapes import did_you_mean

    if text is None:
        return None
    chosen = [kind.strip() for kind in text.split(",") if kind.strip() not in ("", "none")]
    for kind in chosen:
        if kind not in _KINDS:
            raise UsageError(f"--rules: {kind!r} is not one of {', '.join(_KINDS)}{did_you_mean(kind, _KINDS)}")
    return Rules(**{kind: kind in chosen for kind in _KINDS[1:]})


def _semantic(args: argparse.Namespace, paths: list[Path]) -> SemanticJudge | None:
    from pytest_saber.annotate.semantic import make, parse_votes
    from pytest_saber.errors import UsageError

    if args.judge is None:
        for option in ("--judge-votes", "--judge-base-url", "--judge-arg"):
            if getattr(args, option[2:].replace("-", "_")):
                raise UsageError(f"{option}: there is no semantic judge; name one with --judge")
        return None
    pairs = [argument.partition("=") for argument in args.judge_arg]
    for name, equals, _ in pairs:
        if not equals or not name.strip():
            raise UsageError(f"--judge-arg: {name!r} is not KEY=VALUE")
    return make(
        args.judge,
        votes=parse_votes("1" if args.judge_votes is None else args.judge_votes, "--judge-votes"),
        base_url=args.judge_base_url or "",
        arguments={name.strip(): text.strip() for name, _, text in pairs},
        runs=paths[0].parent.parent,
        option="--judge",
    )


def _secrets() -> tuple[str, ...]:
    import os

    from pytest_saber.providers import secrets

    return secrets(os.environ)


# --- what is shown ---------------------------------------------------------------------------------------------------


def _report(
    done: list[Judged],
    changes: list[Judged],
    faults: list[tuple[Path, str]],
    found: Counting,
    seconds: float,
    *,
    updated: bool,
) -> None:
    from pytest_saber.annotate.agreement import summary_lines
    from pytest_saber.reports.escape import block, line, wrap

    width = shutil.get_terminal_size((100, 24)).columns
    for item in changes:
        print(f"{line(str(item.path))}: {_outcomes(item)}")
        for sign, finding in _differences(item):
            print("\n".join(wrap(f"{sign} {line(finding.property)}: {line(finding.message)}", width, "    ", "      ")))
        for text in _facts(item):
            print(f"    {text}")
    for text in _grouped(faults):
        print(block(text), file=sys.stderr)
    for text in summary_lines(done):
        print(text)
    for text in found.lines:
        print(line(text, 2000))
    rate = f", {len(done) / seconds * 60:.0f} a minute" if seconds > 0.5 else ""
    what = f"{len(changes)} changed" if changes else "none changed"
    written = ", the new verdicts are written" if updated and changes else ""
    bad = f"; {counted(len(faults), 'fault')}, see above" if faults else ""
    print(f"{counted(len(done), 'run')} judged again in {seconds:.1f} s{rate}: {what}{written}{bad}")


def _grouped(faults: list[tuple[Path, str]]) -> list[str]:
    """One text for each kind of fault: of a task that changed, every epoch says the same."""
    groups: dict[str, list[Path]] = {}
    for path, text in faults:
        groups.setdefault(text.removeprefix(f"{path}: "), []).append(path)
    return [f"FAULT: {runs[0]}{f' and {len(runs) - 1} more' if len(runs) > 1 else ''}: {text}" for text, runs in groups.items()]


def _outcomes(item: Judged) -> str:
    if item.before is None:
        return f"{item.after.outcome.value} (it had no verdict)"
    if item.before.outcome is item.after.outcome:
        return f"{item.after.outcome.value}, as before"
    return f"{item.before.outcome.value} -> {item.after.outcome.value}"


def _differences(item: Judged) -> list[tuple[str, Finding]]:
    """Findings that are gone (`-`) and new (`+`); one whose words or proof alone differ is not among them."""
    before = item.before.findings if item.before is not None else ()
    old, new = {_key(finding): finding for finding in before}, {_key(finding): finding for finding in item.after.findings}
    gone = [("-", finding) for key, finding in old.items() if key not in new]
    return [*gone, *(("+", finding) for key, finding in new.items() if key not in old)]


def _key(finding: Finding) -> tuple[str, ...]:
    return (finding.property, finding.kind.value, finding.message)


def _facts(item: Judged) -> list[str]:
    """Other fields that differ: cause, rules, the judge's version and so on."""
    if item.before is None:
        return []
    found = []
    for name in ("completion", "abort", "cause", "propagating", "compositional", "semantic", "judge_version", "rules"):
        old, new = getattr(item.before, name), getattr(item.after, name)
        if old != new:
            found.append(f"{name}: {_word(old)} -> {_word(new)}")
    if not found and not _differences(item) and item.before.outcome is item.after.outcome:
        found.append("only words or proofs differ")
    return found


def _word(value: Any) -> str:
    from pytest_saber.model.verdict import Rules

    if isinstance(value, Rules):
        return ",".join(["effects", *(kind for kind in _KINDS[1:] if getattr(value, kind))])
    return "none" if value is None else str(getattr(value, "value", value)).lower()


def _document(
    done: list[Judged], changes: list[Judged], faults: list[tuple[Path, str]], found: Counting, *, updated: bool
) -> Mapping[str, Any]:
    from pytest_saber.record import codec

    return {
        "judged": len(done),
        "changed": [
            {
                "run": str(item.path),
                "task": item.task,
                "epoch": item.epoch,
                "before": codec.encode(item.before) if item.before is not None else None,
                "after": codec.encode(item.after),
            }
            for item in changes
        ],
        "faults": [{"run": str(path), "message": text} for path, text in faults],
        "left_out": [
            {"run": str(item.run), "why": item.why.value, "repeated_as": str(item.repeated)} for item in found.left_out
        ],
        "updated": updated,
    }
