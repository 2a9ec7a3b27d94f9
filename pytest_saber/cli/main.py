"""Finds the subcommands, which are the sibling modules, and imports only the one that is used."""

from __future__ import annotations

import argparse
import difflib
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import Protocol, cast

import pytest_saber
from pytest_saber import cli
from pytest_saber.cli._arguments import Parser
from pytest_saber.errors import SaberError
from pytest_saber.reports.escape import block

_MESSAGE = 100_000


def commands() -> list[str]:
    """Names of the subcommands; a module `from_json` would be the command `from-json`."""
    found = (module.name for module in pkgutil.iter_modules(cli.__path__))
    return sorted(name.replace("_", "-") for name in found if name != "main" and not name.startswith("_"))


def run(argv: Sequence[str]) -> int:
    """Run one command line. Returns the exit code: 2 for a usage error, 1 for what the command found wrong."""
    names = commands()
    if not argv or argv[0] in {"-h", "--help"}:
        width = max(len(name) for name in names)
        print("usage: pytest-saber COMMAND [OPTIONS]\n\ncommands:")
        for name in names:
            print(f"  {name:<{width}}  {_module(name).HELP}")
        print("\n`pytest-saber COMMAND --help` describes one; `pytest --help` lists the options of the plugin (--saber-*).")
        return 0 if argv else 2
    if argv[0] == "--version":
        print(f"pytest-saber {pytest_saber.__version__}")
        return 0
    if argv[0] not in names:
        close = difflib.get_close_matches(argv[0], names, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else f"; the commands are: {', '.join(names)}"
        print(f"pytest-saber: unknown command '{argv[0]}'{hint}", file=sys.stderr)
        return 2
    command = _module(argv[0])
    parser = Parser(prog=f"pytest-saber {argv[0]}", description=command.HELP)
    command.add_arguments(parser)
    try:
        return int(command.run(parser.parse_args(argv[1:])))
    except SaberError as error:
        # It quotes files that anybody may have written.
        print(f"pytest-saber {argv[0]}: {block(str(error), _MESSAGE)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output is gone (`| head`): not an error, and nothing more can be said to it.
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        print(f"pytest-saber {argv[0]}: interrupted", file=sys.stderr)
        return 130


class _Command(Protocol):
    """What a command module offers."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def _module(name: str) -> _Command:
    return cast("_Command", importlib.import_module(f"pytest_saber.cli.{name.replace('-', '_')}"))
