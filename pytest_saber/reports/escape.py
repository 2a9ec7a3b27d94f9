"""Untrusted text made harmless, for each place it is shown in.

Task names come from YAML files, messages and proofs from agents, models and workspaces: a file may be called
`]]><x>`, a model may answer with terminal escapes, a path may hold a right-to-left override.
"""

from __future__ import annotations

import re
import unicodedata

LINE = 300
BLOCK = 4000
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_MARKUP = re.compile(r"[\\`*_\[\]<>|~&$]|^[-+]")
_REFERENCE = re.compile(r"@|#|:(?=//)|(?<=www)(?=\.)", re.IGNORECASE)


def line(text: str, limit: int = LINE) -> str:
    """One printable line: what is not printable as `\\x1b`, line ends as ` / `, cut at `limit` characters."""
    text = _cut(text, limit)
    return " / ".join(part.strip() for part in _visible(text).splitlines() if part.strip())


def block(text: str, limit: int = BLOCK) -> str:
    """Printable lines: like `line`, with line ends kept."""
    return "\n".join(part.rstrip() for part in _visible(_cut(text, limit)).splitlines())


def xml(text: str, limit: int = BLOCK) -> str:
    """Text for the *content* of an XML element or attribute: no character that XML 1.0 forbids, and no `]]>`.

    The five special characters are left to the XML writer.
    """
    return block(text, limit).replace("]]>", "]]\\x3e")


def markdown(text: str, limit: int = LINE) -> str:
    """One line of plain text in GitHub's Markdown: no link, mention, HTML, table cell or emphasis comes of it.

    A zero-width space breaks mentions, issue references and bare URLs, which GitHub finds after unescaping.
    """
    return _REFERENCE.sub(r"\g<0>&#8203;", _MARKUP.sub(r"\\\g<0>", line(text, limit)))


def workflow_data(text: str, limit: int = BLOCK) -> str:
    """The message of a GitHub workflow command."""
    return block(text, limit).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str, limit: int = LINE) -> str:
    """A property (file, title) of a GitHub workflow command."""
    return workflow_data(line(text, limit)).replace(":", "%3A").replace(",", "%2C")


def cells(text: str) -> int:
    """How many columns a terminal takes for `text`."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def fit(text: str, width: int) -> str:
    """`text` cut to `width` columns, `...` standing for what was cut."""
    if cells(text) <= width:
        return text
    kept = ""
    for char in text:
        if cells(kept) + cells(char) > width - 3:
            break
        kept += char
    return (kept + "...")[: max(width, 0)]


def wrap(text: str, width: int, indent: str = "", hang: str | None = None) -> list[str]:
    """`text` broken at spaces into lines of at most `width` columns; a longer word is broken where the line ends."""
    hang = indent if hang is None else hang
    room = max(width - max(len(indent), len(hang)), 10)
    lines: list[str] = []
    current = ""
    for word in text.split():
        while cells(word) > room:
            taken = _take(word, room - (cells(current) + 1 if current else 0)) if cells(current) < room - 8 else ""
            lines.append(f"{current} {taken}".strip())
            current, word = "", word[len(taken) :]
        if current and cells(current) + 1 + cells(word) > room:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}".strip()
    if current:
        lines.append(current)
    return [(indent if number == 0 else hang) + part for number, part in enumerate(lines)]


def _take(word: str, room: int) -> str:
    taken = ""
    for char in word:
        if cells(taken + char) > room:
            break
        taken += char
    return taken


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-(limit // 3) :]
    return f"{head} [{len(text) - len(head) - len(tail)} characters left out] {tail}"


def _visible(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(char if char in " \n" or unicodedata.category(char) not in _HIDDEN else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
