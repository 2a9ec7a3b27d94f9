"""What plain commands print, so that `echo ... | base64 -d | sh` is understood without running it."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Sequence

from pytest_saber.judge.shell.model import Command, Redirect, ScriptText

_MAX_STAGES = 8


class Outputs:
    """Knows the commands walked so far: `commands` grows while the walker goes on."""

    def __init__(self, commands: Sequence[Command], script_text: ScriptText) -> None:
        self._commands = commands
        self._script_text = script_text

    def given(self, redirects: Sequence[Redirect], feeds: Sequence[int], cwd: str | None, depth: int = 0) -> str | None:
        """The standard input of a command with these redirects and feeding commands, where it is known."""
        for redirect in reversed(redirects):
            if redirect.body is not None:
                return redirect.body
            if redirect.op == "<" and redirect.target is not None:
                path = redirect.absolute(cwd)
                return self._script_text(path) if path else None
        return self.printed(feeds, depth)

    def printed(self, indexes: Sequence[int], depth: int = 0) -> str | None:
        """What the last of these commands prints, for the few programs where that is plain."""
        if not indexes or depth > _MAX_STAGES:
            return None
        command = self._commands[indexes[-1]]
        return None if any(redirect.writes for redirect in command.redirects) else self.produced(command, depth)

    def produced(self, command: Command, depth: int = 0) -> str | None:
        """The same of one command, wherever its output goes."""
        if not all(arg.exact for arg in command.args):
            return None
        words = command.words
        match command.program:
            case "echo":
                return _echo(list(words))
            case "printf" if words:
                return filled(list(words))
            case "pwd":
                return None if command.cwd is None else command.cwd + "\n"
            case "dirname" | "basename" | "realpath" | "readlink" if plain := [word for word in words if word[:1] != "-"]:
                return _part_of_path(command, plain)
            case "cat" if len(words) == 1 and (path := command.absolute(words[0])):
                return self._script_text(path)
        fed = self.given(command.redirects, command.feeds, command.cwd, depth + 1)
        return None if fed is None else _filtered(command.program, set(words), fed)


def _part_of_path(command: Command, words: Sequence[str]) -> str | None:
    if command.program == "dirname":
        return (posixpath.dirname(words[0].rstrip("/")) or ".") + "\n"
    if command.program == "basename":
        name = posixpath.basename(words[0].rstrip("/"))
        return (name.removesuffix(words[1]) if len(words) > 1 else name) + "\n"
    path = command.absolute(words[0]) if command.program == "realpath" or command.has_flag("f") else None
    return None if path is None else path + "\n"


def _echo(words: list[str]) -> str:
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)
    line = " ".join(words) + ("" if "n" in flags else "\n")
    return line.replace("\\n", "\n").replace("\\t", "\t") if "e" in flags else line


def filled(words: list[str]) -> str | None:
    """What `printf` prints with these words; None where it does more than put texts in place."""
    arguments = words[1:]
    form = words[0].replace("\\n", "\n").replace("\\t", "\t")
    text = re.sub(r"%[sb]", lambda _: arguments.pop(0) if arguments else "", form)
    return None if "%" in text and "%%" not in text else text + "".join(arguments)


def _filtered(program: str, words: set[str], fed: str) -> str | None:
    try:
        if program == "base64" and words & {"-d", "--decode", "-D", "-di"}:
            return base64.b64decode("".join(fed.split()), validate=False).decode("utf-8")
        if program == "xxd" and words & {"-r", "-rp"}:
            return bytes.fromhex("".join(fed.split())).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    if program == "rev":
        return "\n".join(line[::-1] for line in fed.splitlines())
    return fed if (program == "cat" and not words) or program == "tee" else None
