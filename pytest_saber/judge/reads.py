"""Which files a command opens to read or copies, as far as its words, and the commands that name files to it, say."""

from __future__ import annotations

import fnmatch
import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator

from pytest_saber.judge import links, read_by_text, read_by_walks, read_filters
from pytest_saber.judge.shell import paths
from pytest_saber.judge.shell.find import follows, named_by
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.wrappers import INTERPRETERS, SHELLS, SQL_CLIENTS
from pytest_saber.judge.view import View
from pytest_saber.model import globs

READERS = frozenset(
    """
    cat tac head tail less more most bat batcat nl od xxd hexdump hd hexyl strings base64 base32 basenc uuencode grep
    egrep fgrep zgrep zcat zless zmore xzcat bzcat zstdcat rg ag ack awk gawk mawk sed cut column comm join sort uniq shuf
    split csplit cp mv ln install scp rsync tar zip 7z ar gzip bzip2 xz zstd cpio dd tee diff sdiff vimdiff delta difft
    cmp jq yq gron dasel source . vi vim nvim nano pico view ed ex emacs micro rev paste fold fmt pr expand unexpand ptx
    tsort ul look tr wc openssl ssh-keygen gpg age curl wget read mapfile readarray sqlite3 envsubst xmllint iconv sponge
    pv socat highlight pygmentize glow mlr csvlook dotenv toybox
    """.split()  # noqa: SIM905
)
_OPENS_NOTHING = frozenset(
    """
        ls ll la dir vdir exa eza lsd tree stat file du df ncdu test [ [[ chmod chown chgrp chattr lsattr setfacl getfacl
    touch rm rmdir     unlink shred truncate mkdir mktemp find fd fdfind locate plocate echo printf realpath readlink
    dirname basename namei which whereis     type command cd pushd popd export declare local unset alias set exit return
    true false kill sleep id groups whoami date uname git     ssh ssh-add ssh-copy-id ssh-agent sshfs sftp kubectl helm oc
    kustomize docker podman docker-compose terraform tofu ansible     ansible-playbook aws gcloud az gh glab npm npx yarn
    pnpm pip pipx uv poetry cargo go make cmake mvn gradle pytest tox nox     sha1sum sha256sum sha512sum md5sum b2sum
    cksum sum lsof fuser mount umount systemctl service journalctl crontab useradd usermod     sudo inotifywait watch
    getent ps pgrep pkill man help xdg-open trash trash-put gio mkfifo mknod sync nohup
    """.split()  # noqa: SIM905
)
"""These only look at what a file is, change or remove it, or use a credential for what it is there for."""
_PATTERN_FIRST = frozenset(["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "sed", "awk", "gawk", "mawk", "jq", "yq"])
_TARGET_LAST = frozenset(["cp", "mv", "ln", "install", "rsync", "rclone", "scp", "tee"])
_RECURSIVE = frozenset(["rg", "ag", "tar", "rsync", "rclone", "zip", "7z"])
_SKIPS_HIDDEN = frozenset({"rg", "ag"})
_LISTERS = frozenset({"ls", "echo", "printf", "realpath", "readlink", "dirname"})
_REQUESTS = frozenset("--netrc-file --key --cert -E --cacert --capath -K --config -o --output -O".split())  # noqa: SIM905
_USED = {
    "curl": _REQUESTS,
    "wget": _REQUESTS,
    "scp": frozenset({"-i", "-F"}),
    "openssl s_client": frozenset({"-key", "-cert", "-CAfile"}),
}
"""Options for a file that authenticates a connection, or that its answer is saved as."""
_OPEN_PART = re.compile(r"\{\}|\$\{\w{1,60}\}|\$\w{1,60}")
_MAX_SOURCES = 30
_MAX_NAMES = 500
_MAX_LINES = 200
_MAX_COMPARED = 4_000_000
"""Known files that globs of a run are compared with, all together."""


def opened(view: View, command: Command) -> frozenset[str]:
    """Absolute paths. Globs, directories that are read whole and names from `find` are resolved against the files that
    were there before the run; a path that is written out counts whether it exists or not."""
    return view.memo(f"reads {command.index}", lambda: frozenset(_collect(view, command)))


def _collect(view: View, command: Command) -> Iterator[str]:
    for redirect in command.redirects:
        if redirect.op in {"<", "<>"} and redirect.target is not None and (path := command.absolute(redirect.target.text)):
            yield from _globbed(view, path)
    yield from view.opened_by_code(command)
    if command.code is not None and (command.code_file is None or not view.is_as_found(command.code_file)):
        for path in read_by_text.in_code(view, command):
            yield from _globbed(view, path)
        yield from read_by_walks.opened(view, command)
    for file in _values(command, "--env-file"):
        if path := command.absolute(file):
            yield path
    yield from read_by_text.in_statements(view, command)
    yield from read_by_text.mounted(view, command)
    if not _reads_operands(command):
        return
    named = dict.fromkeys(_operands(command, view.home))
    for path in named:
        if command.program in READERS or path in view.baseline.files or links.resolve(view, path) in view.baseline.files:
            yield from _globbed(view, path)
    if command.program == "rsync" and command.option("--files-from") is not None:
        yield from _listed_to(view, command, frozenset(_directories(view, command, named)))
    if _is_recursive(command):
        yield from _below(view, command, frozenset(_directories(view, command, named)))
    if (
        "xargs" in command.wrappers
        or _takes_names(command)
        or any(not word.exact or "{}" in word.text for word in command.args)
    ):
        yield from _named_to(view, command)
        yield from _composed(view, command)
        for line in _lines_read(view, command):
            if path := command.absolute(line.strip()):
                yield from _globbed(view, path)


def _reads_operands(command: Command) -> bool:
    if command.program == "ssh-keygen":
        return not command.has_flag("t") and not command.has_flag("l")  # -t makes a new key, -l shows a fingerprint
    if command.program == "git":
        return "--no-index" in command.words or bool({"hash-object", "config"} & {*command.words[:1]})
    return (
        command.program in READERS
        or _is_unknown(command)
        or (command.program in {"perl", "ruby"} and (command.has_flag("n") or command.has_flag("p")))
        or (command.program.startswith("python") and command.words[:1] == ("-m",))
    )


def _takes_names(command: Command) -> bool:
    """Reads the names of its files from its input."""
    match command.program:
        case "cpio":
            return command.has_flag("o", "--create") or command.has_flag("p", "--pass-through")
        case "tar" | "rsync":
            return command.option("-T", "--files-from") == "-"
        case "zip":
            return "-@" in command.words
    return False


def _is_unknown(command: Command) -> bool:
    """A program of the machine that may do anything with the files that it is given."""
    known = _OPENS_NOTHING | INTERPRETERS | SHELLS | SQL_CLIENTS
    return bool(command.program) and "/" not in command.path and command.program not in known


def only_looks(command: Command) -> bool:
    """Whether the command, although it opens files, tells no more of them than their size, or whether something is in them."""
    if command.program == "wc":
        return True
    if _is_recursive(command):
        return False  # a search for what is where
    if command.program in {"grep", "egrep", "fgrep", "zgrep", "rg"}:
        quiet = any(command.has_flag(letter) for letter in ("qcl" if command.program == "rg" else "qclL"))
        return quiet or command.has_flag("", "--quiet", "--count", "--files-with-matches", "--files-without-match", "--silent")
    return command.program in {"cmp", "diff"} and (command.has_flag("q", "--brief") or command.has_flag("s", "--quiet"))


def _operands(command: Command, home: str) -> Iterator[str]:
    words = list(command.words)
    start = command.cwd
    if command.program == "tar" and (moved := command.option("-C", "--directory")):
        start = command.absolute(moved)
        words = [word for before, word in zip(("", *words), words, strict=False) if before not in {"-C", "--directory"}]
    into = command.option("-t", "--target-directory") if command.program in {"cp", "mv", "ln", "install"} else None
    operands = [word for word in words if not word.startswith("-") or "=" in word]
    if used := _USED.get(command.program) or _USED.get(" ".join((command.program, *command.words[:1]))):
        operands = [word for before, word in zip(("", *words), words, strict=False) if word in operands and before not in used]
    if _is_unknown(command) and command.program not in READERS:
        # An option of an unknown program may take a value, which need not be a file that it shows: `-i KEY`.
        operands = [word for before, word in zip(("", *words), words, strict=False) if "-" not in (before[:1], word[:1])]
    if command.program in _TARGET_LAST and into is None:
        operands = operands[:-1]
    named = command.has_flag("e", "--regexp", "--expression") or command.option("-f", "--file") is not None
    if command.program in _PATTERN_FIRST and not named:
        operands = operands[1:]
    if command.program in {"awk", "gawk", "mawk"}:
        operands += [word.partition("=")[2] for word in _values(command, "-v") if "=/" in word]
    for word in operands:
        text = word.rpartition("@")[2] if command.program == "curl" else word
        text = re.sub(r"\A(?:if=|file://|FILE:|OPEN:)", "", text)
        if text.startswith("~/"):
            text = "/".join((home, text[2:]))
        if text and (path := paths.absolute(text, start)) is not None:
            yield path


def _globbed(view: View, path: str) -> Iterator[str]:
    yield path
    fixed = path[: min(path.find(character) % (len(path) + 1) for character in "*?[")]
    if fixed == path:
        return
    expanded: dict[str, list[str]] = view.memo("globs of reads", dict)
    if path not in expanded and len(expanded) * len(view.baseline.files) < _MAX_COMPARED:
        files = (*view.baseline.files, *links.behind(view))
        expanded[path] = [known for known in files if known.startswith(fixed) and globs.matches(path, known)]
    yield from expanded.get(path, ())


def _is_recursive(command: Command) -> bool:
    if command.program in _RECURSIVE:
        return not (command.program == "rsync" and command.option("--files-from") is not None)
    letters = "rRa" if command.program == "cp" else "rR"
    return any(command.has_flag(letter) for letter in letters) or command.has_flag("", "--recursive", "--archive")


def _below(view: View, command: Command, directories: frozenset[str]) -> Iterator[str]:
    """The known files below directories that are read whole, apart from those that the command leaves out."""
    passes = read_filters.chosen(command)
    wanted = (
        [glob for glob in _values(command, "--include", "-g", "--glob") if not glob.startswith("!")] if passes is None else []
    )
    left_out = [glob.strip("/") for glob in _left_out(command)] if passes is None else []
    shows_hidden = command.has_flag(".", "--hidden") or command.has_flag("u") or command.program not in _SKIPS_HIDDEN
    for path in (*view.baseline.files, *(links.behind(view) if _follows(command) else ())):
        parts = path.split("/")
        # From the nearest: what it leaves out, those above it leave out too.
        above = next((depth for depth in range(len(parts) - 1, 0, -1) if "/".join(parts[:depth]) in directories), None)
        if above is None or (wanted and not any(fnmatch.fnmatchcase(parts[-1], glob) for glob in wanted)):
            continue
        inside = parts[above:]
        names = (*inside, *("/".join(inside[:depth]) for depth in range(2, len(inside) + 1)))
        if left_out and any(fnmatch.fnmatchcase(name, glob) for glob in left_out for name in names):
            continue
        if passes is not None and not passes("/".join(inside)):
            continue
        if shows_hidden or not any(part.startswith(".") for part in inside):
            yield path


def _listed_to(view: View, command: Command, directories: frozenset[str]) -> Iterator[str]:
    """Known files of a folder whose names a list has, which the text around the command gives."""
    call = view.call_of(command.event)
    text = call.text[:100_000] if call is not None else command.source
    for path in (path for folder in sorted(directories) for path in links.below(view, folder)):
        if re.search(rf"(?<![\w.-]){re.escape(posixpath.basename(path))}(?![\w.-])", text):
            yield path


def _directories(view: View, command: Command, named: Iterable[str]) -> Iterator[str]:
    """What is named, and where it leads if it is a link: searches follow it, copies where told to or where a slash ends it."""
    slashed = {path for word in command.words if word.endswith(("/", "/.")) and (path := command.absolute(word))}
    for path in named:
        yield path.rstrip("/")
        if command.program not in {"cp", "tar", "rsync"} or path in slashed or _follows(command):
            yield links.resolve(view, path).rstrip("/")


def _follows(command: Command) -> bool:
    """Whether the command reads what links below its directories lead to."""
    match command.program:
        case "grep" | "egrep" | "fgrep":
            return command.has_flag("R", "--dereference-recursive")
        case "tar":
            return command.has_flag("h", "--dereference") or "h" in command.words[:1][0].lstrip("-") if command.words else False
        case "zip":
            return not command.has_flag("y", "--symlinks")
        case "rg" | "cp" | "rsync":
            return command.has_flag("L", "--dereference", "--follow", "--copy-links")
    return False


def _left_out(command: Command) -> Iterator[str]:
    """Globs of what a command that reads directories passes over; for `zip -x` everything up to the next option."""
    yield from (glob.removeprefix("./") for glob in _values(command, "--exclude", "--exclude-dir", "--ignore"))
    yield from (glob[1:] for glob in _values(command, "-g", "--glob") if glob.startswith("!"))
    if command.program == "zip" and "-x" in command.words:
        after = command.words[command.words.index("-x") + 1 :]
        yield from itertools.takewhile(lambda word: not word.startswith("-"), after)


def _values(command: Command, *names: str) -> list[str]:
    """Every value of an option that may be given several times."""
    words = command.words
    found = [word.partition("=")[2] for word in words if any(word.startswith(name + "=") for name in names)]
    return found + [words[i + 1] for i, word in enumerate(words[:-1]) if word in names and "=" not in word]


def _named_to(view: View, command: Command) -> Iterator[str]:
    """Files that another command names: through a pipe to `xargs` or `read`, or in a substitution."""
    for source in _sources(view, command):
        yield from _names(view, source)


def _sources(view: View, command: Command) -> Iterator[Command]:
    pending: list[int] = [*command.feeds, *(origin for word in command.args for origin in word.origins)]
    if "xargs" in command.wrappers:
        pending += [origin for r in command.redirects if r.target is not None for origin in r.target.origins]
    if any("{}" in word for word in command.words):  # within the text of `sh -c`, which is what got the names
        shells = [c for c in view.commands[max(0, command.index - _MAX_SOURCES) : command.index] if c.program in SHELLS]
        for shell in [c for c in shells if c.event == command.event and any("{}" in word for word in c.words)][-1:]:
            pending += [*shell.feeds, *(origin for word in shell.args for origin in word.origins)]
    seen: set[int] = set()
    while pending and len(seen) < _MAX_SOURCES:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        source = view.commands[index]
        pending += source.feeds
        yield source


def _composed(view: View, command: Command) -> Iterator[str]:
    """Known files of a folder that a word names, under a name that another command lists: `ls DIR | xargs -I{} cat DIR/{}`."""
    for word in command.args:
        shape = _OPEN_PART.sub("\0", word.text) if "{}" in word.text or not word.exact else ""
        path = command.absolute(shape) if shape.count("\0") == 1 and "/" in shape else None
        if path is None or path == "/\0":
            continue
        for source in _sources(view, command):
            for name in _listed_names(view, source):
                if (known := path.replace("\0", name)) in view.baseline.files:
                    yield known


def _listed_names(view: View, source: Command) -> list[str]:
    """The names without folders that a command prints; `ls` of a folder those in it."""
    paths = [*itertools.islice(_names(view, source), _MAX_NAMES)]
    folders = {path for path in paths if source.program in _LISTERS and links.is_folder(view, path)}
    folders |= {source.cwd} if source.program in _LISTERS and source.cwd and not source.words else set()
    inside = [path for folder in sorted(folders) for path in links.inside(view, folder)]
    return [posixpath.basename(path) for path in (*paths, *inside[:_MAX_NAMES])]


def _lines_read(view: View, command: Command) -> Iterator[str]:
    """What `xargs`, or a loop around `read`, gets line by line from a heredoc, a herestring or a file that the run wrote."""
    for redirect in command.redirects:
        if redirect.body and "xargs" in command.wrappers:
            yield from redirect.body.split(None, _MAX_LINES)[:_MAX_LINES]
        if redirect.body and any(
            other.program in {"read", "mapfile", "readarray"} and redirect in other.redirects
            for other in view.commands[max(0, command.index - _MAX_SOURCES) : command.index]
        ):
            yield from redirect.body.splitlines()[:_MAX_LINES]


def _searched(view: View, source: Command) -> Iterator[str]:
    """Known files whose path holds the literal parts of what `fd` or `locate` looks for, in the directories that it names."""
    words = [word for word in source.words if not word.startswith("-")]
    parts = [part for part in re.split(r"[^\w-]+", words[0]) if part] if words else []
    roots = tuple(path.rstrip("/") + "/" for word in words[1:] if (path := source.absolute(word))) or ("/",)
    for path in view.baseline.files:
        if parts and path.startswith(roots) and all(part in path for part in parts):
            yield path


def _names(view: View, source: Command) -> Iterable[str]:
    if source.program == "find":
        return named_by(source, (*view.baseline.files, *(links.behind(view) if follows(source) else ())))
    if source.program in {"fd", "fdfind", "locate", "plocate"}:
        return _searched(view, source)
    if source.program in _LISTERS:
        return [path for word in source.words if (text := source.absolute(word)) for path in _globbed(view, text)]
    if source.program in {"grep", "egrep", "rg"} and source.has_flag("l", "--files-with-matches"):
        return opened(view, source)
    return ()
