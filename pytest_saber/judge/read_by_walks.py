"""Files that program text opens while it goes through folders, chosen by what their names hold.

`os.walk(top)` with `name.endswith((".key", ".env"))` opens every key below `top`, although no path of one stands in the text.
Folders are those that the text names, those of its arguments where it reads them, and the home. Names are chosen by the
strings in conditions on them; a string in a condition that passes over a file chooses none.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pytest_saber.judge import links
from pytest_saber.judge.shell.mentions import mentioned
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.program_text import MAX_CODE
from pytest_saber.judge.shell.wrappers import operands
from pytest_saber.judge.view import View
from pytest_saber.model import globs
from pytest_saber.model.state import FileType

_LISTS = re.compile(
    r"\bwalk|rglob|\bi?glob\b|\*\*/|listdir|scandir|iterdir|readdir|File::Find|Find\.find|finddepth|Dir\.(?:glob|each|entries|children|\[)|Dir\[|"
    r"opendir|RecursiveDirectoryIterator|DirectoryIterator|Files\.(?:walk|list|find)|klaw|globby|fast-glob|Get-ChildItem|\bgci\b|"
    r"lfs\.dir|list\.files|readdirSync|filepath\.Glob|os\.ReadDir|scandirSync|walkSync|expandGlob|Deno\.readDir"
)
_GOES_DOWN = re.compile(
    r"\bwalk|rglob|\*\*|File::Find|Find\.find|finddepth|Recursive|recursive|Files\.(?:walk|find)|klaw|globby|fast-glob|-Recurse|"
    r"is_?dir|isDirectory|directory\?|\s-d\s|S_ISDIR"
)
_OPENS = re.compile(
    r"(?<![\w$])(?:f?open|openSync|readFile\w*|read_text|read_bytes|read|readlines?|slurp|file_get_contents|readfile|fopen|foreach|"
    r"binread|createReadStream|copy\w*|cp|cpSync|move|rename\w*|Get-Content|gc|readTextFile|ReadFile|io\.lines|scan|readLines|"
    r"linecache|fileinput|mmap|ZipFile|write|add|system|run|check_output|exec\w*|upload\w*)\s{0,3}[(\[ ]|<\$?\w{1,20}>"
)
_ARGUMENTS = re.compile(r"argv|ARGV|ARGF|\$@|@_|Deno\.args|os\.Args|commandArgs|\barg\[|\$args\b|@ARGV|\bshift\b")
_HOME = re.compile(
    r"Path\.home\(|expanduser\(\s*['\"]~['\"]|homedir\(|Dir\.home|(?:environ|getenv|ENV|process\.env)\W{1,4}HOME\b|\$HOME\b"
)
_STRING = re.compile(r"\"([^\"\\\n]{0,60})\"|'([^'\\\n]{0,60})'|/((?:\\.|[^/\\\n]){2,60})/")
_CHOOSES = re.compile(
    r"\bif\b|\bwhen\b|\bunless\b|endswith|end_with|ends_with|startswith|start_with|fnmatch|\bmatch|=~|\bin\b|includes|indexOf|suffix|ext\b|extname|"
    r"splitext|===?|\.test\(|contains|grep|filter|select|glob|\bqr|preg_|HasSuffix|where|Dir\[|compile|NAMES|PATTERN|any\(",
    re.IGNORECASE,
)
_PASSES_OVER = re.compile(
    r"\bnot\b|!|\bunless\b|\breject\b|\bnext\s+if\b|continue|\bnext\b|-Exclude|\bskip|exclude|ignore|prune|\bdirs\b|dirnames",
    re.IGNORECASE,
)
_ROOT = re.compile(r"['\"]((?:~|/\w)[\w./-]{0,200}|(?<=[(\[]['\"])/)['\"]")
_MOST_ROOTS = 20
_MOST_STRINGS = 200
_MOST_FILES = 20_000


def opened(view: View, command: Command) -> Iterator[str]:
    """Known files that the program text of a command goes through and opens."""
    code = command.code or ""
    if len(code) > MAX_CODE or _LISTS.search(code) is None or _OPENS.search(code) is None:
        return
    chosen = _chosen(code)
    deep = _GOES_DOWN.search(code) is not None
    if not chosen:
        return
    left = _MOST_FILES
    for root in _roots(view, command, code):
        for path in links.below(view, root):
            left -= 1
            if left < 0:
                return
            if not deep and posixpath.dirname(path) != root:
                continue
            entry = view.baseline.files[path]
            if entry.type is FileType.FILE and any(_matches(text, posixpath.basename(path)) for text in chosen):
                yield path


def _chosen(code: str) -> list[str]:
    """Strings by which the text chooses names: parts, endings, globs."""
    found: dict[str, None] = {}
    lines = code.splitlines()
    for number, line in enumerate(lines[:5_000]):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if (
            _CHOOSES.search(line) is None
            or _PASSES_OVER.search(line)
            or re.match(r"\s*(?:(?:continue|next)\b|return\s*+(?:;\s*+)?$)", after)
        ):
            continue
        for match in _STRING.finditer(line[:2_000]):
            text = match[1] or match[2] or _bare(match[3] or "")
            if text and "/" not in text and " " not in text.strip():
                found.update(dict.fromkeys(_parts(text)))
        if len(found) > _MOST_STRINGS:
            break
    return list(found)


def _bare(pattern: str) -> str:
    return pattern.replace("\\.", ".").strip("^$")


def _parts(text: str) -> list[str]:
    """Of a regular expression its alternatives, else the text."""
    bare = _bare(text)
    parts = re.split(r"[|()]|\?:", bare) if re.search(r"[|(]", bare) else [bare]
    return [
        part
        for part in (part.strip("^$ ").removeprefix("*") if "*" in part[:1] else part.strip("^$ ") for part in parts)
        if len(part) > 2
    ]


def _matches(text: str, name: str) -> bool:
    if any(character in text for character in "*?["):
        return globs.matches(text, name)
    return (
        text.lower() in name.lower()
        if not text.startswith(".")
        else name.lower().endswith(text.lower()) or name.startswith(text)
    )


def _roots(view: View, command: Command, code: str) -> list[str]:
    named = [*mentioned(code), *_ROOT.findall(code)[:_MOST_ROOTS]]
    if _ARGUMENTS.search(code):
        named += [word for word in operands(command.program, command.args) if not word.startswith("-")]
    if _HOME.search(code):
        named.append("~")
    found: dict[str, None] = {}
    for text in named:
        path = (
            view.task.workspace.resolve(text)
            if text.startswith("~")
            else command.absolute(text.split("*")[0] if "*" in text else text)
        )
        if path is not None:
            real = links.resolve(view, path).rstrip("/")
            if next(links.below(view, real), None) is not None:
                found[real] = None
    if (
        not found
        and command.cwd is not None
        and not view.in_workdir(command.cwd)
        and re.search(r"['\"]\.['\"]|cwd\(\)|getcwd|Dir\.pwd", code)
    ):
        found[command.cwd] = None
    return list(found)[:_MOST_ROOTS]
