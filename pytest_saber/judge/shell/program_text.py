"""What program text given to an interpreter reads and runs, as far as literals say it.

The rest stays opaque: what it did is for the state to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_saber.judge.shell.literals import UNKNOWN, Literals, receivers

MAX_CODE = 100_000
_MAX_FOUND = 100
_OPENS = re.compile(
    r"(?<![\w$])(?:open|opensync|openasblob|read\w*|fopen|file_get_contents|readfile|readlines|foreach|binread|"
    r"createreadstream|slurp|loadtxt|fromfile|curlfile|curl_file_create|zipfile|getlines|copy|copy2|copyfile|copytree|copysync|"
    r"copyfilesync|cp|cpsync|move|rename|renamesync|open_text)\s*\(",
    re.IGNORECASE,
)
_READS_ITSELF = re.compile(r"\.(?:read_text|read_bytes|open|text|bytes|arraybuffer|copy|stream)\s*\(", re.IGNORECASE)
_PERL_OPENS = re.compile(r"\bopen\s*+(?:\(\s*+)?(?:my\s+)?[$\w{}]+\s*,\s*")
_TAKES_OPERANDS = re.compile(
    r"<<?>>?(?![\w\"'])|<ARGV>|\bARGF\b|\$<(?=\.)|(?<![\w.])gets\b|fileinput\.\w+\(|argv\.slice\(|argv\[1:\]", re.IGNORECASE
)
"""The text reads the files that are its arguments, one after the other."""
_SETS_OPERANDS = re.compile(r"@ARGV\s{0,5}=\s{0,5}")
_RUBY_OPENS = re.compile(r"\b(?:File|IO)\.(?:read|open|binread|readlines|foreach|new)\s+(?=['\"])|(?<![\w.])open\s+(?=['\"])")
_WRITING = re.compile(r"\A(?:[wax]b?t?|[wax]t|>>?(?::.*)?|w\w*)\Z")
_RUNS = re.compile(
    r"(?<![\w$])(?:os\.(?:system|popen|spawn\w+|exec\w+)|subprocess\.(?:run|call)|check_call|check_output|Popen|getoutput|"
    r"getstatusoutput|create_subprocess_\w+|run(?=\s*\(\s*\[)|execSync|execFileSync|execFile|spawnSync|spawn|"
    r"(?:child_process|cp)\.exec|system|shell_exec|passthru|proc_open|popen|popen2e?|capture2e?|capture3|Deno\.Command)"
    r"\s*(?:\(|(?=['\"]))"
    r"|child_process['\"]\s*\)\.\w+\s*\("
)
_RUNS_TOO = re.compile(r"(?<![\w.>$:])exec\s*(?:\(|(?=['\"]))")
"""In Python this runs program text, elsewhere a command."""
_PROGRAM_FIRST = re.compile(r"\A(?:execFile|spawn|child_process|Deno)")
_SHELL_QUOTES = re.compile(r"(?:%x|qx)\s*[({/|]([^)}/|]{1,4000}+)[)}/|]")
_BACKTICKS = re.compile(r"`([^`\n]{1,4000})`")


@dataclass(frozen=True, slots=True)
class Run:
    """A command in program text: `text` for a shell, or `words` that are run as they are."""

    text: str = ""
    words: tuple[str, ...] = ()


def opened(code: str, program: str = "", operands: Sequence[str] = ()) -> tuple[str, ...]:
    """Paths that the text opens to read or copies, as they are written, `~` for the home. `operands`: its arguments."""
    if len(code) > MAX_CODE:
        return ()
    literals = Literals(code, program, operands)
    found: dict[str, None] = {}
    for match in _some(_OPENS, code):
        arguments = literals.arguments(match.end())
        if not (len(arguments) > 1 and any(_WRITING.match(mode) for mode in arguments[1][0])):
            found |= dict.fromkeys(_paths(arguments[0][0]))
    for start in receivers(code, _READS_ITSELF):
        found |= dict.fromkeys(_paths(literals.at(start)[0]))
    for match in _some(_PERL_OPENS, code) if program == "perl" else ():
        arguments = literals.arguments(match.end())
        if len(arguments) > 1 and any(mode.strip().startswith("<") for mode in arguments[0][0]):
            found |= dict.fromkeys(_paths(arguments[1][0]))
        elif len(arguments) == 1:
            found |= dict.fromkeys(_paths(value.lstrip("< ") for value in arguments[0][0] if not value.startswith((">", "|"))))
    if _TAKES_OPERANDS.search(code):
        found |= dict.fromkeys(_paths(word for word in operands if not word.startswith("-")))
        for match in _some(_SETS_OPERANDS, code) if program == "perl" else ():
            found |= dict.fromkeys(_paths(literals.at(match.end())[0]))
    for match in _some(_RUBY_OPENS, code) if program == "ruby" else ():
        found |= dict.fromkeys(_paths(literals.at(match.end())[0]))
    return tuple(found)[:_MAX_FOUND]


def runs(code: str, program: str = "", operands: Sequence[str] = ()) -> Iterator[Run]:
    """The commands that the text runs."""
    if len(code) > MAX_CODE:
        return
    literals = Literals(code, program, operands)
    quoting = program in {"perl", "ruby", "php"}
    calls = _some(_RUNS, code) + (_some(_RUNS_TOO, code) if not program.startswith("python") else [])
    for match in sorted(calls, key=lambda match: match.start()):
        arguments = literals.arguments(match.end())
        lists = [values for values, is_list in arguments if is_list and values]
        strings = [values[0] for values, is_list in arguments if values and not is_list]
        if lists and strings and _PROGRAM_FIRST.match(match[0]):
            yield Run(words=(strings[0], *lists[0]))
        elif lists:
            yield Run(words=tuple(lists[0]))
        elif len(strings) > 1 and quoting:
            yield Run(words=tuple(strings))
        elif strings:
            yield Run(text=strings[0])
    for pattern in (_SHELL_QUOTES, _BACKTICKS) if quoting else ():
        for match in _some(pattern, code):
            yield Run(text=match[1])


def _some(pattern: re.Pattern[str], code: str) -> list[re.Match[str]]:
    return [match for match, _ in zip(pattern.finditer(code), range(_MAX_FOUND), strict=False)]


def _paths(values: Sequence[str] | Iterator[str]) -> Iterator[str]:
    for value in values:
        if UNKNOWN not in value and 0 < len(value) <= 1_000 and "\n" not in value and "://" not in value:
            yield value
