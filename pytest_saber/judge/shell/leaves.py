"""Words, redirections and assignments of the syntax tree, read against the state of the session."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from tree_sitter import Node

from pytest_saber.judge.shell.model import Redirect, ScriptText, Word
from pytest_saber.judge.shell.run import Runner
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.words import Growth, Variable, WordReader, source_of

_MAX_GROWTH = 8 << 20
"""Characters that variables and substitutions add to the words of a run."""
_LATER_GROWTH = 65_536
"""What each later call may still have when that is used up."""
_MAX_ORIGINS = 20
_MAX_ITEMS = 100
_MAX_SUM = 65_536
_KEYED = re.compile(r"\[([^\]]{1,200})\]=")
_SETTINGS_OF_SHELL = frozenset({"HISTFILE", "HISTSIZE", "HISTFILESIZE"})


class Reader(Runner):
    """Reads the leaves of the tree; substitutions in them are walked."""

    def __init__(self, session: Session, script_text: ScriptText, is_as_found: Callable[[str], bool]) -> None:
        super().__init__(session, script_text, is_as_found)
        self._growth = Growth(_MAX_GROWTH)

    def _begin(self, event: int) -> None:
        self._event = event
        self._growth.left = max(self._growth.left, _LATER_GROWTH)

    @abstractmethod
    def _node(self, node: Node, feeds: tuple[int, ...], depth: int) -> list[int]:
        """Walk one statement. Returns the indexes of the commands whose output is the statement's output."""

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

    def _exported(self, node: Node, depth: int) -> None:
        """`export $(grep -v '^#' .env | xargs)` sets what the file says."""
        before = len(self._commands)
        self._inside(node, depth)
        for command in self._commands[before:]:
            for name, value in self._given.shown(command):
                self.session.variables[name] = Variable(value, self._event)

    def _substitute(self, node: Node, depth: int) -> tuple[str | None, frozenset[int]]:
        """The output of a substitution, where it is known, and the indexes of the commands in it."""
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
        self._ended = False
        ran = range(before, len(self._commands))
        printed = self._outputs.printed(ran) if node.type == "command_substitution" else None
        return None if printed is None else printed.rstrip("\n"), frozenset(ran[-_MAX_ORIGINS:])

    def _words(self, depth: int) -> WordReader:
        return WordReader(
            self.session.variables,
            self.session.home,
            lambda node: self._substitute(node, depth + 1),
            self._event,
            self._growth,
        )

    def _assign(self, node: Node, depth: int) -> tuple[str, Word] | None:
        """`NAME=value`, `NAME+=value`, `NAME[index]=value`, `NAME=(item [key]=item ...)`."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return None
        adds = any(child.type == "+=" for child in node.children)
        if value is not None and value.type == "array":
            word = self._array(source_of(name), value, depth, adds=adds)
            return source_of(name), word
        word = Word("", "") if value is None else self._words(depth).word(value)
        if name.type == "subscript":
            self._item(name, word, depth)
            return None
        known = self.session.variables.get(source_of(name))
        if adds and known is not None:
            exact = word.exact and known.value is not None and len(known.value) + len(word.text) < _MAX_SUM
            text = (known.value or "") + word.text if exact else word.source
            word = replace(word, text=text, exact=exact, runs=word.runs or known.runs, origins=word.origins | known.origins)
        # What may not run does not make a variable empty for certain.
        is_known = word.exact and bool(word.text or not self._maybe)
        self.session.variables[source_of(name)] = Variable(
            word.text if is_known else None, self._event, word.runs, word.origins
        )
        self._setting("export", f"{source_of(name)}={word.text}")
        return source_of(name), word

    def _array(self, name: str, node: Node, depth: int, *, adds: bool) -> Word:
        reader = self._words(depth)
        before = self.session.variables.get(name)
        items = list(before.items) if adds and before is not None else []
        for child in node.named_children[:_MAX_ITEMS]:
            keyed = _KEYED.match(source_of(child))
            if keyed is not None:
                word = reader.word(child)
                text = word.text.partition("]=")[2]
                text = self.session.home + text[1:] if text.startswith("~/") else text
                items.append((keyed[1].strip("\"'"), replace(word, text=text)))
            else:
                items += [(str(len(items) + place), word) for place, word in enumerate(reader.words(child))]
        self._store(name, items)
        return Word(source_of(node), source_of(node), exact=False)

    def _item(self, name: Node, word: Word, depth: int) -> None:
        array, index = name.child_by_field_name("name"), name.child_by_field_name("index")
        if array is None or index is None:
            return
        before = self.session.variables.get(source_of(array))
        items = {} if before is None else dict(before.items)
        items[self._words(depth).index(index)] = word
        self._store(source_of(array), list(items.items()))

    def _store(self, name: str, items: Sequence[tuple[str, Word]]) -> None:
        """An array of these items; one without any is empty."""
        kept = tuple(items[:_MAX_ITEMS])
        first = kept[0][1] if kept else Word("", "")
        runs, origins = any(word.runs for _, word in kept), frozenset[int]().union(*(word.origins for _, word in kept))
        self.session.variables[name] = Variable(first.text if first.exact else None, self._event, runs, origins, kept)

    def _setting(self, program: str, text: str) -> None:
        """What a shell is told about itself is a command of its own; other variables are not."""
        if text.partition("=")[0] in _SETTINGS_OF_SHELL:
            self._add(program, (Word(text, text),), f"{program} {text}")

    def _redirect(self, node: Node, depth: int) -> tuple[Redirect, list[Node], list[Word]]:
        reader = self._words(depth)
        operators = [child.type for child in node.children if not child.is_named]
        op = operators[0] if operators else ">"
        if node.type == "heredoc_redirect":
            body: str | None = ""
            origins: frozenset[int] = frozenset()
            inner, words, literal = [], [], False
            for child in node.children:
                if child.type == "heredoc_start":
                    literal = source_of(child)[:1] in {"'", '"', "\\"}
                elif child.type == "heredoc_body":
                    word = Word(source_of(child), "") if literal else reader.word(child)
                    body, origins = word.text, word.origins
                elif child.type in {"word", "string", "raw_string", "concatenation", "simple_expansion"}:
                    words += reader.words(child)
                elif child.is_named and child.type not in {
                    "heredoc_end",
                    "file_redirect",
                    "herestring_redirect",
                    "file_descriptor",
                }:
                    inner.append(child)
            return Redirect(op, None, body, origins), inner, words
        if node.type == "herestring_redirect":
            values = [child for child in node.named_children if child.type != "file_descriptor"]
            word = reader.word(values[-1]) if values else Word("", "")
            return Redirect("<<<", None, word.text, word.origins), [], []
        target = node.child_by_field_name("destination")
        if target is None:
            return Redirect(op), [], []
        word = reader.word(target)
        if op == "<" and target.type == "process_substitution":
            return Redirect(op, word, self._outputs.printed(sorted(word.origins)), word.origins), [], []
        return self._input_from(op, word), [], []
