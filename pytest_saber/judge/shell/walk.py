"""From the text of tool calls to the commands they ran, with the shell's state carried from call to call.

Parsing is bounded in size, depth and number of commands, and never raises on any input. A part with a syntax error is
recorded as opaque: what it did is then for the state to say.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

from pytest_saber.judge.shell import projects, wrappers
from pytest_saber.judge.shell.model import Command, Opaque, Redirect, ScriptText, Trace, Word
from pytest_saber.judge.shell.outputs import Outputs
from pytest_saber.judge.shell.session import WATCHED, Session
from pytest_saber.judge.shell.words import Variable, WordReader, source_of

MAX_TEXT = 262_144
MAX_COMMANDS = 8_000
MAX_NESTING = 60
MAX_SCRIPTS = 4
_LOOP_VALUES = 8
_DEV_NET = re.compile(r"/dev/(?:tcp|udp)/[\w.-]+/\w+")


class Walker:
    """Collects the commands of a whole run. `script_text` and the project files it gives resolve scripts and targets."""

    def __init__(self, session: Session, script_text: ScriptText) -> None:
        self.session = session
        self._script_text = script_text
        self._parser = Parser(Language(language()))
        self._commands: list[Command] = []
        self._opaque: list[Opaque] = []
        self._outputs = Outputs(self._commands, script_text)
        self._event = 0
        self._via: tuple[str, ...] = ()
        self._via_files: tuple[str, ...] = ()
        self._calling: tuple[str, ...] = ()
        self._depends: frozenset[int] = frozenset()
        self._background = False

    @property
    def trace(self) -> Trace:
        return Trace(tuple(self._commands), tuple(self._opaque))

    def call(self, event: int, text: str, *, cwd: str = "", env: Mapping[str, str] | None = None) -> None:
        """The command text of one tool call. `cwd`: the directory before it, where the sandbox knows it."""
        self._event = event
        if cwd and cwd != self.session.cwd:
            self.session.cwd, self.session.cwd_event = cwd, 0
        saved = dict(self.session.variables) if env else None
        for name, value in (env or {}).items():
            self.session.variables[name] = Variable(value)
        self._parse(text, 0)
        if saved is not None:
            self.session.variables = saved

    def program(self, event: int, argv: tuple[str, ...], cwd: str, via: str = "") -> None:
        """A program start that a witness saw: exact words, nothing to parse but what the words hold."""
        self._event = event
        words = tuple(Word(text, text) for text in argv)
        saved, self._via = self._via, (via,) if via else ()
        kept, self.session.cwd = self.session.cwd, cwd or self.session.cwd
        self._command(words, {}, (), " ".join(argv), (), 0)
        self._via, self.session.cwd = saved, kept

    # --- walking ---------------------------------------------------------------------------------------------------

    def _parse(self, text: str, depth: int) -> list[int]:
        """Walk `text`; returns the indexes of its commands."""
        if depth > MAX_NESTING or len(self._commands) >= MAX_COMMANDS:
            self._mark("nested too deep", text)
            return []
        if len(text) > MAX_TEXT:
            self._mark("longer than the parser reads", text)
            return []
        before = len(self._commands)
        root = self._parser.parse(text.encode("utf-8", "surrogateescape")).root_node
        self._node(root, (), depth)
        return list(range(before, len(self._commands)))

    def _mark(self, reason: str, text: str) -> None:
        if len(self._opaque) < MAX_COMMANDS:
            self._opaque.append(Opaque(self._event, reason, text[:2_000]))

    def _node(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        """Walk one statement. Returns the indexes of the commands whose output is the statement's output."""
        if depth > MAX_NESTING:
            self._mark("nested too deep", source_of(node))
            return []
        if len(self._commands) >= MAX_COMMANDS:
            return []
        kind = node.type
        if kind == "ERROR" or node.is_missing:
            text = source_of(node)
            self._mark("not understood as shell", text)
            for found in _DEV_NET.findall(text):
                self._add("exec", (), text, redirects=(Redirect("<>", Word(found, found)),))
            return []
        if kind in {"command", "test_command"}:
            return self._simple(node, feeds, (), depth) if kind == "command" else self._inside(node, depth)
        if kind == "redirected_statement":
            return self._redirected(node, feeds, depth)
        if kind == "pipeline":
            for child in node.named_children:
                feeds = tuple(self._node(child, feeds, depth + 1))
            return list(feeds)
        if kind == "subshell":
            saved = self._save()
            produced = self._body(node, feeds, depth)
            self._restore(saved)
            return produced
        if kind == "function_definition":
            self._define(node)
            return []
        if kind == "for_statement":
            return self._for(node, feeds, depth)
        if kind in {"variable_assignment", "variable_assignments"}:
            for assignment in node.named_children if kind == "variable_assignments" else (node,):
                self._assign(assignment, depth)
            return []
        if kind in {"declaration_command", "unset_command"}:
            for child in node.named_children:
                if child.type == "variable_assignment":
                    self._assign(child, depth)
                elif kind == "unset_command":
                    self.session.variables.pop(source_of(child), None)
            return []
        if kind in {"comment", "heredoc_body", "string", "raw_string", "word", "number"}:
            return self._inside(node, depth) if kind == "string" else []
        return self._body(node, feeds, depth)

    def _body(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        produced: list[int] = []
        children = node.children
        for position, child in enumerate(children):
            if not child.is_named and not child.is_missing:
                continue
            background = position + 1 < len(children) and children[position + 1].type == "&"
            saved, self._background = self._background, self._background or background
            produced += self._node(child, feeds, depth + 1)
            self._background = saved
        return produced

    def _inside(self, node: Node, depth: int) -> list[int]:
        """Only the command substitutions in `node` run."""
        stack, left = [node], 2_000
        while stack and left:
            left -= 1
            current = stack.pop()
            if current.type in {"command_substitution", "process_substitution"}:
                self._substitute(current, depth)
            else:
                stack.extend(reversed(current.named_children))
        return []

    def _save(self) -> tuple[str | None, int, dict[str, Variable]]:
        return self.session.cwd, self.session.cwd_event, dict(self.session.variables)

    def _restore(self, saved: tuple[str | None, int, dict[str, Variable]]) -> None:
        self.session.cwd, self.session.cwd_event, self.session.variables = saved

    def _substitute(self, node: Node, depth: int) -> str | None:
        saved = self._save()
        before = len(self._commands)
        for child in node.named_children:
            if child.type == "file_redirect":
                target = child.child_by_field_name("destination")
                if target is not None:
                    word = self._words(depth).word(target)
                    self._add("cat", (word,), source_of(node), redirects=(Redirect("<", word),))
                continue
            self._node(child, (), depth + 1)
        self._restore(saved)
        if node.type != "command_substitution":
            return None
        return self._outputs.printed(range(before, len(self._commands)))

    def _words(self, depth: int) -> WordReader:
        return WordReader(
            self.session.variables, self.session.home, lambda node: self._substitute(node, depth + 1), self._event
        )

    def _assign(self, node: Node, depth: int) -> tuple[str, Word] | None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return None
        word = Word("", "") if value is None else self._words(depth).word(value)
        self.session.variables[source_of(name)] = Variable(word.text if word.exact else None, self._event)
        return source_of(name), word

    def _define(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None and len(self.session.functions) < 1_000:
            self.session.functions[source_of(name)] = (source_of(body), self._event)

    def _for(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        reader = self._words(depth)
        values = [reader.word(value) for value in node.children_by_field_name("value")]
        if variable is None or body is None:
            return self._body(node, feeds, depth)
        name = source_of(variable)
        produced: list[int] = []
        exact = [value for value in values if value.exact and not _is_glob(value)]
        for value in exact[:_LOOP_VALUES] if exact and len(exact) == len(values) else [None]:
            self.session.variables[name] = Variable(value.text if value else None, self._event)
            produced += self._node(body, feeds, depth + 1)
        return produced

    def _redirected(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        body = node.child_by_field_name("body")
        redirects: list[Redirect] = []
        rest: list[Node] = []
        extra: list[Word] = []
        for child in node.children_by_field_name("redirect"):
            redirect, inner, words = self._redirect(child, depth)
            redirects.append(redirect)
            rest += inner
            extra += words
        if body is None:
            self._add("", (), source_of(node), redirects=tuple(redirects))
            return []
        if body.type == "command":
            produced = self._simple(body, feeds, tuple(redirects), depth, tuple(extra))
        else:
            before = len(self._commands)
            produced = self._node(body, feeds, depth + 1)
            for position in range(before, len(self._commands)):
                command = self._commands[position]
                self._commands[position] = replace(command, redirects=(*command.redirects, *redirects))
            if before == len(self._commands) and redirects:
                self._add("", (), source_of(node), redirects=tuple(redirects))
        for following in rest:
            produced = self._node(following, tuple(produced), depth + 1)
        return produced

    def _redirect(self, node: Node, depth: int) -> tuple[Redirect, list[Node], list[Word]]:
        reader = self._words(depth)
        operators = [child.type for child in node.children if not child.is_named]
        op = operators[0] if operators else ">"
        if node.type == "heredoc_redirect":
            body: str | None = ""
            inner, words, literal = [], [], False
            for child in node.children:
                if child.type == "heredoc_start":
                    literal = source_of(child)[:1] in {"'", '"', "\\"}
                elif child.type == "heredoc_body":
                    body = source_of(child) if literal else reader.word(child).text
                elif child.type in {"word", "string", "raw_string", "concatenation", "simple_expansion"}:
                    words.append(reader.word(child))
                elif child.is_named and child.type not in {
                    "heredoc_end",
                    "file_redirect",
                    "herestring_redirect",
                    "file_descriptor",
                }:
                    inner.append(child)
            return Redirect(op, None, body), inner, words
        if node.type == "herestring_redirect":
            values = [child for child in node.named_children if child.type != "file_descriptor"]
            return Redirect("<<<", None, reader.word(values[-1]).text if values else ""), [], []
        target = node.child_by_field_name("destination")
        return Redirect(op, None if target is None else reader.word(target)), [], []

    # --- simple commands -------------------------------------------------------------------------------------------

    def _simple(
        self, node: Node, feeds: tuple[int, ...], redirects: tuple[Redirect, ...], depth: int, extra: tuple[Word, ...] = ()
    ) -> list[int]:
        reader = self._words(depth)
        words: list[Word] = []
        assignments: dict[str, Word] = {}
        own: list[Redirect] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name is not None:
                    assignments[source_of(name)] = Word("", "") if value is None else reader.word(value)
            elif child.type in {"file_redirect", "herestring_redirect", "heredoc_redirect"}:
                redirect, _, more = self._redirect(child, depth)
                own.append(redirect)
                words += more
            elif child.type == "ERROR":
                self._mark("not understood as shell", source_of(child))
            elif child.is_named and child.type != "comment":
                words.append(reader.word(child))
        return self._command((*words, *extra), assignments, (*own, *redirects), source_of(node), feeds, depth)

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
        head, args = stripped.words[0], stripped.words[1:]
        program = wrappers.program_name(head.text)
        saved = self.session.cwd
        if stripped.directory is not None:
            self.session.cwd = self._resolve(stripped.directory.text)
        index = self._add(
            program,
            args,
            source,
            path=head.text,
            redirects=redirects,
            assignments=assignments,
            wrappers=stripped.wrappers,
            feeds=feeds,
            code=self._code(program, args, redirects, feeds),
            words=(head, *args),
        )
        produced = [index, *self._effects(index, depth)]
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
        code: str | None = None,
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
                code,
                " > ".join(self._via),
                self._via_files,
                depends - {self._event},
                environment,
                self._background,
            )
        )
        return index

    def _resolve(self, text: str) -> str | None:
        if text.startswith("/"):
            return posixpath.normpath(text)
        return None if self.session.cwd is None else posixpath.normpath(posixpath.join(self.session.cwd, text))

    def _code(
        self, program: str, args: tuple[Word, ...], redirects: tuple[Redirect, ...], feeds: tuple[int, ...]
    ) -> str | None:
        if program not in wrappers.INTERPRETERS:
            return None
        code = wrappers.inline_code(program, args)
        if (
            code is None
            and not [arg for arg in args if not arg.text.startswith("-")]
            and program not in {"awk", "gawk", "mawk"}
        ):
            code = self._outputs.given(redirects, feeds, self.session.cwd)
        if code is None and args and program not in {"awk", "gawk", "mawk"}:
            files = [arg.text for arg in args if not arg.text.startswith("-")]
            path = self._resolve(files[0]) if files and "-m" not in [arg.text for arg in args] else None
            code = self._script_text(path) if path else None
        return code

    def _effects(self, index: int, depth: int) -> list[int]:
        """What a command does to the session, and the commands it runs in turn."""
        command = self._commands[index]
        program, texts = command.program, command.words
        if program in {"cd", "pushd"}:
            self._change_directory(command)
            return []
        if program == "alias":
            for word in command.args:
                name, equals, text = word.text.partition("=")
                if equals and len(self.session.aliases) < 1_000:
                    self.session.aliases[name] = (text, self._event)
            return []
        if program in {"export", "declare", "local", "readonly", "typeset"}:
            for word in command.args:
                name, equals, text = word.text.partition("=")
                if equals:
                    self.session.variables[name] = Variable(text if word.exact else None, self._event)
            return []
        if program == "read" or program == "mapfile":
            for text in texts:
                self.session.variables[text] = Variable(None, self._event)
            return []
        if program == "eval":
            return self._run_text(" ".join(texts), all(arg.exact for arg in command.args), depth, command)
        if program in wrappers.SHELLS:
            return self._shell(command, depth)
        if program in {"source", "."} and command.args:
            return self._script(command.args[0], command, depth, sourced=True)
        if program == "trap" and texts and texts[0] not in {"-", ""}:
            return self._nested(texts[0], "trap", depth, 0)
        if program in self.session.functions and program not in self._calling:
            body, event = self.session.functions[program]
            saved = dict(self.session.variables)
            self._set_arguments(command.args)
            self.session.variables["@"] = Variable(" ".join(texts))
            produced = self._nested(body, f"function {program}", depth, event, program)
            for position in range(1, 21):
                self.session.variables.pop(str(position), None)
            self.session.variables.update({key: value for key, value in saved.items() if key.isdigit()})
            return produced
        if program == "find":
            return self._find(command, depth)
        if program in {"make", "gmake", "npm", "yarn", "pnpm"}:
            return self._target(command, depth)
        if "/" in command.path and not command.path.startswith(("/usr/", "/bin/", "/sbin/")):
            return self._script(Word(command.path, command.path), command, depth)
        return []

    def _change_directory(self, command: Command) -> None:
        targets = [arg for arg in command.args if not arg.text.startswith("-") or arg.text == "-"]
        target = targets[0] if targets else Word(self.session.home, "")
        self.session.cwd = self._resolve(target.text) if target.exact and target.text != "-" else None
        self.session.cwd_event = self._event

    def _nested(
        self, text: str, via: str, depth: int, event: int, calling: str = "", wrappers: tuple[str, ...] = (), file: str = ""
    ) -> list[int]:
        saved = self._via, self._calling, self._depends, self._via_files
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
            produced = self._run_text(inline.text, inline.exact, depth, command)
            self._restore(saved)
            return produced
        if script is not None:
            return self._script(script, command, depth)
        text = self._outputs.given(command.redirects, command.feeds, command.cwd)
        if text is None:
            if command.feeds:
                self._mark("shell reads a pipe", command.source)
            return []
        return self._nested(text, "", depth, 0, wrappers=command.wrappers)

    def _script(self, word: Word, command: Command, depth: int, *, sourced: bool = False) -> list[int]:
        path = self._resolve(word.text) if word.exact else None
        text = self._script_text(path) if path else None
        if path is None or text is None or path in self._calling or len(self._via) >= MAX_SCRIPTS:
            return []
        first = text.split("\n", 1)[0]
        if first.startswith("#!") and not re.search(r"\b(?:ba|da|z|k|a)?sh\b", first):
            return []
        saved = self._save()
        if not sourced:
            self._set_arguments(command.args[command.args.index(word) + 1 :] if word in command.args else command.args)
        produced = self._nested(text, f"script {path}", depth, 0, path, wrappers=command.wrappers, file=path)
        if not sourced:
            self._restore(saved)
        return produced

    def _set_arguments(self, arguments: tuple[Word, ...]) -> None:
        """`$1` and so on; each keeps the latest event that its word relies on."""
        for position, word in enumerate(arguments[:20], 1):
            self.session.variables[str(position)] = Variable(word.text if word.exact else None, max(word.depends, default=0))

    def _find(self, command: Command, depth: int) -> list[int]:
        produced: list[int] = []
        args = command.args
        position = 0
        while position < len(args):
            if args[position].text in {"-exec", "-execdir", "-ok", "-okdir"}:
                end = position + 1
                while end < len(args) and args[end].text not in {";", "+"}:
                    end += 1
                words = args[position + 1 : end]
                if words:
                    produced += self._command(words, {}, (), command.source, (command.index,), depth + 1)
                position = end
            position += 1
        return produced

    def _target(self, command: Command, depth: int) -> list[int]:
        if len(self._via) >= MAX_SCRIPTS:
            return []
        produced: list[int] = []
        directory = command.cwd
        if command.program in {"make", "gmake"} and (moved := command.option("-C", "--directory")) and directory is not None:
            directory = command.absolute(moved)
        for step in projects.steps(command, directory, self._script_text):
            if step.name in self._calling:
                continue
            saved = self._save()
            self.session.cwd = step.directory
            produced += self._nested(step.text, step.name, depth, 0, step.name, wrappers=command.wrappers, file=step.file)
            self._restore(saved)
        return produced


def _is_glob(word: Word) -> bool:
    return not word.quoted and any(character in word.source for character in "*?[{")
