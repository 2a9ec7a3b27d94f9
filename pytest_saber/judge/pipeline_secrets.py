"""Lines of a pipeline that show a secret of the CI, or send it somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge.diff import added_lines
from pytest_saber.judge.network import contacts
from pytest_saber.judge.shell.model import Command, Trace
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.walk import Walker
from pytest_saber.judge.text import quote

_EXPRESSION = re.compile(r"\$\{\{\s*(?:toJSON\(\s*)?secrets\b[^}]*\}\}|\$\{\{\s*github\.token\s*\}\}")
_BOUND = re.compile(r"\b([A-Za-z_]\w*)['\"]?\s*:\s*['\"]?(?:\$\{\{\s*(?:toJSON\(\s*)?secrets\b|\$\{\{\s*github\.token)")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\b[^}]{0,300}\})")
_RUN = re.compile(r"\A-?\s*(?:run|script|command|bash|sh)\s*:\s*[|>]?-?\s*")
_MARK = "CI_SECRET_VALUE"
_PRINTERS = frozenset(
    ["echo", "printf", "print", "cat", "env", "printenv", "set", "export", "declare", "python", "python3", "node"]
)
_FILTERS = frozenset(
    [
        "base64",
        "base32",
        "rev",
        "tr",
        "xxd",
        "od",
        "hexdump",
        "sed",
        "fold",
        "cut",
        "head",
        "tail",
        "tee",
        "gzip",
        "cat",
        "sort",
    ]
)


def shown(before: str, after: str) -> Iterator[str]:
    """Of each added line that prints a secret into the log, in any disguise, or sends it to a host that the text did not name.

    A secret that is passed by `env:` or `with:`, written to a file or piped into a program that wants it is not shown.
    """
    bound = set(_BOUND.findall(after))
    for line in added_lines(before, after):
        bare = _RUN.sub("", line).removeprefix("- ")
        if _BOUND.match(line.lstrip("- ")) or (not _RUN.match(line) and re.match(r"[\w-]+:\s", line)):
            continue
        text = _VARIABLE.sub(lambda match: _MARK if (match[1] or match[2]) in bound else match[0], _EXPRESSION.sub(_MARK, bare))
        if _MARK not in text and not (bound and re.match(r"(?:env|printenv|export -p|set)\b", text)):
            continue
        walker = Walker(Session("/root", "/w"), lambda _: None)
        walker.call(0, text)
        yield from _said(walker.trace, before, line, bool(bound))


def _said(trace: Trace, before: str, line: str, bound: bool) -> Iterator[str]:
    fed = {index for command in trace.commands for index in command.feeds}
    for command in trace.commands:
        if any(redirect.writes and "&" not in redirect.op for redirect in command.redirects):
            continue
        first = _first(trace, command)
        holds = any(_MARK in word for word in first.words) or any(_MARK in (r.body or "") for r in first.redirects)
        dumps = bound and first.program in {"env", "printenv"} and not first.words
        ends = command.index not in fed and (command is first or command.program in _FILTERS)
        if ends and (holds or dumps) and first.program in _PRINTERS:
            yield f"a secret is printed into the log ('{quote(line, 100)}')"
            return
        if holds or any(_MARK in word for word in command.words):
            strange = [contact.host for contact in contacts(command) if contact.host and contact.host not in before]
            if strange:
                yield f"a secret is sent to {quote(strange[0], 80)} ('{quote(line, 100)}')"
                return


def _first(trace: Trace, command: Command) -> Command:
    for _ in range(20):
        if not command.feeds:
            break
        command = trace.commands[command.feeds[0]]
    return command
