"""Programs that run another program: what is left once they are taken off the front of a command."""

from __future__ import annotations

import itertools
import posixpath
import re
from dataclasses import dataclass

from pytest_saber.judge.shell.model import Word

MAX_WRAPPERS = 12

_VALUE_OPTIONS: dict[str, frozenset[str]] = {
    "sudo": frozenset(
        [
            "-u",
            "-g",
            "-h",
            "-p",
            "-C",
            "-r",
            "-t",
            "-T",
            "-U",
            "-D",
            "-R",
            "--user",
            "--group",
            "--host",
            "--prompt",
            "--chdir",
            "--chroot",
        ]
    ),
    "doas": frozenset({"-u", "-C"}),
    "env": frozenset(["-u", "-C", "-S", "--unset", "--chdir", "--split-string"]),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset(["-c", "-n", "-p", "--class", "--classdata"]),
    "timeout": frozenset(["-k", "-s", "--kill-after", "--signal"]),
    "stdbuf": frozenset(["-i", "-o", "-e", "--input", "--output", "--error"]),
    "xargs": frozenset(
        [
            "-a",
            "-d",
            "-E",
            "-I",
            "-L",
            "-n",
            "-P",
            "-s",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--replace",
            "--max-lines",
        ]
    ),
    "time": frozenset({"-f", "-o", "--format", "--output"}),
    "strace": frozenset(["-e", "-o", "-p", "-s", "-u"]),
    "flock": frozenset(["-w", "-E", "--timeout", "--wait", "--conflict-exit-code"]),
    "chroot": frozenset({"--userspec", "--groups"}),
    "unshare": frozenset({"-S", "-G", "--setuid", "--setgid"}),
    "setpriv": frozenset(["--reuid", "--regid", "--groups", "--securebits"]),
    "parallel": frozenset(["-j", "--jobs", "-a", "--arg-file", "--colsep"]),
    "watch": frozenset({"-n", "--interval"}),
    "exec": frozenset({"-a"}),
    "npx": frozenset({"-p", "--package"}),
    "sshpass": frozenset({"-p", "-f", "-d", "-P"}),
    "torsocks": frozenset(),
    "proxychains": frozenset({"-f"}),
    "proxychains4": frozenset({"-f"}),
}
_PLAIN = frozenset(["nohup", "setsid", "command", "builtin", "eatmydata", "busybox", "then", "do"])
_OPERANDS = {"timeout": 1, "flock": 1, "chroot": 1}
SHELLS = frozenset(["bash", "sh", "dash", "zsh", "ksh", "ash"])
INTERPRETERS = frozenset(
    [
        "python",
        "python2",
        "python3",
        "perl",
        "node",
        "nodejs",
        "ruby",
        "php",
        "deno",
        "bun",
        "lua",
        "awk",
        "gawk",
        "mawk",
        "tclsh",
    ]
)
_MODULES = {
    "twine": "twine",
    "flit": "flit",
    "poetry": "poetry",
    "hatch": "hatch",
    "pdm": "pdm",
    "uv": "uv",
    "awscli": "aws",
    "httpie": "http",
    "mkdocs": "mkdocs",
    "mike": "mike",
    "pre_commit": "pre-commit",
    "alembic": "alembic",
    "django": "django-admin",
    "detect_secrets": "detect-secrets",
    "sshuttle": "sshuttle",
    "dvc": "dvc",
    "wandb": "wandb",
}
"""Python modules that are programs of their own, as `python -m NAME` runs them."""
_RUNNERS = frozenset({"npx", "bunx", "uvx", "pnpx"})
_RUNNER_VERBS = {
    "pnpm": {"dlx", "exec"},
    "yarn": {"dlx", "exec"},
    "npm": {"exec", "x"},
    "pipx": {"run"},
    "poetry": {"run"},
    "pipenv": {"run"},
    "pdm": {"run"},
    "uv": {"run"},
    "hatch": {"run"},
    "rye": {"run"},
    "bundle": {"exec"},
    "conda": {"run"},
    "direnv": {"exec"},
}
_RUNNER_VALUES = frozenset(
    ["-p", "--package", "--from", "--with", "--python", "--spec", "-n", "--name", "--group", "--project"]
)
_REMOTE_EXEC = re.compile(
    r"(?:docker|podman)(?: compose|-compose)?(?: -\S+(?: [^-\s]\S*)?){0,6}? (?:exec|run) (?:-\S+ (?:\w+=\S+ )?)*\S+ |"
    r"kubectl (?>(?:\S+ )*?exec )(?:\S+ )*?-- |"
    r"heroku run (?:-\S+ (?:\S+ )?)*|fly(?:ctl)? ssh console -C |vagrant ssh -c "
)
SQL_CLIENTS = frozenset(
    [
        *("psql", "mysql", "mariadb", "cockroach", "clickhouse-client", "sqlcmd", "cqlsh", "pgcli", "mycli", "usql", "snowsql"),
        *("trino", "presto", "beeline", "hive", "impala-shell", "isql", "vsql", "sqlplus", "mssql-cli", "ysqlsh"),
    ]
)
"""Of database servers."""
KEY_VALUE_CLIENTS = frozenset({"redis-cli", "valkey-cli", "keydb-cli", "dragonfly-cli", "iredis"})
PIPES_TO_SERVERS = frozenset({"nc", "ncat", "netcat", "telnet", "socat"})
_CODE_OPTIONS = {
    "python": ("-c",),
    "perl": ("-e", "-E"),
    "node": ("-e", "--eval", "-p", "--print"),
    "ruby": ("-e",),
    "php": ("-r",),
    "deno": ("eval",),
    "bun": ("-e",),
    "lua": ("-e",),
}


