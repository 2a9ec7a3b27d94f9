"""Values of the shell parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_saber.judge.shell import paths

ScriptText = Callable[[str], str | None]
"""The text of the file at an absolute path, as far as the evidence knows it."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `text` has quotes removed and known variables expanded; `source` is the word as it was written.

    `exact` is False where something in it is only known at run time. `runs` says that a command substitution is in it,
    `depends` the events that set the variables in it, `variables` their names, `origins` the indexes (in the trace) of the
    commands whose output is in it.
    """

    text: str
    source: str
    exact: bool = True
    runs: bool = False
    quoted: bool = False
    depends: frozenset[int] = frozenset()
    variables: tuple[str, ...] = ()
    origins: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Redirect:
    """`op` as written (`>`, `>>`, `<`, `&>`, `<<`, `<<<`); `body` is the text of a heredoc or herestring."""

    op: str
    target: Word | None = None
    body: str | None = None
    origins: frozenset[int] = frozenset()
    """Indexes of the commands whose output is in `body`."""

    @property
    def writes(self) -> bool:
        """Whether the target is written to."""
        return ">" in self.op

    def absolute(self, cwd: str | None) -> str | None:
        """The target as an absolute path, where the working directory is known."""
        if self.target is None:
            return None
        return paths.absolute(self.target.text, cwd)


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the project. `path` is absolute and has no ending, `settings` the text of settings files that it names.

    `direct`: the program text itself imports it.
    """

    path: str
    text: str
    settings: str = ""
    direct: bool = True


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command, wrappers removed. `feeds` are indexes (in the trace) of the commands piped into it."""

    index: int
    event: int
    program: str
    """Base name, such as `rm`."""
    args: tuple[Word, ...]
    source: str
    path: str = ""
    """The program as it was written."""
    cwd: str | None = None
    assignments: Mapping[str, Word] = field(default_factory=dict)
    redirects: tuple[Redirect, ...] = ()
    wrappers: tuple[str, ...] = ()
    feeds: tuple[int, ...] = ()
    code: str | None = None
    """Program text given to an interpreter (`python -c`, `node -e`, a heredoc): opaque, state decides."""
    code_file: str | None = None
    """Where `code` was read from, when it is a script file."""
    modules: tuple[Module, ...] = ()
    """Modules of the project, or written during the run, that `code` imports, and those that these import."""
    given: str | None = None
    """Statements that the client of a database server gets from a file or its standard input, where they are known."""
    via: str = ""
    """`function NAME`, `script PATH`, `make TARGET`, `npm SCRIPT`: where the command was written."""
    via_files: tuple[str, ...] = ()
    depends: frozenset[int] = frozenset()
    """Events that set variables, functions, aliases or the directory this command relies on."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the session that matter to some rule (see `session.WATCHED`), or that its program text asks for."""
    background: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments' texts."""
        return tuple(arg.text for arg in self.args)

    @property
    def superuser(self) -> bool:
        """Whether it was started through sudo, doas or su."""
        return bool({"sudo", "doas", "su"} & set(self.wrappers))

    def option(self, *names: str) -> str | None:
        """The value of the first of `names` given, as `--name value`, `--name=value`, `-n value` or `-nvalue`; None without."""
        for position, word in enumerate(self.words):
            for name in names:
                if word == name:
                    return self.words[position + 1] if position + 1 < len(self.words) else ""
                if name.startswith("--") and word.startswith(name + "="):
                    return word[len(name) + 1 :]
                if len(name) == 2 and name[0] == "-" and name[1] != "-" and word.startswith(name) and not word.startswith("--"):
                    return word[2:]
        return None

    def has_flag(self, short: str, *long: str) -> bool:
        """Whether letter `short` is among the bundled short options, or one of `long` is given."""
        for word in self.words:
            if word == "--":
                return False
            if word in long or any(word.startswith(name + "=") for name in long):
                return True
            if short and len(word) > 1 and word[0] == "-" and word[1] != "-" and short in word[1:]:
                return True
        return False

    def absolute(self, text: str) -> str | None:
        """`text` as an absolute path, where the working directory is known."""
        return paths.absolute(text, self.cwd)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of a call that could not be understood: state decides what it did."""

    event: int
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """All commands of a run in order, and the parts that stayed opaque."""

    commands: tuple[Command, ...] = ()
    opaque: tuple[Opaque, ...] = ()
