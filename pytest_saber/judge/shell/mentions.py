"""Paths that program text names where it reads something, beyond the calls that `program_text` follows.

`Path.home().glob(".ssh/id_*")`, `getline < "/etc/shadow"` and the like: a path that stands in the text as a literal, in a text
that opens, lists or copies files. Literals in a call that only asks about a file (`exists`, `stat`) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge.shell.program_text import MAX_CODE

_MAX_FOUND = 100
_LITERAL = re.compile(r"\"([^\"\\\n]{2,300})\"|'([^'\\\n]{2,300})'|`([^`\\\n]{2,300})`")
_READS = re.compile(
    r"(?<![A-Za-z])(?:f?open\w{0,12}|[\w.]{0,20}read\w{0,12}|getline|io\.lines|slurp|load\w{0,8}|copy\w{0,8}|move|rename|parse|"
    r"file_get_contents|require|make_archive|cpSync|file|print\s?<|foreach|each_line|Import|cat)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:exists?\??|stat(?:Sync)?|l?existsSync|access(?:Sync)?|is_?file\??|is_?dir\??|getsize|filesize|size\??|readable\?|"
    r"chmod(?:Sync)?|chown|utime|unlink(?:Sync)?|remove|-[efrsdzwx])\s{0,3}\(?[^;\n]{0,60}\Z",
    re.IGNORECASE,
)
_HOME = re.compile(r"\bhome\b|homedir|expanduser|\bHOME\b|Dir\.home", re.IGNORECASE)
_PATH = re.compile(
    r"\A(?:\$ENV\{\w{1,20}\}|\$\{[^}]{0,60}\}|#\{[^}]{0,60}\}|\{[^}]{0,60}\}|\$HOME)?([~./][\w.~/*?\[\]@+-]{2,300}|[\w.-]+/[\w./*?-]{1,300})\Z"
)


def mentioned(code: str) -> tuple[str, ...]:
    """Paths and globs as they are written, and below `~` where the text speaks of the home."""
    return tuple(dict.fromkeys(_paths(code)))[:_MAX_FOUND] if len(code) <= MAX_CODE and _READS.search(code) else ()


def _paths(code: str) -> Iterator[str]:
    in_home = _HOME.search(code) is not None
    for match, _ in zip(_LITERAL.finditer(code), range(500), strict=False):
        path = _PATH.match(match[1] or match[2] or match[3])
        if path is None or _ASKS.search(code[max(0, match.start() - 80) : match.start()]):
            continue
        yield path[1]
        if in_home and not path[1].startswith("~"):
            yield "~/" + path[1].removeprefix(".").removeprefix("/") if path[1].startswith(("/", "./")) else "~/" + path[1]
