"""What the shell's own commands do to its session: directories, aliases, variables, positional parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_saber.judge.shell.model import Command, Redirect, Word
from pytest_saber.judge.shell.outputs import Outputs, filled
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.words import Variable

_MAX_ALIASES = 1_000
_MAX_LINES = 100
_VALUED = {
    "read": frozenset({"-d", "-n", "-N", "-p", "-t", "-u", "-i"}),
    "lines": frozenset({"-d", "-n", "-O", "-s", "-u", "-c", "-C"}),
}


def apply(session: Session, command: Command, outputs: Outputs, inherited: Sequence[Redirect]) -> bool:
    """Whether the command is one of these; its effect is then in `session`. `inherited`: what a loop around it reads from."""
    event = command.event
    match command.program:
        case "cd" | "pushd":
            _change_directory(session, command)
        case "alias":
            for word in command.args:
                name, equals, text = word.text.partition("=")
                if equals and len(session.aliases) < _MAX_ALIASES:
                    session.aliases[name] = (text, event)
        case "export" | "declare" | "local" | "readonly" | "typeset":
            for word in command.args:
                name, equals, text = word.text.partition("=")
                if equals:
                    session.variables[name] = Variable(text if word.exact else None, event, word.runs, word.origins)
        case "read":
            given = outputs.given(command.redirects or inherited, command.feeds, command.cwd)
            read_into(session, command, None if given is None else given.partition("\n")[0], event)
        case "mapfile" | "readarray":
            _read_lines(session, command, outputs.given(command.redirects or inherited, command.feeds, command.cwd))
        case "set":
            words = command.words
            if "--" in words:
                set_arguments(session, command.args[words.index("--") + 1 :])
            elif words and not words[0].startswith(("-", "+")):
                set_arguments(session, command.args)
        case "shift":
            arguments = session.variables.get("@")
            if arguments is not None and arguments.items:
                set_arguments(session, tuple(word for _, word in arguments.items[1:]))
        case "printf" if command.words[:1] == ("-v",) and len(command.args) > 2:
            exact = all(word.exact for word in command.args)
            made = filled(list(command.words[2:])) if exact else None
            session.variables[command.words[1]] = Variable(made, event, *_made(command.args))
        case _:
            return False
    return True


def _made(words: Sequence[Word]) -> tuple[bool, frozenset[int]]:
    return any(word.runs for word in words), frozenset[int]().union(*(word.origins for word in words))


def _change_directory(session: Session, command: Command) -> None:
    targets = [arg for arg in command.args if not arg.text.startswith("-") or arg.text == "-"]
    target = targets[0] if targets else Word(session.home, "")
    session.cwd = session.resolve(target.text) if target.exact and target.text != "-" else None
    session.cwd_event = command.event


def _names(command: Command) -> tuple[list[str], str]:
    """The variables that `read` and `mapfile` fill, and the array that `-a` names."""
    names: list[str] = []
    array = ""
    words = iter(command.words)
    for word in words:
        if re.fullmatch(r"-[rse]*a", word):
            array = next(words, "")
        elif word in _VALUED["read" if command.program == "read" else "lines"] or re.fullmatch(r"-[rse]+[dnNptui]", word):
            next(words, "")
        elif not word.startswith("-"):
            names.append(word)
    return names, array


def _sources(command: Command) -> frozenset[int]:
    """The commands that made what is read."""
    named = (redirect.target.origins for redirect in command.redirects if redirect.target is not None)
    return frozenset(command.feeds).union(*named, *(redirect.origins for redirect in command.redirects))


def read_into(session: Session, command: Command, line: str | None, event: int) -> None:
    """`read NAME...` of a line, None where only run time knows it: a field each, the rest to the last."""
    names, array = _names(command)
    given = command.assignments.get("IFS")
    made = _sources(command)
    if line is None:
        for name in [*names, *([array] if array else [])] or ["REPLY"]:
            session.variables[name] = Variable(None, event, bool(made), made)
        return
    separator = given.text if given is not None and given.exact else None
    if array:
        parts = _fields(line, separator, -1)
        items = tuple((str(place), Word(part, part, origins=made)) for place, part in enumerate(parts[:_MAX_LINES]))
        session.variables[array] = Variable(parts[0] if parts else "", event, bool(made), made, items)
        return
    parts = _fields(line, separator, len(names) - 1) if names else [line]
    for place, name in enumerate(names or ["REPLY"]):
        session.variables[name] = Variable(parts[place] if place < len(parts) else "", event, bool(made), made)


def _fields(line: str, separator: str | None, most: int) -> list[str]:
    if separator is None or not separator.strip():
        return line.strip().split(None, most) if separator is None else [line]
    return re.split(f"[{re.escape(separator)}]", line, maxsplit=max(most, 0)) if most else [line]


def _read_lines(session: Session, command: Command, text: str | None) -> None:
    names, _ = _names(command)
    made = _sources(command)
    items: tuple[tuple[str, Word], ...] = ()
    if text is not None:
        lines = text.splitlines()[:_MAX_LINES]
        items = tuple((str(place), Word(line, line, origins=made)) for place, line in enumerate(lines))
    for name in names or ["MAPFILE"]:
        session.variables[name] = Variable(items[0][1].text if items else None, command.event, bool(made), made, items)


def set_arguments(session: Session, arguments: Sequence[Word], fed: frozenset[int] = frozenset()) -> None:
    """`$1` and so on, and `$@`; each keeps the latest event that its word relies on. `fed`: commands that name more."""
    given = [Variable(w.text if w.exact else None, max(w.depends, default=0), w.runs, w.origins) for w in arguments[:20]]
    given += [Variable(None, 0, True, fed)] * (3 if fed else 0)
    for position in range(len(given) + 1, 21):
        session.variables.pop(str(position), None)
    session.variables.update({str(position): variable for position, variable in enumerate(given, 1)})
    text = None if fed or not all(word.exact for word in arguments) else " ".join(word.text for word in arguments)
    origins = fed.union(*(word.origins for word in arguments))
    items = () if fed else tuple((str(position), word) for position, word in enumerate(arguments[:_MAX_LINES], 1))
    session.variables["@"] = Variable(text, 0, any(variable.runs for variable in given), origins, items)
