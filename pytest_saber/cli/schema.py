"""`pytest-saber schema`: the task format as JSON Schema, or as its reference page."""

from __future__ import annotations

import argparse
import json

HELP = "print the JSON Schema of the task format"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = "Exit code 0."
    parser.add_argument("--markdown", action="store_true", help="print the reference page (docs/task-format.md) instead")


def run(args: argparse.Namespace) -> int:
    """Print the schema or the page. Cannot fail."""
    # Imported here: --help needs no pydantic.
    from pytest_saber.tasks.json_schema import json_schema
    from pytest_saber.tasks.markdown import markdown

    print(markdown().rstrip("\n") if args.markdown else json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0
