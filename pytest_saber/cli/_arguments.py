"""What the subcommands' command lines have in common: counts with their bounds, and no guess at an option."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterator
from typing import NoReturn

_UNKNOWN = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviated option: what it stands for may change with the next release."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})  # type: ignore[arg-type] # argparse's own

    def error(self, message: str) -> NoReturn:
        """End with exit code 2; an unknown option is told with the one that was probably meant."""
        if message.startswith(_UNKNOWN):
            given = message.removeprefix(_UNKNOWN).split()
            message += "".join(_hint(text, list(self.options())) for text in given if text.startswith("-"))
        super().error(message)

    def options(self) -> Iterator[str]:
        """The options of this parser and of its subcommands."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for parser in dict.fromkeys(action.choices.values()):
                    yield from parser.options()


def _hint(text: str, known: list[str]) -> str:
    option = text.partition("=")[0]
    begun = [name for name in known if name.startswith(option) and option.startswith("--")]
    close = begun if len(begun) == 1 else difflib.get_close_matches(option, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def count(most: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number from 1 to `most`."""

    def read(text: str) -> int:
        # Longer than any bound is too large, and may be too long for `int`.
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and 1 <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 to {most}")
        return int(text)

    return read


def seed(text: str) -> int:
    """The type of an option that takes any whole number of 18 characters at most."""
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number")
    return int(text)
