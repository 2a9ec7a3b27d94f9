"""What one simple command does: to the session, and by the commands that it runs in turn."""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_saber.judge.shell import own_commands, program_text, projects, wrappers
from pytest_saber.judge.shell.files import Files
from pytest_saber.judge.shell.given import Given
from pytest_saber.judge.shell.literals import UNKNOWN
from pytest_saber.judge.shell.model import Command, Opaque, Redirect, ScriptText, Trace, Word
from pytest_saber.judge.shell.outputs import Outputs
from pytest_saber.judge.shell.session import WATCHED, Session
from pytest_saber.judge.shell.words import Variable

MAX_COMMANDS = 8_000
MAX_NESTING = 60
MAX_SCRIPTS = 4


class Runner(ABC):
    """Records commands and follows wrappers, functions, aliases, scripts and project targets into what they run.

    `script_text` gives the text of scripts and project files, `is_as_found` tells programs of the project that the agent
    left alone: what those run is theirs.
    """

    def __init__(self, session: Session, script_text: ScriptText, is_as_found: Callable[[str], bool]) -> None:
        self.session = session
        self._files = Files(script_text)
        self._is_as_found = is_as_found
        self._commands: list[Command] = []
        self._opaque: list[Opaque] = []
        self._outputs = Outputs(self._commands, self._files.text)
        self._given = Given(session, self._files, self._outputs, self._commands)
        self._event = 0
        self._via: tuple[str, ...] = ()
        self._via_files: tuple[str, ...] = ()
        self._calling: tuple[str, ...] = ()
        self._depends: frozenset[int] = frozenset()
        self._background = False
        self._maybe = 0
        """How many branches, loops and right sides the walk is in: what stands there may not run."""
        self._input: tuple[Redirect, ...] = ()
        """Where the loop or group that the walk is in reads from."""
        self._ended = False
        """Whether the shell has ended for certain, so that the rest of its text does not run."""

    @property
    def trace(self) -> Trace:
        """What has been collected so far."""
        return Trace(tuple(self._commands), tuple(self._opaque))

    @abstractmethod
    def _parse(self, text: str, depth: int) -> list[int]:
        """Walk `text`; returns the indexes of its commands."""

    def _mark(self, reason: str, text: str) -> None:
        if len(self._opaque) < MAX_COMMANDS:
            self._opaque.append(Opaque(self._event, reason, text[:2_000]))

    def _save(self) -> tuple[str | None, int, dict[str, Variable]]:
        return self.session.cwd, self.session.cwd_event, dict(self.session.variables)

    def _restore(self, saved: tuple[str | None, int, dict[str, Variable]]) -> None:
        self.session.cwd, self.session.cwd_event, self.session.variables = saved

    def _command(
        self,
        words: tuple[Word, ...],
        assignments: dict[str, Word],
        redirects: tuple[Redirect, ...],
        source: str,
        feeds: tuple[int, ...],
        depth: int,
    ) -> list[int]:
        if words and words[0].source in self.session.aliases and depth < MAX_NESTING:
            text, event = self.session.aliases[words[0].source]
            name = words[0].source
            if name not in self._calling:
                with_rest = " ".join([text, *(word.source for word in words[1:])])
                return self._nested(with_rest, f"alias {name}", depth, event, name)
        stripped = wrappers.strip(words)
        assignments.update(stripped.assignments)
        if stripped.script is not None:
            if stripped.script.exact:
                return self._nested(stripped.script.text, "", depth, 0, wrappers=stripped.wrappers)
            self._mark("text only known at run time", stripped.script.text)
            return []
        if not stripped.words:
            return [
                self._add(
                    "xargs" if "xargs" in stripped.wrappers else "",
                    (),
                    source,
                    redirects=redirects,
                    assignments=assignments,
                    feeds=feeds,
                )
            ]
        if stripped.names is not None:
            redirects = (*redirects, self._input_from("<", stripped.names))
        head, args = stripped.words[0], stripped.words[1:]
        program = wrappers.program_name(head.text)
        saved = self.session.cwd
        if stripped.directory is not None:
            self.session.cwd = self.session.resolve(stripped.directory.text)
        index = self._add(
            program,
            args,
            source,
            path=head.text,
            redirects=redirects,
            assignments=assignments,
            wrappers=stripped.wrappers,
            feeds=feeds,
            code=self._given.code(program, args, redirects, feeds),
            words=(head, *args),
        )
        before = self.session.give(assignments, self._event)
        produced = [index, *self._effects(index, depth)]
        self.session.take_back(before)
        if stripped.directory is not None:
            self.session.cwd = saved
        return produced

    def _add(
        self,
        program: str,
        args: tuple[Word, ...],
        source: str,
        *,
        path: str = "",
        redirects: tuple[Redirect, ...] = (),
        assignments: Mapping[str, Word] | None = None,
        wrappers: tuple[str, ...] = (),
        feeds: tuple[int, ...] = (),
        code: tuple[str | None, str | None] = (None, None),
        words: tuple[Word, ...] = (),
    ) -> int:
        depends = self._depends.union(*(word.depends for word in words), *(r.target.depends for r in redirects if r.target))
        relative = any(not word.text.startswith(("/", "-", "~")) for word in args) or any(
            r.target and not r.target.text.startswith("/") for r in redirects
        )
        if relative and self.session.cwd_event and self.session.cwd_event != self._event:
            depends |= {self.session.cwd_event}
        environment = {
            name: variable.value
            for name in WATCHED
            if (variable := self.session.variables.get(name)) is not None and variable.value is not None
        }
        imported = self._given.imported(program, code, assignments or {}, words)
        if code[0] is not None:
            environment |= self._given.environment(code[0], imported, words, assignments or {})
        index = len(self._commands)
        self._commands.append(
            Command(
                index,
                self._event,
                program,
                args,
                source[:4_000],
                path or program,
                self.session.cwd,
                dict(assignments or {}),
                redirects,
                wrappers,
                feeds,
                *code,
                imported,
                self._given.statements(program, args, redirects, feeds),
                " > ".join(self._via),
                self._via_files,
                depends - {self._event},
                environment,
                self._background,
            )
        )
        self._files.note(self._commands[index], self._outputs)
        return index

    def _input_from(self, op: str, word: Word) -> Redirect:
        """A redirection from a file, with its text where the run wrote it."""
        path = self.session.resolve(word.text) if op == "<" and word.exact else None
        return Redirect(op, word, self._files.written(path) if path is not None else None)

    def _effects(self, index: int, depth: int) -> list[int]:
        """What a command does to the session, and the commands it runs in turn."""
        command = self._commands[index]
        program, texts = command.program, command.words
        if own_commands.apply(self.session, command, self._outputs, self._input):
            return []
        if program == "exit" and not self._maybe:
            self._ended = True
            return []
        if program == "eval":
            return self._run_text(" ".join(texts), all(arg.exact for arg in command.args), depth, command)
        if program in wrappers.SHELLS:
            return [] if wrappers.only_parses(program, command.args) else self._shell(command, depth)
        if program in {"source", "."} and command.args:
            return self._script(command.args[0], command, depth, sourced=True)
        if program == "trap" and texts and texts[0] not in {"-", ""}:
            return self._nested(texts[0], "trap", depth, 0)
        if program in self.session.functions and program not in self._calling:
            body, event = self.session.functions[program]
            saved = dict(self.session.variables)
            own_commands.set_arguments(self.session, command.args)
            produced = self._nested(body, f"function {program}", depth, event, program)
            for position in range(1, 21):
                self.session.variables.pop(str(position), None)
            self.session.variables.update({key: value for key, value in saved.items() if key.isdigit()})
            return produced
        if program == "find":
            return self._find(command, depth)
        if program in {"fd", "fdfind"} and {"-x", "-X", "--exec", "--exec-batch"} & {*texts}:
            return self._found(command, depth)
        if program in {"script", "expect"} and (text := wrappers.spawned(program, command.args)):
            return self._nested(text, "", depth, 0, wrappers=command.wrappers)
        if command.code is not None:
            return self._program_text(command, command.code, depth)
        behind = wrappers.runner_command(program, command.args)
        if behind and depth < MAX_NESTING:
            return self._command(behind, dict(command.assignments), command.redirects, command.source, command.feeds, depth + 1)
        if program in {"make", "gmake", "npm", "yarn", "pnpm"}:
            return self._target(command, depth)
        if "/" in command.path and not command.path.startswith(("/usr/", "/bin/", "/sbin/")):
            return self._script(Word(command.path, command.path), command, depth)
        return []

    def _nested(
        self, text: str, via: str, depth: int, event: int, calling: str = "", wrappers: tuple[str, ...] = (), file: str = ""
    ) -> list[int]:
        saved = self._via, self._calling, self._depends, self._via_files
        same_shell, shell = via.startswith(("function ", "alias ")), (self._ended, self._maybe)
        self._maybe = self._maybe if same_shell else 0
        if via:
            self._via = (*self._via, via)
        if calling:
            self._calling = (*self._calling, calling)
        if event and event != self._event:
            self._depends |= {event}
        if file:
            self._via_files = (*self._via_files, file)
        produced = self._parse(text, depth + 1)
        if wrappers:
            for position in produced:
                inner = self._commands[position]
                self._commands[position] = replace(inner, wrappers=(*wrappers, *inner.wrappers))
        self._via, self._calling, self._depends, self._via_files = saved
        self._ended, self._maybe = shell[0] or (same_shell and self._ended), shell[1]
        return produced

    def _run_text(self, text: str, exact: bool, depth: int, command: Command) -> list[int]:
        if not exact:
            self._mark("text only known at run time", text)
            return []
        return self._nested(text, "", depth, 0, wrappers=command.wrappers)

    def _shell(self, command: Command, depth: int) -> list[int]:
        inline, script = wrappers.shell_script(command.args)
        if inline is not None:
            saved = self._save()
            fed = frozenset(command.feeds) if "xargs" in command.wrappers else frozenset()
            for word in command.args[command.args.index(inline) + 1 :][:1]:
                self.session.variables["0"] = Variable(word.text if word.exact else None, 0, word.runs, word.origins)
            own_commands.set_arguments(self.session, command.args[command.args.index(inline) + 2 :], fed)
            produced = self._run_text(inline.text, inline.exact, depth, command)
            self._restore(saved)
            self._inherit(command, produced)
            return produced
        if script is not None:
            return self._script(script, command, depth)
        text = self._outputs.given(command.redirects, command.feeds, command.cwd)
        if text is None:
            if command.feeds:
                self._mark("shell reads a pipe", command.source)
            return []
        return self._nested(text, "", depth, 0, wrappers=command.wrappers)

    def _inherit(self, command: Command, produced: list[int]) -> None:
        """What a shell is given for itself alone, its commands are given too."""
        for position in produced if command.assignments else ():
            inner = self._commands[position]
            self._commands[position] = replace(inner, assignments={**command.assignments, **inner.assignments})

    def _script(self, word: Word, command: Command, depth: int, *, sourced: bool = False) -> list[int]:
        path = self.session.resolve(word.text) if word.exact else None
        text = self._files.text(path) if path else None
        if path is None or text is None or path in self._calling or len(self._via) >= MAX_SCRIPTS:
            return []
        first = text.split("\n", 1)[0]
        if first.startswith("#!") and not re.search(r"\b(?:ba|da|z|k|a)?sh\b", first):
            return []
        saved = self._save()
        if not sourced:
            own_commands.set_arguments(
                self.session, command.args[command.args.index(word) + 1 :] if word in command.args else command.args
            )
        produced = self._nested(text, f"script {path}", depth, 0, path, wrappers=command.wrappers, file=path)
        if not sourced:
            self._restore(saved)
            self._inherit(command, produced)
        return produced

    def _program_text(self, command: Command, code: str, depth: int) -> list[int]:
        """The commands that program text runs, unless it is a program of the project."""
        path = command.code_file or ""
        if (path and self._is_as_found(path)) or path in self._calling or len(self._via) >= MAX_SCRIPTS:
            return []
        via = f"script {path}" if path else "program text"
        produced: list[int] = []
        saved = self._save()
        for run in program_text.runs(code, command.program, wrappers.operands(command.program, command.args)):
            text = run.text or " ".join(shlex.quote(word) for word in run.words)
            text = text.replace(UNKNOWN, "${unknown}") if run.text else text.replace(UNKNOWN, "'\"${unknown}\"'")
            produced += self._nested(text, via, depth, 0, path, wrappers=command.wrappers, file=path)
        self._restore(saved)
        return produced

    def _find(self, command: Command, depth: int) -> list[int]:
        produced: list[int] = []
        args = command.args
        position = 0
        while position < len(args):
            if args[position].text in {"-exec", "-execdir", "-ok", "-okdir"}:
                end = position + 1
                while end < len(args) and args[end].text not in {";", "+"}:
                    end += 1
                named = frozenset({command.index})
                words = tuple(replace(w, origins=w.origins | named) if "{}" in w.text else w for w in args[position + 1 : end])
                if words:
                    produced += self._command(words, {}, (), command.source, (command.index,), depth + 1)
                position = end
            position += 1
        return produced

    def _found(self, command: Command, depth: int) -> list[int]:
        """`fd NAME -x COMMAND`, which gets what was found as its last word where it has no `{}`."""
        position = next(i for i, word in enumerate(command.args) if word.text in {"-x", "-X", "--exec", "--exec-batch"})
        words = command.args[position + 1 :]
        if not any("{" in word.text for word in words):
            words = (*words, Word("{}", "{}"))
        named = frozenset({command.index})
        words = tuple(replace(word, origins=word.origins | named) if "{" in word.text else word for word in words)
        return self._command(words, {}, (), command.source, (command.index,), depth + 1)

    def _target(self, command: Command, depth: int) -> list[int]:
        if len(self._via) >= MAX_SCRIPTS:
            return []
        produced: list[int] = []
        directory = command.cwd
        if command.program in {"make", "gmake"} and (moved := command.option("-C", "--directory")) and directory is not None:
            directory = command.absolute(moved)
        for step in projects.steps(command, directory, self._files.text):
            if step.name in self._calling:
                continue
            saved = self._save()
            self.session.cwd = step.directory
            produced += self._nested(step.text, step.name, depth, 0, step.name, wrappers=command.wrappers, file=step.file)
            self._restore(saved)
        return produced
