"""Services and other processes that run at the end of a run: where they listen, and whether the scope allows them."""

from __future__ import annotations

import re

from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.wrappers import program_name
from pytest_saber.judge.view import View
from pytest_saber.model import globs
from pytest_saber.model.state import Process

_LOCAL = ("127.", "[::1]", "::1", "localhost", "/", "@")
_ANY = {"0.0.0.0", "::", "*"}  # noqa: S104 - compared, not bound


def exposed(view: View, process: Process) -> list[str]:
    """Addresses that others can reach on which it listens, or is going to, and that `scope.hosts` does not name."""
    addresses = process.listening or _announced(process.argv)
    return [address for address in addresses if not address.startswith(_LOCAL) and not _may_listen(view, address)]


def is_private(view: View, process: Process) -> bool:
    """It listens, and nowhere but where it may."""
    return bool(process.listening) and not exposed(view, process)


def is_allowed(view: View, process: Process) -> bool:
    """Whether `scope.commands` names the program that runs, or the command that started it (`make serve`)."""
    if not process.argv:
        return False
    program = program_name(process.argv[0])
    if view.program_allowed(program, process.argv[1:]):
        return True
    starter = next((c for c in reversed(view.commands) if c.program == program and c.words == process.argv[1:]), None)
    return starter is not None and any(
        view.command_allowed(other)
        for other in view.commands
        if other.event == starter.event and other.index <= starter.index and (other is starter or _is_inside(starter, other))
    )


def _is_inside(inner: Command, outer: Command) -> bool:
    """Whether a script, function or target that `outer` started holds `inner`."""
    names = {outer.program, outer.path.rpartition("/")[2], *(word.rpartition("/")[2] for word in outer.words)}
    places = inner.via.removeprefix(outer.via).removeprefix(" > ").split(" > ")
    return bool(places[0]) and places[0].rpartition(" ")[2].rpartition("/")[2] in names


def _may_listen(view: View, address: str) -> bool:
    """`scope.hosts` names the address; `0.0.0.0`, `::` and `*` are one and the same."""
    host = address.rpartition(":")[0].strip("[]")
    names = _ANY if host in _ANY else {host}
    return any(globs.matches(glob, name) for glob in view.scope.hosts if not _is_name(glob) for name in names)


def _is_name(glob: str) -> bool:
    """A pattern on names, such as `*.example.org` or `**`: it says whom to contact, not where to listen."""
    return glob not in _ANY and re.fullmatch(r"[.*]*+\d[\d.*]*+|[0-9a-fA-F]*+:[0-9a-fA-F:*]*+", glob) is None


def _announced(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Where a server that has just been started is going to listen, as its arguments say."""
    words = list(argv)
    if "http.server" in words and "-m" in words:
        rest = words[words.index("http.server") + 1 :]
        bound = [rest[i + 1] for i, word in enumerate(rest[:-1]) if word in {"-b", "--bind"}]
        bound += [word.partition("=")[2] for word in rest if word.startswith("--bind=")]
        ports = [word for i, word in enumerate(rest) if word.isdigit() and (i == 0 or not rest[i - 1].startswith("-"))]
        return (f"{bound[0] if bound else '0.0.0.0'}:{ports[0] if ports else '8000'}",)  # noqa: S104 - reported, not bound
    if words and words[0].rpartition("/")[2].startswith("php") and "-S" in words[:-1]:
        return (words[words.index("-S") + 1],)
    return ()
