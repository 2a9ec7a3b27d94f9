"""Which files a command opens to read or copies, as far as its words, and the commands that name files to it, say."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterable, Iterator

from pytest_saber.judge.shell.find import named_by
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.view import View
from pytest_saber.model import globs

READERS = frozenset(
    [
        "cat",
        "tac",
        "head",
        "tail",
        "less",
        "more",
        "most",
        "bat",
        "nl",
        "od",
        "xxd",
        "hexdump",
        "hd",
        "strings",
        "base64",
        "base32",
        "grep",
        "egrep",
        "fgrep",
        "zgrep",
        "zcat",
        "rg",
        "ag",
        "awk",
        "gawk",
        "mawk",
        "sed",
        "cut",
        "column",
        "comm",
        "join",
        "sort",
        "uniq",
        "shuf",
        "split",
        "cp",
        "mv",
        "ln",
        "install",
        "scp",
        "rsync",
        "tar",
        "zip",
        "7z",
        "gzip",
        "bzip2",
        "xz",
        "zstd",
        "cpio",
        "dd",
        "tee",
        "diff",
        "cmp",
        "jq",
        "yq",
        "source",
        ".",
        "vi",
        "vim",
        "nano",
        "view",
        "ed",
        "ex",
        "emacs",
        "rev",
        "paste",
        "fold",
        "fmt",
        "pr",
        "tr",
        "wc",
        "openssl",
        "ssh-keygen",
        "gpg",
        "curl",
        "wget",
        "read",
        "mapfile",
        "sqlite3",
        "envsubst",
        "xmllint",
        "iconv",
        "sponge",
        "pv",
    ]
)
_PATTERN_FIRST = frozenset(["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "sed", "awk", "gawk", "mawk", "jq", "yq"])
_TARGET_LAST = frozenset(["cp", "mv", "ln", "install", "rsync", "scp", "tee"])
_RECURSIVE = frozenset(["rg", "ag", "tar", "rsync", "zip", "7z"])
_SKIPS_HIDDEN = frozenset({"rg", "ag"})
_LISTERS = frozenset({"ls", "echo", "printf", "realpath", "readlink", "dirname"})
_MAX_SOURCES = 30
_MAX_LINES = 200
_MAX_COMPARED = 4_000_000
"""Known files that globs of a run are compared with, all together."""


def opened(view: View, command: Command) -> frozenset[str]:
    """Absolute paths. Globs, directories that are read whole and names from `find` are resolved against the files that
    were there before the run; a path that is written out counts whether it exists or not."""
    return view.memo(f"reads {command.index}", lambda: frozenset(_collect(view, command)))


def _collect(view: View, command: Command) -> Iterator[str]:
    for redirect in command.redirects:
        if redirect.op == "<" and redirect.target is not None and (path := command.absolute(redirect.target.text)):
            yield from _globbed(view, path)
    yield from view.opened_by_code(command)
    if not _reads_operands(command):
        return
    named = dict.fromkeys(_operands(command))
    for path in named:
        yield from _globbed(view, path)
    if _is_recursive(command):
        yield from _below(view, command, frozenset(path.rstrip("/") for path in named))
    if "xargs" in command.wrappers or any(not word.exact or "{}" in word.text for word in command.args):
        yield from _named_to(view, command)
        for line in _lines_read(view, command):
            if path := command.absolute(line.strip()):
                yield from _globbed(view, path)


def _reads_operands(command: Command) -> bool:
    if command.program == "ssh-keygen":
        return not command.has_flag("t")  # -t makes a new key
    return (
        command.program in READERS
        or (command.program == "git" and "--no-index" in command.words)
        or (command.program in {"perl", "ruby"} and (command.has_flag("n") or command.has_flag("p")))
        or (command.program.startswith("python") and command.words[:1] == ("-m",))
    )


def _operands(command: Command) -> Iterator[str]:
    words = list(command.words)
    start = command.cwd
    if command.program == "tar" and (moved := command.option("-C", "--directory")):
        start = command.absolute(moved)
        words = [word for before, word in zip(("", *words), words, strict=False) if before not in {"-C", "--directory"}]
    into = command.option("-t", "--target-directory") if command.program in {"cp", "mv", "ln", "install"} else None
    operands = [word for word in words if not word.startswith("-") or "=" in word]
    if command.program in _TARGET_LAST and into is None:
        operands = operands[:-1]
    named = command.has_flag("e", "--regexp", "--expression") or command.option("-f", "--file") is not None
    if command.program in _PATTERN_FIRST and not named:
        operands = operands[1:]
    for word in operands:
        text = word.rpartition("@")[2] if command.program == "curl" else word
        text = text.removeprefix("if=").removeprefix("file://")
        if text.startswith("/"):
            yield posixpath.normpath(text)
        elif start is not None and text:
            yield posixpath.normpath(posixpath.join(start, text))


def _globbed(view: View, path: str) -> Iterator[str]:
    yield path
    fixed = path[: min(path.find(character) % (len(path) + 1) for character in "*?[")]
    if fixed == path:
        return
    expanded: dict[str, list[str]] = view.memo("globs of reads", dict)
    if path not in expanded and len(expanded) * len(view.baseline.files) < _MAX_COMPARED:
        expanded[path] = [known for known in view.baseline.files if known.startswith(fixed) and globs.matches(path, known)]
    yield from expanded.get(path, ())


def _is_recursive(command: Command) -> bool:
    if command.program in _RECURSIVE:
        return True
    letters = "rRa" if command.program == "cp" else "rR"
    return any(command.has_flag(letter) for letter in letters) or command.has_flag("", "--recursive", "--archive")


def _below(view: View, command: Command, directories: frozenset[str]) -> Iterator[str]:
    """The known files below directories that are read whole, apart from those that the command leaves out."""
    wanted = _values(command, "--include", "-g", "--glob")
    left_out = [glob.strip("/") for glob in _values(command, "--exclude", "--exclude-dir")]
    shows_hidden = command.has_flag(".", "--hidden") or command.has_flag("u") or command.program not in _SKIPS_HIDDEN
    for path in view.baseline.files:
        parts = path.split("/")
        # From the nearest: what it leaves out, those above it leave out too.
        above = next((depth for depth in range(len(parts) - 1, 0, -1) if "/".join(parts[:depth]) in directories), None)
        if above is None or (wanted and not any(fnmatch.fnmatchcase(parts[-1], glob) for glob in wanted)):
            continue
        inside = parts[above:]
        if any(fnmatch.fnmatchcase(part, glob) for glob in left_out for part in inside):
            continue
        if shows_hidden or not any(part.startswith(".") for part in inside):
            yield path


def _values(command: Command, *names: str) -> list[str]:
    """Every value of an option that may be given several times."""
    words = command.words
    found = [word.partition("=")[2] for word in words if any(word.startswith(name + "=") for name in names)]
    return found + [words[i + 1] for i, word in enumerate(words[:-1]) if word in names and "=" not in word]


def _named_to(view: View, command: Command) -> Iterator[str]:
    """Files that another command names: through a pipe to `xargs` or `read`, or in a substitution."""
    pending: list[int] = [*command.feeds, *(origin for word in command.args for origin in word.origins)]
    seen: set[int] = set()
    while pending and len(seen) < _MAX_SOURCES:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        source = view.commands[index]
        pending += source.feeds
        yield from _names(view, source)


def _lines_read(view: View, command: Command) -> Iterator[str]:
    """What a loop around `read` gets line by line from a heredoc or herestring."""
    for redirect in command.redirects:
        if redirect.body and any(
            other.program in {"read", "mapfile", "readarray"} and redirect in other.redirects
            for other in view.commands[max(0, command.index - _MAX_SOURCES) : command.index]
        ):
            yield from redirect.body.splitlines()[:_MAX_LINES]


def _names(view: View, source: Command) -> Iterable[str]:
    if source.program == "find":
        return named_by(source, view.baseline.files)
    if source.program in _LISTERS:
        return [path for word in source.words if (text := source.absolute(word)) for path in _globbed(view, text)]
    if source.program in {"grep", "egrep", "rg"} and source.has_flag("l", "--files-with-matches"):
        return opened(view, source)
    return ()
