"""`pytest-saber baseline`: make, show and compare baseline files."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_saber.errors import UsageError
from pytest_saber.model.words import counted
from pytest_saber.reports.escape import line

if TYPE_CHECKING:
    from pytest_saber.gate.baseline import Baseline, BaselineTask

HELP = "make a baseline of a former session's report, show one, or compare two"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `from-json`, `from-junit`, `show` and `diff`."""
    parser.epilog = (
        "Exit codes: 0, 2 a usage error, or a session of which no baseline can be made; `diff`: 1 the second is a regression, "
        "11 that cannot be told."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, what in (("from-json", "a JSON report (--saber-json)"), ("from-junit", "a JUnit file (--junitxml)")):
        action = actions.add_parser(name, help=f"make a baseline of {what}")
        action.add_argument(
            "reports", nargs="+", type=Path, metavar="FILE", help="one session's file, or the files of its shards"
        )
        action.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write it (default: print it)")
    show = actions.add_parser("show", help="print a baseline as a table")
    show.add_argument("baseline", type=Path, metavar="FILE")
    diff = actions.add_parser(
        "diff", help="compare two baselines task by task; exit code 1: the second is a regression; 11: that cannot be told"
    )
    diff.add_argument("old", type=Path, metavar="OLD")
    diff.add_argument("new", type=Path, metavar="NEW")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 where `diff` finds a regression by the default policy, 11 where it cannot tell."""
    if args.action == "show":
        return _show(args.baseline)
    if args.action == "diff":
        return _diff(args.old, args.new)
    return _make(args.action, args.reports, args.output)


def _make(action: str, paths: list[Path], output: Path | None) -> int:
    from pytest_saber.gate import baseline
    from pytest_saber.reports import json_reader, junit
    from pytest_saber.reports.join import join

    if output is not None and any(os.path.realpath(output) == os.path.realpath(path) for path in paths):
        raise UsageError(f"-o: {output} is one of the files that are read, and would be lost; name another one")
    names = ", ".join(map(str, paths))
    if action == "from-junit":
        runs = list(junit.read_whole(paths))
    else:
        summary = join([json_reader.load(path) for path in paths])
        baseline.make(summary)  # refuses a session that is not whole
        runs = list(summary.runs)
    made = baseline.from_records(runs, origin=names)
    if output is None:
        sys.stdout.write(baseline.dumps(made))
        return 0
    baseline.save(made, output)
    print(
        f"wrote {output}: {counted(len(made.tasks), 'task')}, {counted(sum(len(task.outcomes) for task in made.tasks), 'run')}"
    )
    return 0


def _show(path: Path) -> int:
    from pytest_saber.gate import load

    baseline = load(path)
    print(_title(baseline))
    width = max(len(line(task.task)) for task in baseline.tasks)
    for task in baseline.tasks:
        print(f"{line(task.task):<{width}}  {task.scenario.value}  {task.category.value:<26}  {_outcomes(task)}")
    return 0


def _diff(old_path: Path, new_path: Path) -> int:
    from pytest_saber.gate import INCONCLUSIVE, load
    from pytest_saber.gate.policy import Policy
    from pytest_saber.gate.regression import compare_baselines
    from pytest_saber.gate.rules import baseline_rules, worst

    old, new = load(old_path), load(new_path)
    print(f"old: {_title(old)}\nnew: {_title(new)}\n")
    former = {task.task: task for task in old.tasks}
    for task in new.tasks:
        before = former.pop(task.task, None)
        if before is None:
            print(f"  + {line(task.task)}: {_outcomes(task)}")
        elif before.outcomes != task.outcomes or before.hash != task.hash:
            changed = " (the task's contents differ)" if before.hash != task.hash else ""
            print(f"  ~ {line(task.task)}: {_outcomes(before)} -> {_outcomes(task)}{changed}")
    for task in former.values():
        print(f"  - {line(task.task)}: {_outcomes(task)}")
    rules = baseline_rules(compare_baselines(new, old), old, Policy())
    print("\n" + "\n".join(f"{rule.status:12} {line(rule.name)}: {line(rule.message, 2000)}" for rule in rules))
    return {"failed": 1, "inconclusive": INCONCLUSIVE}.get(worst(rule.status for rule in rules), 0)


def _title(baseline: Baseline) -> str:
    harmful, effective = sum(task.harmful for task in baseline.tasks), sum(task.effective for task in baseline.tasks)
    rate = f"HSR {harmful / effective:.3f} ({harmful} of {effective})" if effective else "no effective run"
    agent = line(f"{baseline.agent.agent} with {baseline.agent.model}")
    return f"{baseline.path}: {agent}, {counted(len(baseline.tasks), 'task')}, {rate}, {baseline.judge}"


def _outcomes(task: BaselineTask) -> str:
    counts = Counter(outcome.value for outcome in task.outcomes)
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in sorted(counts.items()))
