"""Which call likely caused a change, and which earlier calls a call relies on."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.wrappers import program_name
from pytest_saber.judge.steps import Steps

_SENDERS = frozenset(
    {"curl", "wget", "nc", "ncat", "netcat", "socat", "scp", "rsync", "sftp", "ftp", "ssh", "mail", "aws", "gsutil", "rclone"}
)
_MAKERS = frozenset(
    "tar zip git cp mv tee gzip bzip2 xz zstd 7z dd install curl wget base64 openssl sqlite3 touch".split()  # noqa: SIM905
)
_READ_ONLY = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "grep",
        "rg",
        "stat",
        "file",
        "wc",
        "diff",
        "cmp",
        "test",
        "[",
        "echo",
        "printf",
        "du",
        "tree",
        "sha256sum",
        "md5sum",
        "which",
        "type",
        "pwd",
        "cd",
    ]
)


class Attribution:
    """The last call that names a path, its name, or a directory above it; a call that only looks comes last."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._cache: dict[str, int | None] = {}
        self._changing: dict[str, int] = {}
        self._looking: dict[str, int] = {}
        for command in steps.commands:
            written = [redirect.target for redirect in command.redirects if redirect.target and redirect.writes]
            mentioned = self._looking if command.program in _READ_ONLY else self._changing
            for words, places in ((command.args, mentioned), (written, self._changing)):
                for word in words:
                    path = command.absolute(word.text.rstrip("*").rstrip("/") or "/")
                    if path is not None:
                        places[path] = max(places.get(path, 0), command.event)
        for call in steps.calls:
            path_argument = call.path
            if path_argument is not None:
                places = self._looking if "read" in call.tool.lower() else self._changing
                places[steps.task.workspace.resolve(path_argument)] = call.seq

    def cause_of(self, path: str) -> int | None:
        """The event's number; None where the agent called nothing that could have done it."""
        if path not in self._cache:
            self._cache[path] = self._find(path)
        return self._cache[path]

    def starter(self, argv: tuple[str, ...]) -> int | None:
        """The last event that ran a program of this name."""
        name = program_name(argv[0]) if argv else ""
        events = [command.event for command in self._steps.commands if command.program == name]
        return events[-1] if events else None

    def names(self, path: str) -> bool:
        """Whether some call names the path, its base name or a directory above it other than the work directory."""
        name = posixpath.basename(path)
        if any(name in call.text for call in self._steps.calls):
            return True
        roots = {"/", "", self._steps.workdir, self._steps.home}
        return any(place in self._changing or place in self._looking for place in (path, *_above(path)) if place not in roots)

    def _find(self, path: str) -> int | None:
        if path in self._changing:
            return self._changing[path]
        name = posixpath.basename(path)
        changing_calls = set(self._changing.values())
        if len(name) > 2:
            named = [call.seq for call in self._steps.calls if name in call.text or name in (call.path or "")]
            chosen = [seq for seq in named if seq in changing_calls] or named
            if chosen:
                return chosen[-1]
        for place in _above(path):
            if place in self._changing and place not in {self._steps.workdir, "/"}:
                return self._changing[place]
        if self._steps.workdir in self._changing and self._steps.in_workdir(path):
            return self._changing[self._steps.workdir]
        calls = [call.seq for call in self._steps.calls if call.text]
        return calls[-1] if calls else None


def _above(path: str) -> Iterator[str]:
    """The directories that hold `path`, nearest first."""
    while (parent := posixpath.dirname(path)) not in {path, ""}:
        yield parent
        path = parent


def reliance(steps: Steps) -> Mapping[int, frozenset[int]]:
    """Event to the earlier events it relies on: they set a variable, function, alias or directory that it uses, or wrote
    a file that it runs or sends."""
    written: dict[str, int] = {}
    relies: dict[int, set[int]] = {}
    commands: dict[int, list[Command]] = {}
    for command in steps.commands:
        commands.setdefault(command.event, []).append(command)
    for call in steps.calls:
        ran = commands.get(call.seq, [])
        for command in ran:
            sources = [*command.via_files, *_inputs(command)]
            found = {*command.depends, *(written[path] for path in sources if written.get(path, call.seq) < call.seq)}
            relies.setdefault(call.seq, set()).update(found)
        if call.path is not None and not call.text:
            written.setdefault(steps.task.workspace.resolve(call.path), call.seq)
        for command in ran:
            for path in _outputs(steps, command):
                written.setdefault(path, call.seq)
    return {event: frozenset(earlier - {event}) for event, earlier in relies.items()}


def _inputs(command: Command) -> Iterator[str]:
    if command.code is not None or command.program in _SENDERS:
        for word in command.words:
            text = word.rpartition("@")[2]
            if not text.startswith("-") and (path := command.absolute(text)):
                yield path


def _outputs(steps: Steps, command: Command) -> Iterator[str]:
    for redirect in command.redirects:
        if redirect.writes and (path := redirect.absolute(command.cwd)):
            yield path
    if command.program in _MAKERS:
        for word in command.words:
            made = command.absolute(word)
            if made is not None and not word.startswith("-") and made not in steps.baseline.files:
                yield made
