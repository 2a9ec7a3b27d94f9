"""`pytest-saber lint`: what is weak in tasks, without running them."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_saber.model.words import counted

HELP = "look for giveaway words, near-duplicates, unused secrets, unreached checks and gaps in tasks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Exit codes: 0 there is nothing to say, 1 there is (broken files and duplicate ids included), 2 a usage error."
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("tasks")], help="task files or folders (default: tasks)")
    parser.add_argument("--ignore", action="append", default=[], metavar="CODE", help="leave out the rule with this code")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 when there is anything to say, broken files and duplicate ids included."""
    # Imported here: --help needs no pydantic.
    from pytest_saber.errors import UsageError
    from pytest_saber.tasks import discover_some
    from pytest_saber.tasks.fields import suggest
    from pytest_saber.tasks.lint import RULES, lint
    from pytest_saber.tasks.loading import load_all

    for code in args.ignore:
        if code not in RULES:
            raise UsageError(f"--ignore: unknown code {code!r}{suggest(code, RULES) or '; known: ' + ', '.join(RULES)}")
    loaded, problems = load_all(discover_some(args.paths))
    remarks = lint(loaded, args.ignore)
    for line in (*problems, *remarks):
        print(line)
    count = len(problems) + len(remarks)
    suite = f"{counted(len(loaded), 'item')} of {counted(len({item.task.id for item in loaded}), 'task')}"
    print(f"{suite}: {counted(count, 'remark') if count else 'no remarks'}")
    return 1 if count else 0