@dataclass(frozen=True, slots=True)
class Stripped:
    """A command without its wrappers. `directory`: the one a wrapper changes to. `script` a shell text to parse instead."""

    words: tuple[Word, ...]
    wrappers: tuple[str, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    directory: Word | None = None
    script: Word | None = None
    names: Word | None = None
    """The file that `xargs -a` takes its arguments from."""


def program_name(word: str) -> str:
    """`/usr/bin/rm` and `\\rm` are `rm`; `python3.11` is `python3`."""
    name = posixpath.basename(word.rstrip("/")) or word
    return re.sub(r"^(python[23]?|pip[23]?|perl|ruby|node)[0-9.]*\Z", lambda m: m[1], name.lstrip("\\"))


def strip(words: tuple[Word, ...]) -> Stripped:
    """Take wrappers off the front, at most `MAX_WRAPPERS`. `env` and `sudo` may set variables for the command."""
    wrappers: list[str] = []
    assignments: list[tuple[str, Word]] = []
    directory: Word | None = None
    names: Word | None = None
    while words and len(wrappers) < MAX_WRAPPERS:
        name = program_name(words[0].text)
        if name == "su":
            wrappers.append(name)
            return Stripped((), tuple(wrappers), tuple(assignments), directory, _after(words, {"-c", "--command"}))
        if name in _PLAIN and len(words) > 1:
            if name == "command" and words[1].text in {"-v", "-V"}:
                break
            wrappers.append(name)
            words = words[1:]
            words = _skip_options(words, frozenset())
            continue
        if name not in _VALUE_OPTIONS or name == "npx":
            break
        rest = words[1:]
        if name == "env":
            split = _after(words, {"-S", "--split-string"})
            if split is not None:
                wrappers.append(name)
                return Stripped((), tuple(wrappers), tuple(assignments), directory, split)
            for position, word in enumerate(rest):
                gone = word.text.partition("=")[2] if word.text.startswith("--unset=") else ""
                gone = rest[position + 1].text if word.text in {"-u", "--unset"} and position + 1 < len(rest) else gone
                assignments += [(gone, Word("", ""))] if re.fullmatch(r"\w{1,200}", gone) else []
                if (
                    not word.text.startswith("-")
                    and "=" not in word.text
                    and (position == 0 or rest[position - 1].text != "-u")
                ):
                    break
        if name in {"env", "sudo"}:
            directory = _after(words, {"-C", "-D", "--chdir"}) or directory
        if name in {"xargs", "parallel"}:
            names = _after(words, {"-a", "--arg-file"}) or names
        rest, count = _skip_options(rest, _VALUE_OPTIONS[name]), 0
        for word in rest if name in {"env", "sudo", "doas"} else ():
            if not re.match(r"[A-Za-z_]\w*=", word.text):
                break
            key, _, value = word.text.partition("=")
            assignments.append((key, Word(value, word.source, word.exact, word.runs, depends=word.depends)))
            count += 1
        rest = rest[count + _OPERANDS.get(name, 0) :]
        if not rest and name not in {"xargs"}:
            break
        wrappers.append(name)
        words = rest
        if name == "flock" and words and words[0].text in {"-c", "--command"} and len(words) > 1:
            return Stripped((), tuple(wrappers), tuple(assignments), directory, words[1])
    return Stripped(words, tuple(wrappers), tuple(assignments), directory, names=names)


def _after(words: tuple[Word, ...], options: set[str]) -> Word | None:
    for position, word in enumerate(words[:-1]):
        if word.text in options:
            return words[position + 1]
    return None


def _skip_options(words: tuple[Word, ...], valued: frozenset[str]) -> tuple[Word, ...]:
    position = 0
    while position < len(words) and words[position].text.startswith("-") and len(words[position].text) > 1:
        option = words[position].text
        position += 2 if option in valued and option != "--" else 1
        if option == "--":
            break
    return words[position:]


def runner_command(program: str, args: tuple[Word, ...]) -> tuple[Word, ...]:
    """What `npx`, `poetry run`, `uv run` and the like run on this machine; nothing where it is another use of the program."""
    words = _skip_options(args, _RUNNER_VALUES)
    if program.startswith("python"):
        return _module_program(args)
    if program in _RUNNERS:
        return words
    verbs = _RUNNER_VERBS.get(program)
    if verbs is None or not words or words[0].text not in verbs:
        return ()
    return _skip_options(words[1:], _RUNNER_VALUES)


def _module_program(args: tuple[Word, ...]) -> tuple[Word, ...]:
    """Of `python [-I] -m twine upload ...`: `twine upload ...`; nothing for modules that are not programs of their own."""
    if [word.text for word in args[:1]] == ["setup.py"] and {"upload", "register"} & {word.text for word in args}:
        return Word("twine", "twine"), Word("upload", "upload"), *args[1:]
    position = next((i for i, word in enumerate(args[:6]) if word.text == "-m" or not word.text.startswith("-")), None)
    if position is None or args[position].text != "-m" or len(args) < position + 2:
        return ()
    name = _MODULES.get(args[position + 1].text.partition(".")[0])
    return () if name is None else (Word(name, name), *args[position + 2 :])


def elsewhere(program: str, words: tuple[str, ...]) -> str:
    """The command line that `docker exec`, `kubectl exec`, `ssh` and the like run on another machine; "" for other programs."""
    if program == "ssh":
        host = 0
        while host < len(words) and words[host].startswith("-"):
            host += 2 if re.fullmatch(r"-[BbcDEeFIiJLlmOopQRSWw]", words[host]) else 1
        return " ".join(words[host + 1 :])
    if program == "ansible":
        options = {"-a", "--args"}
        return next((value for option, value in itertools.pairwise(words) if option in options), "")
    line = " ".join((program, *words))
    match = _REMOTE_EXEC.match(line)
    return line[match.end() :] if match is not None else ""


_ONLY_PARSES = {"node": r"--check|-c", "perl": r"-\w*c\w*", "ruby": r"-\w*c\w*", "php": r"-l|--syntax-check"}


def only_parses(program: str, args: tuple[Word, ...]) -> bool:
    """Whether `sh -n`, `node --check` and the like only look at the syntax of what they are given."""
    pattern = r"-[a-z]*n[a-z]*" if program in SHELLS else _ONLY_PARSES.get(program)
    for word in args if pattern is not None else ():
        if not word.text.startswith("-") or word.text in {"-", "--", "-o", "-e", "-E", "-r"}:
            return False
        if re.fullmatch(pattern or "", word.text):
            return True
    return False


def shell_script(args: tuple[Word, ...]) -> tuple[Word | None, Word | None]:
    """Of `bash ...`: the `-c` text, or else the script file; (None, None) reads its standard input."""
    position = 0
    while position < len(args):
        text = args[position].text
        if text.startswith("-") and not text.startswith("--") and "c" in text[1:]:
            following = [word for word in args[position + 1 :] if word.text != "--"]
            return (following[0] if following else None), None
        if text in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}:
            position += 2
            continue
        if not text.startswith(("-", "+")) or text == "-":
            return (
                (None, None)
                if text == "-" or "s" in "".join(a.text for a in args[:position] if a.text[:1] == "-")
                else (None, args[position])
            )
        position += 1
    return None, None


