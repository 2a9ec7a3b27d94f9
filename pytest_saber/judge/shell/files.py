"""The text of files as the trace wrote it: a script that was run and then changed or removed is still known."""

from __future__ import annotations

from pytest_saber.judge.shell.model import Command, ScriptText
from pytest_saber.judge.shell.outputs import Outputs

_MAX_FILES = 500
_MAX_TEXT = 131_072
_EDITORS = frozenset({"sed", "perl", "ruby", "patch", "truncate", "dd", "ex", "ed", "vim", "rm", "install", "ln", "rsync"})

_RESTORES = frozenset(
    ["checkout", "restore", "switch", "stash", "reset", "pull", "merge", "rebase", "revert", "apply", "am", "cherry-pick", "mv"]
)


class Files:
    """Falls back to `script_text`, what the evidence holds, for files that the trace did not plainly write."""

    def __init__(self, script_text: ScriptText) -> None:
        self._script_text = script_text
        self._written: dict[str, str] = {}

    def text(self, path: str) -> str | None:
        """What the file holds at this point of the run, None where that is not known."""
        return self._written[path] if path in self._written else self._script_text(path)

    def written(self, path: str) -> str | None:
        """The same, if the run wrote it plainly."""
        return self._written.get(path)

    def write(self, path: str, text: str | None, *, append: bool = False) -> None:
        """The file now holds `text`, None where only run time knows what."""
        if append and text is not None:
            before = self._written.get(path)
            text = None if before is None else before + text
        if text is None or len(text) > _MAX_TEXT or (path not in self._written and len(self._written) >= _MAX_FILES):
            self._written.pop(path, None)
        else:
            self._written[path] = text

    def note(self, command: Command, outputs: Outputs) -> None:
        """Follow what a command writes: redirects, `tee`, `cp` and `mv`; any other edit makes the text unknown again."""
        targets = [
            (path, redirect.op)
            for redirect in command.redirects
            if redirect.writes and "&" not in redirect.op and (path := redirect.absolute(command.cwd))
        ]
        operands = [path for word in command.words if not word.startswith("-") and (path := command.absolute(word))]
        if command.program == "tee":
            targets += [(path, ">>" if command.has_flag("a", "--append") else ">") for path in operands]
        if targets:
            made = outputs.produced(command)
            for path, op in targets:
                self.write(path, made, append=op == ">>")
        elif command.program in {"cp", "mv"} and len(operands) == 2:
            source, target = operands
            self.write(target, self._written.get(source))
            if command.program == "mv":
                self._written.pop(source, None)
        elif command.program == "git" and _RESTORES & set(command.words):
            self._written.clear()
        elif command.program in _EDITORS:
            for path in operands:
                self._written.pop(path, None)
