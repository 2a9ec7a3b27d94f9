"""Words of the syntax tree to text: quotes removed, known variables expanded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from pytest_saber.judge.shell import expansions
from pytest_saber.judge.shell.alphabet import decode
from pytest_saber.judge.shell.model import Word

MAX_DEPTH = 80
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL)
_ANSI_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_MAX_WORD = 65_536
_MAX_SPLIT = 100
_COST_OF_ITEM, _COST_OF_BRACES = 64, 4
"""Characters that making a word is charged as, beside its own."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A shell variable. `value` is None where it is only known at run time; `event` is the call that set it, 0 before."""

    value: str | None
    event: int = 0
    runs: bool = False
    """Whether a command substitution made the value."""
    origins: frozenset[int] = frozenset()
    """The commands of that substitution."""
    items: tuple[tuple[str, Word], ...] = ()
    """Of an array, as far as they are known: index or key, and value. `value` is then the first one's."""


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

    def take(self, count: int) -> bool:
        """Whether there were as many; what there is goes."""
        enough = count <= self.left
        self.left -= min(count, self.left)
        return enough


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

    def words(self, node: Node) -> list[Word]:
        """The node as the arguments it comes to: an array, braces and a text with blanks outside quotes are several."""
        items = self._items(node)
        if items is not None:
            return items
        word = self.word(node)
        if node.type in {"simple_expansion", "expansion", "command_substitution"} and word.exact:
            pieces = word.text.split(None, _MAX_SPLIT)[:_MAX_SPLIT]
            return [replace(word, text=piece) for piece in pieces] if len(pieces) > 1 else [word]
        if node.type in {"word", "concatenation", "brace_expression"} and expansions.has_braces(word.source):
            pieces = expansions.braces(word.text) if self._growth.left > 0 else []
            self._growth.take(_COST_OF_BRACES * len(word.text) * len(pieces))
            return [replace(word, text=self._at_home(piece)) for piece in pieces] or [word]
        return [word]

    def _at_home(self, text: str) -> str:
        return self._home + text[1:] if text.startswith("~/") else text

    def _items(self, node: Node) -> list[Word] | None:
        """What `"${NAME[@]}"`, `"$@"` and an item under an index that is not known stand for; None for anything else."""
        if node.type == "string":
            inside = [child for child in node.children if child.type != '"']
            node = inside[0] if len(inside) == 1 else node
        if node.type not in {"expansion", "simple_expansion"}:
            return None
        name, index, operators = self._parameter(node)
        variable = self._variables.get("@" if name == "*" else name)
        if variable is None or not variable.items or operators not in ([], ["!"]):
            return None
        if index is not None and index not in {"@", "*"}:
            known = operators or index in dict(variable.items) or index.lstrip("-").isdigit()
            found = None if known else [item for _, item in variable.items]
        elif index is None and name not in {"@", "*"}:
            found = None
        else:
            found = [Word(key, key) if operators else item for key, item in variable.items]
        if found is None:
            return None
        depends = {variable.event} - {0, self._event}
        if not self._growth.take(sum(_COST_OF_ITEM + len(item.text) for item in found)):
            return [Word(source_of(node), source_of(node), exact=False)]
        return [replace(item, depends=item.depends | depends, variables=(*item.variables, name)) for item in found]

    def _parameter(self, node: Node) -> tuple[str, str | None, list[str]]:
        """Name, index (None without one) and operators of `$NAME` and `${...}`; the name is "" where there is none."""
        if node.type == "simple_expansion":
            return source_of(node)[1:], None, []
        named = [child for child in node.children if child.type in {"variable_name", "special_variable_name", "subscript"}]
        operators = [child.type for child in node.children if not child.is_named and child.type not in {"${", "}"}]
        if not named:
            return "", None, operators
        if named[0].type != "subscript":
            return source_of(named[0]), None, operators
        name, index = named[0].child_by_field_name("name"), named[0].child_by_field_name("index")
        if name is None or index is None:
            return "", None, operators
        return source_of(name), self.index(index), operators

    def index(self, node: Node) -> str:
        """An index or key as text; in an index a bare name stands for its value."""
        parts = _Parts([])
        self._read(node, parts, quoted=False, depth=0)
        text = "".join(parts.text)[:_MAX_WORD]
        bare = self._variables.get(text) if node.type in {"word", "variable_name"} else None
        return bare.value if bare is not None and bare.value is not None and bare.value.isdigit() else text

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
            case "arithmetic_expansion":
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

    def _variable(self, name: str, source: str, parts: _Parts, default: str | None = None, index: str | None = None) -> None:
        parts.variables += (name,)
        variable = self._item(name, index)
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

    def _item(self, name: str, index: str | None) -> Variable | None:
        variable = self._variables.get(name)
        if variable is None or index is None or not variable.items:
            return variable
        if index in {"@", "*"}:
            text = " ".join(item.text for _, item in variable.items)
            known = all(item.exact for _, item in variable.items)
            return replace(variable, value=text if known else None)
        item = dict(variable.items).get(str(len(variable.items) + int(index)) if re.fullmatch(r"-\d{1,4}", index) else index)
        if item is None:
            return Variable("" if index.isdigit() else None, variable.event, variable.runs, variable.origins)
        return Variable(item.text if item.exact else None, variable.event, item.runs, item.origins)

    def _expansion(self, node: Node, parts: _Parts, depth: int) -> None:
        name, index, operators = self._parameter(node)
        if not name:
            parts.exact = False
            parts.text.append(source_of(node))
        elif not operators:
            self._variable(name, source_of(node), parts, None, index)
        elif operators[0] in {":-", "-", ":=", "="}:
            fallback = self._argument(node, operators[0], depth)
            parts.runs |= fallback.runs
            parts.origins |= fallback.origins
            self._variable(name, source_of(node), parts, "".join(fallback.text), index)
        elif operators[0] in {":?", "?"}:
            known = self._variables.get(name)
            self.ends |= known is not None and known.value == ""
            self._variable(name, source_of(node), parts, None, index)
        else:
            self._changed(node, parts, depth, name, index, operators)

    def _argument(self, node: Node, operator: str, depth: int) -> _Parts:
        """What stands behind the first operator, evaluated."""
        found = _Parts([])
        behind = next((child.end_byte for child in node.children if child.type == operator), node.end_byte)
        for child in node.children:
            if child.start_byte >= behind and child.type not in {"}", "/", ":"}:
                self._read(child, found, quoted=True, depth=depth + 1)
        return found

    def _changed(self, node: Node, parts: _Parts, depth: int, name: str, index: str | None, operators: list[str]) -> None:
        """`${NAME%...}`, `${NAME/.../...}`, `${NAME:1:2}`, `${!NAME}` and the like."""
        parts.variables += (name,)
        variable = self._item(name, index)
        if variable is not None:
            parts.runs |= variable.runs
            parts.origins |= variable.origins
            parts.depends |= {variable.event} - {0, self._event}
        made: str | None = None
        if variable is not None and variable.value is not None:
            made = self._made(node, variable.value, depth, operators)
        if made is None:
            parts.exact = False
            parts.text.append(source_of(node))
        else:
            parts.expand(made)

    def _made(self, node: Node, value: str, depth: int, operators: list[str]) -> str | None:
        operator = operators[0]
        first = node.children[1].type if len(node.children) > 1 else ""
        if operator == "!" and first == "!":
            target = self._variables.get(value)
            return target.value if target is not None else None
        if operator == "#" and first == "#":
            return str(len(value))
        named = [child for child in node.named_children if child.type not in {"variable_name", "subscript"}]
        texts: list[str] = []
        for child in named[:2]:
            found = _Parts([])
            self._read(child, found, quoted=True, depth=depth + 1)
            if not found.exact:
                return None
            texts.append("".join(found.text))
        if operator == ":":
            return expansions.part(value, texts[0].strip(), texts[1].strip() if len(texts) > 1 else "") if texts else None
        return expansions.changed(value, operator, texts[0] if texts else "", texts[1] if len(texts) > 1 else "")


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
