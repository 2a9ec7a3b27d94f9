"""Where a session was to write reports that ends with a usage error, or has no task: none of a former one may stand there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_saber.pytest_glue import unknown
from pytest_saber.pytest_glue.outputs import junit_file
from pytest_saber.pytest_glue.settings import TABLE

if TYPE_CHECKING:
    from pytest_saber.reports.former import Kind

PREFIX: Final = "--saber-"
NOT_BEGUN: Final = "the session did not begin"


def replace(
    config: pytest.Config, options: argparse.Namespace, environ: Mapping[str, str], reason: str, *, ours: bool = False
) -> None:
    """Replace what former sessions left at the places that are named for reports.

    `options` are those of the command line as far as they could be read, `reason` is why there is no report of this session.
    Reports that only a file names are left to sessions with tasks unless this is one of `ours`. Raises pytest.UsageError for a
    former report that cannot be replaced.
    """
    ours = ours or any(str(argument).startswith(PREFIX) for argument in config.invocation_params.args)
    named = {kind: path for kind, path, is_typed in _places(config, options, environ) if ours or is_typed}
    if not named:
        return
    from pytest_saber.reports import former

    try:
        former.replace(named, reason)
    except OSError as error:
        raise pytest.UsageError(
            reason.removeprefix(f"{NOT_BEGUN}: "),
            f"{error.filename} is of a former session, and could not be replaced: {error.strerror}",
        ) from None


def in_words(error: BaseException) -> str:
    """That a session did not begin, and why: the first line of a usage error, the kind of anything else."""
    text = str(error.args[0]) if isinstance(error, pytest.UsageError) and error.args else ""
    what = text.strip().partition("\n")[0].rstrip(".") or f"{type(error).__name__} while pytest read its configuration"
    return f"{NOT_BEGUN}: {what}"


def unknown_option(parser: pytest.Parser, arguments: Sequence[str]) -> str:
    """Why pytest will refuse the command line; nothing where it knows each option."""
    _, others = parser.parse_known_and_unknown_args(arguments)
    if not others:
        return ""
    name = next((other for other in others if other.startswith(PREFIX)), others[0]).partition("=")[0]
    own = [setting.option for setting in TABLE] if name.startswith(PREFIX) else []
    return f"{name}: there is no such option{unknown.hint(name, own, prefix=PREFIX)}"


def _places(
    config: pytest.Config, options: argparse.Namespace, environ: Mapping[str, str]
) -> Iterator[tuple[Kind, Path, bool]]:
    """Kind and place of each report, and whether the command line or the environment names it, not only a file, by which other
    sessions of a project go too."""
    kinds: tuple[Kind, Kind] = ("json", "markdown")
    for kind in kinds:
        name = f"saber_{kind}"
        typed = getattr(options, name, None) or environ.get(name.upper())
        if typed:
            yield kind, config.invocation_params.dir / typed, True
        elif configured := config.getini(name):
            yield kind, config.rootpath / configured, False
    junit = junit_file(config, options)
    if junit is not None:
        yield "junit", junit, True
