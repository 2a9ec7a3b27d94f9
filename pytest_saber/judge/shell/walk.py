"""From the text of tool calls to the commands they ran, with the shell's state carried from call to call.

Parsing is bounded in size, depth and number of commands, and never raises on any input. A part with a syntax error is
recorded as opaque: what it did is then for the state to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

from pytest_saber.judge.shell.alphabet import encode
from pytest_saber.judge.shell.leaves import Reader
from pytest_saber.judge.shell.model import Redirect, ScriptText, Word
from pytest_saber.judge.shell.own_commands import read_into
from pytest_saber.judge.shell.run import MAX_COMMANDS, MAX_NESTING
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.words import Variable, source_of

MAX_TEXT = 131_072
MAX_SHELL = 12_288
"""Characters of a text without the bodies of its heredocs. The parser's recovery from errors is quadratic in their number."""
MAX_STEPS = 60_000
"""Statements of a run that are walked, each as often as loops, functions and aliases come to it."""
_LATER_COMMANDS, _LATER_STEPS = 100, 1_000
"""What later calls may still have each when the bounds of the run are reached, so that no call can hide those after it."""
_LOOP_VALUES = 8
_FEW_LOOPS = 2
"""Loops around each other that read line by line; more of them go on once."""
_MAY_NOT_RUN = frozenset(["if_statement", "while_statement", "for_statement", "c_style_for_statement", "case_statement"])
_HEREDOC = re.compile(r"<<-?[ \t]{0,8}[\\'\"]?(\w{1,64})['\"]?")
_INSIDE_WORD = re.compile(r"(?<=[^\s\\;&|])\\\n(?=[^\s;&|])")
_DEV_NET = re.compile(r"/dev/(?:tcp|udp)/[\w.-]+/\w+")


