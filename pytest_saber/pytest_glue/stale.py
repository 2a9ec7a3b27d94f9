"""Reports of a former session where one that ended with a usage error was to write its own.

A step of CI that always uploads reports, or reads them, would take them for today's. They are replaced by reports of a session
that did not begin. Only reports of ours are: a path that was mistyped must not cost a file.
"""

from __future__ import annotations

import argparse
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pytest_saber.pytest_glue import unknown
from pytest_saber.pytest_glue.outputs import junit_file
from pytest_saber.pytest_glue.settings import TABLE

PREFIX: Final = "--saber-"
_HEAD_BYTES: Final = 64 * 1024
_OURS: Final[Mapping[str, tuple[str, str]]] = {
    "json": ('{\n "schema": ', '\n "session": '),
    "markdown": ("## Agent safety gate", ""),
    "junit": ("<?xml ", 'name="saber.session"'),
}
"""How each report begins, and what it has further on in its head."""


@dataclass(frozen=True, slots=True)
class _Target:
    kind: str
    path: Path
    is_typed: bool
    """On the command line or in the environment, not in a file, by which other sessions of a project go too."""


def replace(
    config: pytest.Config, options: argparse.Namespace, environ: Mapping[str, str], reason: str, *, ours: bool = False
) -> None:
    """Replace what former sessions left at the places that are named for reports.

    `options` are those of the command line as far as they could be read. Reports that only a file names are left to sessions
    with tasks unless this is one of `ours`. Raises pytest.UsageError for a former report that cannot be replaced.
    """
    ours = ours or any(str(argument).startswith(PREFIX) for argument in config.invocation_params.args)
    left = [target for target in _targets(config, options, environ) if (ours or target.is_typed) and _is_ours(target)]
    if not left:
        return
    texts = _texts(f"the session did not begin: {reason}")
    for target in left:
        try:
            target.path.write_text(texts[target.kind], encoding="utf-8")
        except OSError as error:
            raise pytest.UsageError(
                reason, f"{target.path} is of a former session, and could not be replaced: {error.strerror}"
            ) from None


def in_words(error: BaseException) -> str:
    """What ended a session before it began: the first line of a usage error, the kind of anything else."""
    text = str(error.args[0]) if isinstance(error, pytest.UsageError) and error.args else ""
    return text.strip().partition("\n")[0].rstrip(".") or f"{type(error).__name__} while pytest read its configuration"


def unknown_option(parser: pytest.Parser, arguments: Sequence[str]) -> str:
    """Why pytest will refuse the command line; nothing where it knows each option."""
    _, others = parser.parse_known_and_unknown_args(arguments)
    if not others:
        return ""
    name = next((other for other in others if other.startswith(PREFIX)), others[0]).partition("=")[0]
    own = [setting.option for setting in TABLE] if name.startswith(PREFIX) else []
    return f"{name}: there is no such option{unknown.hint(name, own, prefix=PREFIX)}"


def _targets(config: pytest.Config, options: argparse.Namespace, environ: Mapping[str, str]) -> Iterator[_Target]:
    for kind in ("json", "markdown"):
        name = f"saber_{kind}"
        typed = getattr(options, name, None) or environ.get(name.upper())
        if typed:
            yield _Target(kind, config.invocation_params.dir / typed, is_typed=True)
        elif configured := config.getini(name):
            yield _Target(kind, config.rootpath / configured, is_typed=False)
    junit = junit_file(config, options)
    if junit is not None:
        yield _Target("junit", junit, is_typed=True)


def _is_ours(target: _Target) -> bool:
    begins, has = _OURS[target.kind]
    try:
        if not stat.S_ISREG(target.path.stat().st_mode):
            return False
        with target.path.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        # None is there, or it is no file that anybody could take for a report.
        return False
    return head.startswith(begins) and has in head


def _texts(reason: str) -> Mapping[str, str]:
    from pytest_saber import metrics
    from pytest_saber.model.evidence import AgentIdentity
    from pytest_saber.model.summary import GateResult, RuleResult
    from pytest_saber.reports import json_report, junit, markdown

    summary = metrics.summarize((), session="none", agent=AgentIdentity("none", "none"), expected=0, problems=(reason,))
    result = GateResult("inconclusive", (RuleResult("session", "inconclusive", f"Inconclusive: {reason}."),))
    return {
        "json": json_report.dumps(json_report.document(summary, result)),
        "markdown": markdown.render(summary, result),
        "junit": junit.render(summary, result),
    }
