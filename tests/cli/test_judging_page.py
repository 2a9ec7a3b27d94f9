"""What `docs/judging.md` shows is what the programs take and print."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from pathlib import Path

import pytest

from pytest_saber.annotate.agreement import Agreement, table
from pytest_saber.pytest_glue.settings import TABLE

PAGE = (Path(__file__).parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
BENCH = Path(__file__).parents[2] / "bench" / "judge.py"
COMMANDS = re.findall(r"^    pytest-saber (.+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_taken(command: str) -> None:
    name, *arguments = shlex.split(command.partition(" > ")[0])
    module = importlib.import_module(f"pytest_saber.cli.{name}")
    parser = argparse.ArgumentParser(exit_on_error=False)
    module.add_arguments(parser)
    assert vars(parser.parse_args(arguments))


def test_every_option_exists() -> None:
    known = {setting.option for setting in TABLE}
    for name in ("judge", "show", "audit"):
        parser = argparse.ArgumentParser()
        importlib.import_module(f"pytest_saber.cli.{name}").add_arguments(parser)
        known |= {option for action in parser._actions for option in action.option_strings}
    known |= set(re.findall(r'add_argument\("(--[a-z-]+)"', BENCH.read_text(encoding="utf-8")))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))
    assert len(COMMANDS) >= 5
    assert len(named) >= 12
    assert named <= known


def test_the_example_of_agreement_is_right() -> None:
    assert "\n".join(f"      {text}" for text in table(Agreement(11, 1, 1, 27))) in PAGE
