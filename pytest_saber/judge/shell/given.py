"""What a command is given beside its words: program text with its modules and environment, statements for a server."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Mapping, Sequence

from pytest_saber.judge.shell import modules, program_text, wrappers
from pytest_saber.judge.shell.files import Files
from pytest_saber.judge.shell.model import Command, Module, Redirect, Word
from pytest_saber.judge.shell.outputs import Outputs
from pytest_saber.judge.shell.session import Session

_SHOW_FILES = frozenset(["cat", "grep", "egrep", "sed", "awk", "xargs", "cut"])
_MAX_LOOKED_UP = 20
_MAX_TEXT = 20_000_000
"""Characters of program text and modules of a run whose imports are looked up."""


class Given:
    """Looks at the session and the files as they are when the command is walked."""

    def __init__(self, session: Session, files: Files, outputs: Outputs, commands: Sequence[Command]) -> None:
        self._session = session
        self._files = files
        self._outputs = outputs
        self._commands = commands
        self._left = _MAX_TEXT

    def code(
        self, program: str, args: tuple[Word, ...], redirects: tuple[Redirect, ...], feeds: tuple[int, ...]
    ) -> tuple[str | None, str | None]:
        """The program text that an interpreter is given, and the file it stands in."""
        if program not in wrappers.INTERPRETERS or wrappers.only_parses(program, args):
            return None, None
        code = wrappers.inline_code(program, args)
        if (
            code is None
            and ("-" in [arg.text for arg in args] or not [arg for arg in args if not arg.text.startswith("-")])
            and program not in {"awk", "gawk", "mawk"}
        ):
            code = self._outputs.given(redirects, feeds, self._session.cwd)
        if code is None and args and program not in {"awk", "gawk", "mawk"}:
            files = [arg.text for arg in args if not arg.text.startswith("-")]
            if args[0].text == "-m" and len(args) > 1:
                name = args[1].text.replace(".", "/")
                files = [f"{folder}{name}{ending}" for folder in ("", "src/") for ending in (".py", "/__main__.py")]
            paths = [path for name in files[: 4 if args[0].text == "-m" else 1] if (path := self._session.resolve(name))]
            found = next((path for path in paths if self._files.text(path) is not None), paths[0] if paths else None)
            return (self._files.text(found), found) if found else (None, None)
        return code, None

    def statements(
        self, program: str, args: tuple[Word, ...], redirects: tuple[Redirect, ...], feeds: tuple[int, ...]
    ) -> str | None:
        """What the client of a database server gets from a file or its standard input."""
        if program not in wrappers.SQL_CLIENTS | wrappers.KEY_VALUE_CLIENTS | wrappers.PIPES_TO_SERVERS:
            return None
        for option, value in itertools.pairwise(args):
            if option.text in {"-f", "--file", "-i", "--eval"} and value.exact and (path := self._session.resolve(value.text)):
                return self._files.text(path)
        return self._outputs.given(redirects, feeds, self._session.cwd)

    def imported(
        self, program: str, code: tuple[str | None, str | None], assignments: Mapping[str, Word], words: tuple[Word, ...]
    ) -> tuple[Module, ...]:
        """The modules of the project that program text imports from beside it or from the working directory."""
        text, file = code
        cwd = self._session.cwd
        if text is None or len(text) > program_text.MAX_CODE or self._left < 0:
            return ()
        named = assignments["PYTHONPATH"].text.split(":") if "PYTHONPATH" in assignments else []
        named = [path for place in named[:5] if (path := self._session.resolve(place)) is not None]
        own = [cwd, f"{cwd}/src"] if cwd is not None else []
        folders = [*([posixpath.dirname(file)] if file else own[:1]), *named, *own]
        if not folders:
            return ()
        given = tuple(word.text for word in words[1:])
        found = modules.collect(self._files.text, program, text, list(dict.fromkeys(folders)), given)
        self._left -= len(text) + sum(len(module.text) for module in found)
        return found

    def environment(
        self, code: str, imported: tuple[Module, ...], words: tuple[Word, ...], assignments: Mapping[str, Word]
    ) -> Mapping[str, str]:
        """What the environment tells program text and its modules."""
        given = [word.text.partition("=")[2] for word in words if word.text.startswith("--env-file=")]
        given += [value.text for option, value in itertools.pairwise(words) if option.text == "--env-file"]
        place = self._session.resolve(given[0] if given else ".env")
        dotenv = self._files.text(place) if place is not None else None
        texts = (code, *(module.text for module in imported))
        found = modules.environment(texts, self._session.variables, dotenv, is_read=bool(given))
        return {**self._looked_up(assignments), **found}

    def _looked_up(self, assignments: Mapping[str, Word]) -> Mapping[str, str]:
        """`NAME=$(grep NAME .env | cut -d= -f2)`: what the file says under that name."""
        sources = {name: word.origins for name, word in assignments.items() if not word.exact}
        sources |= {name: v.origins for name, v in self._session.variables.items() if v.value is None and v.origins}
        found: dict[str, str] = {}
        for name, origins in itertools.islice(sources.items(), _MAX_LOOKED_UP):
            for index in sorted(origins):
                found |= {key: value for key, value in self.shown(self._commands[index]) if key == name}
        return found

    def shown(self, command: Command) -> list[tuple[str, str]]:
        """The lines `NAME=value` of a file that the command prints from."""
        path = command.absolute(command.words[-1]) if command.words and command.program in _SHOW_FILES else None
        return modules.assigned(self._files.text(path) or "") if path is not None else []