def spawned(program: str, args: tuple[Word, ...]) -> str:
    """The shell text that `script -c` runs, and the commands that `expect -c` starts; "" where words do not tell."""
    for word, following in itertools.pairwise(args):
        if re.fullmatch(r"-[a-z]*c", word.text) or word.text == "--command":
            if program == "script":
                return following.text if following.exact else ""
            return "\n".join(re.findall(r"\bspawn\s+([^;\n]{1,2000})", following.text[:20_000]))
    return ""


def inline_code(program: str, args: tuple[Word, ...]) -> str | None:
    """The program text of `python -c TEXT`, `node -e TEXT` and the like."""
    family = re.sub(r"(?<=python)[23]|js\Z", "", program)
    if family in {"awk", "gawk", "mawk"}:
        plain = [word.text for word in args if not word.text.startswith("-")]
        return plain[0] if plain else None
    options = _CODE_OPTIONS.get(family, ())
    for position, word in enumerate(args):
        if word.text in options and position + 1 < len(args):
            return args[position + 1].text
        if family == "perl" and re.fullmatch(r"-[a-zA-Z0-9.]*[eE]", word.text) and position + 1 < len(args):
            return args[position + 1].text
        if family == "node" and re.fullmatch(r"-[a-z]*[pe]", word.text) and position + 1 < len(args):
            return args[position + 1].text
        if family == "python" and word.text.startswith("-c") and len(word.text) > 2:
            return word.text[2:]
        if not word.text.startswith("-"):
            return None
    return None


def operands(program: str, args: tuple[Word, ...]) -> tuple[str, ...]:
    """What an interpreter's program gets as arguments: the words after its text, its file, or `-`."""
    words = [word.text for word in args]
    code = inline_code(program, args)
    position = (
        words.index(code) if code in words else next((i for i, w in enumerate(words) if w == "-" or w[:1] != "-"), len(words))
    )
    return tuple(words[position + 1 :])
