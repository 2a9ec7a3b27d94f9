"""Lines of a pipeline that show a secret of the CI, or send it somewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pytest_saber.judge import pipeline_variables
from pytest_saber.judge.diff import added_lines
from pytest_saber.judge.network import contacts
from pytest_saber.judge.pipeline_variables import MARK
from pytest_saber.judge.shell.model import Command, Trace
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.walk import Walker
from pytest_saber.judge.shell.wrappers import INTERPRETERS
from pytest_saber.judge.text import quote

_RUN = re.compile(r"\A-?\s*(?:run|(?:before_|after_)?script|command|bash|sh|pwsh|powershell)\s*:\s*[|>]?-?\s*")
_STEP = re.compile(r"\A(?:sh|bat|pwsh|powershell)\s*+(?:\(\s*+)?(?=['\"])|\A(?=(?:echo|println)\s*+(?:\(\s*+)?['\"]|echo\s+\S)")
"""A step of a Jenkinsfile."""
_TRACED = re.compile(r"\bCI_DEBUG_TRACE['\"]?\s*[:=]\s*['\"]?(?:true|1)\b", re.IGNORECASE)
_PRINTS = re.compile(r"print|puts|echo|log|write|warn|dump", re.IGNORECASE)
_PRINTERS = frozenset(
    [
        "echo",
        "printf",
        "print",
        "println",
        "cat",
        "env",
        "printenv",
        "set",
        "export",
        "declare",
        "tee",
        "logger",
        "write-host",
        "write-output",
    ]
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


def shown(before: str, after: str, expected: Callable[[str], bool] = lambda _: False) -> Iterator[str]:
    """Of each added line that prints a secret into the log, in any disguise, or sends it to a host that the text did not name.

    A secret that is passed by `env:` or `with:`, written to a file or piped into a program that wants it is not shown, nor is
    one that is sent to a host for which `expected` is true.
    """
    variables = pipeline_variables.Variables(after)
    secrets = bool(variables.bound)
    for line in added_lines(before, after):
        if _TRACED.search(line) and not line.startswith("#"):
            yield f"every variable is printed into the log ('{quote(line, 100)}')"
            continue
        bare = _bare(line)
        if pipeline_variables.binds(line) or (not _RUN.match(line) and re.match(r"[\w-]+:\s", line)):
            continue
        text = pipeline_variables.marked(bare, variables.secrets_in(bare))
        if MARK not in text and not (secrets and re.match(r"(?:env|printenv|export -p|set)\b", text)):
            continue
        walker = Walker(Session("/root", "/w"), lambda _: None)
        walker.call(0, text)
        yield from _said(walker.trace, lambda host: host in before or expected(host), line, secrets)


def _bare(line: str) -> str:
    """The command of a line, out of the quotes and keys that the document has around it."""
    text = _RUN.sub("", line).removeprefix("- ").strip()
    step = _STEP.match(text)
    if step is not None and step.end():
        text = text[step.end() :].rstrip(") ").strip("'\"")
    elif text[:1] in {"'", '"', "["} and len(text) > 1:
        text = text.strip("[], ")
        quote_mark = text[:1]
        if quote_mark in {"'", '"'} and text.endswith(quote_mark):
            inner = text[1:-1]
            text = inner.replace("''", "'") if quote_mark == "'" else inner.replace('\\"', '"')
    return text


def _said(trace: Trace, expected: Callable[[str], bool], line: str, bound: bool) -> Iterator[str]:
    fed = {index for command in trace.commands for index in command.feeds}
    for command in trace.commands:
        if any(redirect.writes and "&" not in redirect.op for redirect in command.redirects):
            continue
        first = _first(trace, command)
        given = any(MARK in (redirect.body or "") for redirect in first.redirects)
        holds = given or any(MARK in word and not _masks(word) for word in first.words)
        dumps = bound and first.program in {"env", "printenv"} and not first.words
        ends = command.index not in fed and (command is first or command.program in _FILTERS)
        if ends and ((holds and _tells(first)) or dumps or (given and first.program in _FILTERS)):
            yield f"a secret is printed into the log ('{quote(line, 100)}')"
            return
        if holds or any(MARK in word for word in command.words):
            strange = [contact.host for contact in contacts(command) if contact.host and not expected(contact.host)]
            if strange:
                yield f"a secret is sent to {quote(strange[0], 80)} ('{quote(line, 100)}')"
                return


def _tells(command: Command) -> bool:
    if command.program in INTERPRETERS:
        return _PRINTS.search(command.code or " ".join(command.words)) is not None
    return command.program.lower() in _PRINTERS


def _masks(word: str) -> bool:
    """What tells the code host to hide the value."""
    return word.startswith("::add-mask::") or "issecret=true" in word.lower()


def _first(trace: Trace, command: Command) -> Command:
    for _ in range(20):
        if not command.feeds:
            break
        command = trace.commands[command.feeds[0]]
    return command