class Walker(Reader):
    """Collects the commands of a whole run: one `call` for each tool call, in order; then read `trace`."""

    def __init__(self, session: Session, script_text: ScriptText, is_as_found: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__(session, script_text, is_as_found)
        self._parser = Parser(Language(language()))
        self._steps = 0
        self._begin(0)

    def call(self, event: int, text: str, *, cwd: str = "", env: Mapping[str, str] | None = None) -> None:
        """The command text of one tool call. `cwd`: the directory before it, where the sandbox knows it."""
        self._begin(event)
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
        self._begin(event)
        words = tuple(Word(text, text) for text in argv)
        saved, self._via = self._via, (via,) if via else ()
        kept, self.session.cwd = self.session.cwd, cwd or self.session.cwd
        self._command(words, {}, (), " ".join(argv), (), 0)
        self._via, self.session.cwd = saved, kept

    def wrote(self, path: str, text: str | None) -> None:
        """A tool wrote a whole file, or (None) changed it."""
        self._files.write(path, text)

    # --- walking ---------------------------------------------------------------------------------------------------

    def _begin(self, event: int) -> None:
        super()._begin(event)
        self._ended = False
        self._most_commands = max(MAX_COMMANDS, len(self._commands) + _LATER_COMMANDS)
        self._most_steps = max(MAX_STEPS, self._steps + _LATER_STEPS)

    def _is_enough(self) -> bool:
        return len(self._commands) >= self._most_commands or self._steps >= self._most_steps

    def _parse(self, text: str, depth: int) -> list[int]:
        """Walk `text`; returns the indexes of its commands."""
        if depth > MAX_NESTING or self._is_enough():
            self._mark("nested too deep" if depth > MAX_NESTING else "more than is followed", text)
            return []
        if len(text) > MAX_TEXT or _shell_length(text) > MAX_SHELL:
            self._mark("longer than the parser reads", text)
            return []
        before = len(self._commands)
        root = self._parser.parse(encode(_joined(text))).root_node
        self._node(root, (), depth)
        return list(range(before, len(self._commands)))

    def _node(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        """Walk one statement. Returns the indexes of the commands whose output is the statement's output."""
        if depth > MAX_NESTING:
            self._mark("nested too deep", source_of(node))
            return []
        if self._is_enough() or self._ended:
            return []
        self._steps += 1
        kind = node.type
        if kind in _MAY_NOT_RUN:
            self._maybe += 1
            produced = self._statement(node, feeds, depth)
            self._maybe -= 1
            return produced
        return self._statement(node, feeds, depth)

    def _statement(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
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
                self._ended = False  # each part is a shell of its own
            return list(feeds)
        if kind == "subshell":
            saved, maybe, self._maybe = self._save(), self._maybe, 0
            produced = self._body(node, feeds, depth)
            self._restore(saved)
            self._ended, self._maybe = False, maybe
            return produced
        if kind == "function_definition":
            self._define(node)
            return []
        if kind == "for_statement":
            return self._for(node, feeds, depth)
        if kind in {"list", "if_statement", "while_statement"}:
            return self._branches(node, feeds, depth)
        if kind in {"variable_assignment", "variable_assignments"}:
            for assignment in node.named_children if kind == "variable_assignments" else (node,):
                self._assign(assignment, depth)
            return []
        if kind in {"declaration_command", "unset_command"}:
            for child in node.named_children:
                if child.type == "variable_assignment":
                    self._assign(child, depth)
                elif kind == "unset_command":
                    self._setting("unset", source_of(child))
                    self.session.variables[source_of(child)] = Variable("", self._event)
                else:
                    self._exported(child, depth)
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
            right_side = int(node.type == "list" and position > 0)
            self._maybe += right_side
            produced += self._node(child, feeds, depth + 1)
            self._maybe -= right_side
            self._background = saved
        return produced

    def _branches(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        """Whatever may run; not what stands behind `false &&`, `true ||` or `if false`."""
        if node.type == "list":
            left, right = node.named_children[0], node.named_children[-1]
            operator = next((child.type for child in node.children if child.type in {"&&", "||"}), "")
            if self._constant(left) is {"&&": False, "||": True}.get(operator):
                return self._node(left, feeds, depth + 1) if left is not right else []
            return self._body(node, feeds, depth)
        conditions = node.children_by_field_name("condition")
        never = node.children[0].type == "until"
        if len([child for child in conditions if child.is_named]) != 1 or self._constant(conditions[0]) is not never:
            return self._while(node, feeds, depth) if node.type == "while_statement" else self._body(node, feeds, depth)
        produced: list[int] = []
        for child in node.named_children:
            if child.type in {"elif_clause", "else_clause"}:
                produced += self._node(child, feeds, depth + 1)
        return produced

    def _constant(self, node: Node, depth: int = 0) -> bool | None:
        """What `true`, `:` and `false` and their chains always come to; None for anything else."""
        if depth > MAX_NESTING:
            return None
        if node.type == "command":
            word = source_of(node)
            own = word in self.session.functions or word in self.session.aliases
            return None if own else {"true": True, ":": True, "false": False}.get(word)
        if node.type == "negated_command" and node.named_children:
            value = self._constant(node.named_children[0], depth + 1)
            return None if value is None else not value
        if node.type == "list":
            operator = next((child.type for child in node.children if child.type in {"&&", "||"}), "")
            left = self._constant(node.named_children[0], depth + 1)
            if left is None or not operator:
                return None
            return left if left is (operator == "||") else self._constant(node.named_children[-1], depth + 1)
        return None

    def _define(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None and len(self.session.functions) < 1_000:
            self.session.functions[source_of(name)] = (source_of(body), self._event)

    def _for(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        reader = self._words(depth)
        values = [word for value in node.children_by_field_name("value") for word in reader.words(value)]
        if variable is None or body is None:
            return self._body(node, feeds, depth)
        if not node.children_by_field_name("value") and (given := self.session.variables.get("@")) is not None:
            values = [word for _, word in given.items] or [Word("$@", "$@", False, given.runs, origins=given.origins)]
        name = source_of(variable)
        produced: list[int] = []
        known = [Variable(value.text, self._event, value.runs, value.origins) for value in values if value.exact][:_LOOP_VALUES]
        unknown = [value for value in values if not value.exact][:1]
        rest = [Variable(None, self._event, value.runs, value.origins) for value in unknown]
        for each in [*known, *rest] or [Variable(None, self._event)]:
            self.session.variables[name] = each
            produced += self._node(body, feeds, depth + 1)
        return produced

    def _while(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        """A loop around `read` goes on for each line that is known; any other once."""
        before = len(self._commands)
        produced: list[int] = []
        for child in node.children_by_field_name("condition"):
            produced += self._node(child, feeds, depth + 1) if child.is_named else []
        body = node.child_by_field_name("body")
        if body is None:
            return produced
        reading = next((command for command in self._commands[before:] if command.program == "read"), None)
        text = None if reading is None else self._outputs.given(reading.redirects or self._input, feeds, self.session.cwd)
        produced += self._node(body, feeds, depth + 1)
        if reading is not None:
            for line in (text or "").splitlines()[1:_LOOP_VALUES] if self._maybe <= _FEW_LOOPS else ():
                read_into(self.session, reading, line, self._event)
                produced += self._node(body, feeds, depth + 1)
        return produced

    def _redirected(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        body = node.child_by_field_name("body")
        redirects: list[Redirect] = []
        rest: list[Node] = []
        extra: list[Word] = []
        for child in node.named_children:
            if not child.type.endswith("_redirect"):
                continue
            redirect, inner, words = self._redirect(child, depth)
            redirects.append(redirect)
            rest += inner
            extra += words
        if body is None:
            self._add("", (), source_of(node), redirects=tuple(redirects))
            return []
        if body.type == "command":
            produced = self._simple(body, feeds, tuple(redirects), depth, tuple(extra), source_of(node))
        else:
            before = len(self._commands)
            saved, self._input = self._input, (*(redirect for redirect in redirects if redirect.op.startswith("<")),)
            named = frozenset[int]().union(*(redirect.target.origins for redirect in redirects if redirect.target is not None))
            produced = self._node(body, (*feeds, *sorted(named)), depth + 1)
            self._input = saved
            for position in range(before, len(self._commands)):
                command = self._commands[position]
                self._commands[position] = replace(command, redirects=(*command.redirects, *redirects))
            for redirect in redirects:
                if redirect.writes and (path := redirect.absolute(self.session.cwd)):
                    self._files.write(path, None)
            if before == len(self._commands) and redirects:
                self._add("", (), source_of(node), redirects=tuple(redirects))
        for following in rest:
            produced = self._node(following, tuple(produced), depth + 1)
        return produced

    def _simple(
        self,
        node: Node,
        feeds: tuple[int, ...],
        redirects: tuple[Redirect, ...],
        depth: int,
        extra: tuple[Word, ...] = (),
        source: str = "",
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
            elif child.type == "command_name":
                words += reader.words(child.named_children[0] if len(child.named_children) == 1 else child)
            elif child.is_named and child.type != "comment":
                words += reader.words(child)
        if reader.ends:
            self._ended = not self._maybe
            return []
        return self._command((*words, *extra), assignments, (*own, *redirects), source or source_of(node), feeds, depth)


def _joined(text: str) -> str:
    """Without the line ends that a backslash takes out of a word, outside single quotes and where no heredoc is."""
    parts: list[str] = []
    position = seen = quotes = 0
    for match in _INSIDE_WORD.finditer(text) if "<<" not in text else ():
        quotes += text.count("'", seen, match.start())
        seen = match.start()
        if quotes % 2 == 0:
            parts.append(text[position : match.start()])
            position = match.end()
    return "".join((*parts, text[position:]))


def _shell_length(text: str) -> int:
    """Without the bodies of heredocs that begin outside quotes."""
    if len(text) <= MAX_SHELL:
        return len(text)
    length = 0
    ends: list[str] = []
    for line in text.split("\n"):
        if ends:
            if line.strip() == ends[0]:
                ends.pop(0)
            continue
        length += len(line) + 1
        for match in _HEREDOC.finditer(line[:4_096]):
            before = line[: match.start()]
            if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
                ends.append(match[1])
    return length
