"""Words of the syntax tree to text: quotes removed, known variables expanded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from pytest_saber.judge.shell.alphabet import decode
from pytest_saber.judge.shell.model import Word

MAX_DEPTH = 80
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL)
_ANSI_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_MAX_WORD = 65_536


@dataclass(frozen=True, slots=True)
class Variable:
    """A shell variable. `value` is None where it is only known at run time; `event` is the call that set it, 0 before."""

    value: str | None
    event: int = 0
    runs: bool = False
    """Whether a command substitution made the value."""
    origins: frozenset[int] = frozenset()
    """The commands of that substitution."""


@dataclass(slots=True)
class _Parts:
    text: list[str]
    exact: bool = True
    runs: bool = False
    depends: frozenset[int] = frozenset()
    variables: tuple[str, ...] = ()
    origins: frozenset[int] = frozenset()
    expanded: int = 0

    def expand(self, value: str) -> None:
        """Append what a variable or a substitution stands for, as far as a word holds it."""
        if self.expanded < _MAX_WORD:
            self.text.append(value)
            self.expanded += len(value)


@dataclass(slots=True)
class Growth:
    """How many characters more than their sources words may still have, together."""

    left: int


def source_of(node: Node) -> str:
    """The text of a node as the agent wrote it."""
    return decode(node.text or b"")


class WordReader:
    """Evaluates word nodes against the variables of a session. `substitute` records the commands in a substitution and gives
    its output, where that is known, and their indexes."""

    def __init__(
        self,
        variables: Mapping[str, Variable],
        home: str,
        substitute: Callable[[Node], tuple[str | None, frozenset[int]]],
        event: int,
        growth: Growth,
    ) -> None:
        self._variables = variables
        self._home = home
        self._substitute = substitute
        self._event = event
        self._growth = growth
        self.ends = False
        """Whether `${NAME:?}` of a variable that is empty ends the shell."""

    def word(self, node: Node) -> Word:
        """The node as one argument, its expansions done where their values are known."""
        parts = _Parts([])
        self._read(node, parts, quoted=False, depth=0)
        source = source_of(node)
        text = "".join(parts.text)[:_MAX_WORD]
        if node.type in {"word", "concatenation"} and source.startswith("~"):
            head, slash, rest = text.partition("/")
            if head == "~":
                text = self._home + slash + rest
            elif head == "~root":
                text = "/root" + slash + rest
            elif re.fullmatch(r"~[a-z_][a-z0-9_-]*", head):
                text = f"/home/{head[1:]}" + slash + rest
        grown = max(0, len(text) - len(source))
        if grown > self._growth.left:
            text, parts.exact, grown = text[: len(source)], False, 0
        self._growth.left -= grown
        quoted = node.type in {"string", "raw_string", "ansi_c_string"}
        return Word(text, source, parts.exact, parts.runs, quoted, parts.depends, parts.variables, parts.origins)

    def _read(self, node: Node, parts: _Parts, *, quoted: bool, depth: int) -> None:
        if depth > MAX_DEPTH:
            parts.exact = False
            parts.text.append(source_of(node))
            return
        match node.type:
            case "raw_string":
                parts.text.append(source_of(node)[1:-1])
            case "ansi_c_string":
                parts.text.append(_ansi(source_of(node)[2:-1]))
            case "string" | "translated_string":
                self._string(node, parts, depth)
            case "simple_expansion":
                self._variable(source_of(node)[1:], source_of(node), parts)
            case "expansion":
                self._expansion(node, parts, depth)
            case "command_substitution" | "process_substitution":
                output, ran = self._substitute(node)
                parts.runs = True
                parts.origins |= ran
                if output is None:
                    parts.exact = False
                    parts.text.append(source_of(node))
                else:
                    parts.expand(output)
            case "arithmetic_expansion" | "brace_expression":
                parts.exact = False
                parts.text.append(source_of(node))
            case _ if node.child_count and node.type in {"concatenation", "command_name", "heredoc_body", "word"}:
                self._children(node, parts, quoted=quoted, depth=depth)
            case _:
                text = source_of(node)
                parts.text.append(text if quoted else _ESCAPE.sub(lambda m: "" if m[1] == "\n" else m[1], text))

    def _children(self, node: Node, parts: _Parts, *, quoted: bool, depth: int) -> None:
        whole, position = node.text or b"", node.start_byte
        for child in node.children:
            if child.start_byte > position:
                parts.text.append(decode(whole[position - node.start_byte : child.start_byte - node.start_byte]))
            self._read(child, parts, quoted=quoted, depth=depth + 1)
            position = max(position, child.end_byte)
        if position < node.end_byte:
            parts.text.append(decode(whole[position - node.start_byte :]))

    def _string(self, node: Node, parts: _Parts, depth: int) -> None:
        whole, position = node.text or b"", node.start_byte
        for child in node.children:
            gap = whole[position - node.start_byte : child.start_byte - node.start_byte] if child.start_byte > position else b""
            parts.text.append(decode(gap))
            if child.type == "string_content":
                parts.text.append(re.sub(r'\\([$`"\\\n])', lambda m: "" if m[1] == "\n" else m[1], source_of(child)))
            elif child.type not in {'"', '$"', "$"}:
                self._read(child, parts, quoted=True, depth=depth + 1)
            elif child.type == "$" and child.start_byte - node.start_byte > 0:
                parts.text.append("$")
            position = max(position, child.end_byte)

    def _variable(self, name: str, source: str, parts: _Parts, default: str | None = None) -> None:
        parts.variables += (name,)
        variable = self._variables.get(name)
        if variable is not None and variable.event and variable.event != self._event:
            parts.depends |= {variable.event}
        if variable is not None:
            parts.runs |= variable.runs
            parts.origins |= variable.origins
        if variable is not None and variable.value is not None and (variable.value or default is None):
            parts.expand(variable.value)
        elif default is not None and (variable is None or variable.value == ""):
            parts.exact = False
            parts.text.append(default)
        else:
            parts.exact = False
            parts.text.append(source)

    def _expansion(self, node: Node, parts: _Parts, depth: int) -> None:
        names = [child for child in node.children if child.type in {"variable_name", "special_variable_name"}]
        operators = [child.type for child in node.children if not child.is_named and child.type not in {"${", "}"}]
        if not names:
            parts.exact = False
            parts.text.append(source_of(node))
            return
        name = source_of(names[0])
        if not operators:
            self._variable(name, source_of(node), parts)
        elif operators[0] in {":-", "-", ":=", "="}:
            rest = [
                child
                for child in node.children
                if child.start_byte >= names[0].end_byte + len(operators[0]) and child.type != "}"
            ]
            fallback = _Parts([])
            for child in rest:
                self._read(child, fallback, quoted=True, depth=depth + 1)
            parts.runs |= fallback.runs
            parts.origins |= fallback.origins
            self._variable(name, source_of(node), parts, "".join(fallback.text))
        elif operators[0] in {":?", "?"}:
            known = self._variables.get(name)
            self.ends |= known is not None and known.value == ""
            self._variable(name, source_of(node), parts)
        else:
            parts.variables += (name,)
            parts.exact = False
            parts.text.append(source_of(node))


def _ansi(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1] or match[2] or match[3]:
            code = int(match[1] or match[2] or match[3], 16)
            return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
        if match[4]:
            return chr(int(match[4], 8) & 0xFF)
        if match[5]:
            return chr(ord(match[5]) & 0x1F)
        return _ANSI_NAMED.get(match[6], match[6])

    return _ANSI.sub(one, text)
