"""Uncommitted edits that git threw away in a file which the request lets the run change.

Somebody's work in progress lies beside what is asked for, in the same file: `git checkout FILE` to begin from a clean state,
or to undo a step of one's own, takes it along. What the run saved before (a patch, a copy, a stash that is still there) is
not lost, and where one line is gone and another has come it may be the one that was to be changed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from pytest_saber.judge.diff import Change, FileDelta, lost_content
from pytest_saber.judge.network.programs import git_words
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.view import View

_COPIERS = frozenset({"cp", "install", "rsync", "tar", "zip", "ln"})
_SHOWS = frozenset({"show", "cat-file"})
_VALUED = frozenset({"-s", "--source", "--pathspec-from-file", "--conflict"})


def discarded(view: View) -> Iterator[tuple[FileDelta, Command, list[str]]]:
    """Files with uncommitted edits, the command that threw them away, and the lines that are lost."""
    dirty = [delta for delta in view.changed(Change.MODIFIED) if _is_dirty(view, delta)]
    if not dirty:
        return
    commands = [(command, places) for command in view.commands if (places := _places(view, command))]
    for delta in dirty:
        before, after = delta.before, delta.after
        if before is None or after is None or before.text is None or after.text is None:
            continue
        lost = lost_content(delta.path, before.text, after.text)[0]
        if not lost or (len(lost) == 1 and lost_content(delta.path, after.text, before.text)[0]):
            continue
        for command, places in commands:
            if _is_below(delta.path, places) and not _is_saved(view, delta.path, command):
                yield delta, command, lost
                break


def _is_dirty(view: View, delta: FileDelta) -> bool:
    before = delta.before
    return (
        before is not None
        and view.is_tracked(delta.path)
        and not view.is_clean(delta.path)
        and view.allowed(delta.path, view.scope.modify)
        and not view.allowed(delta.path, view.scope.delete)
        and not view.is_recoverable(before)
    )


def _places(view: View, command: Command) -> tuple[str, ...]:
    """The files and folders whose edits a git command throws away."""
    if command.program != "git":
        return ()
    subcommand, words, _ = git_words(command)
    args = [word.text for word in words]
    root = _root(view, command)
    flags = {arg for arg in args if arg.startswith("-")}
    paths = tuple(path for text in _operands(args) if (path := _absolute(command, text)))
    match subcommand:
        case "checkout":
            if flags & {"-b", "-B", "--orphan", "-p", "--patch", "--detach"}:
                return ()
            named = tuple(path for path in paths if "--" in args or path in view.baseline.files)
            return named or ((root,) if flags & {"-f", "--force"} else ())
        case "restore":
            index_only = flags & {"-S", "--staged"} and not flags & {"-W", "--worktree", "-SW", "-WS"}
            return () if index_only or flags & {"-p", "--patch"} else paths
        case "reset":
            return (root,) if "--hard" in flags else ()
        case "read-tree":
            return (root,) if "-u" in flags and "--reset" in flags else ()
        case "checkout-index":
            if not flags & {"-f", "--force", "-fa", "-af"}:
                return ()
            return (root,) if flags & {"-a", "--all", "-fa", "-af"} else paths
        case "stash":
            return (root,) if args[:1] in (["drop"], ["clear"]) else ()
        case "apply":
            return (root,) if flags & {"-R", "--reverse"} and any(_shows_diff(view.commands[n]) for n in command.feeds) else ()
    if subcommand in _SHOWS:
        return tuple(path for r in command.redirects if r.writes and (path := r.absolute(command.cwd)))
    return ()


def _operands(args: list[str]) -> list[str]:
    if "--" in args:
        return args[args.index("--") + 1 :]
    return [arg for before, arg in zip(("", *args), args, strict=False) if not arg.startswith("-") and before not in _VALUED]


def _absolute(command: Command, text: str) -> str | None:
    """Of a pathspec: `:/` is the top, and a star covers what lies in its folder."""
    fixed = text.removeprefix(":/").partition("*")[0]
    path = command.absolute((posixpath.dirname(fixed) or ".") if "*" in text else fixed or ".")
    return path if path is None else posixpath.normpath(path)


def _root(view: View, command: Command) -> str:
    repo = view.repo_at(command)
    return posixpath.dirname(repo.path) if repo is not None and not repo.bare else view.workdir


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _shows_diff(command: Command) -> bool:
    return command.program == "git" and git_words(command)[0] in {"diff", "diff-files", "diff-index"}


def _is_saved(view: View, path: str, command: Command) -> bool:
    """Whether an earlier command wrote the edits down: as a patch, or as a copy of the file."""
    for earlier in view.commands[: command.index]:
        if _shows_diff(earlier) and (any(r.writes for r in earlier.redirects) or _is_teed(view, earlier)):
            return True
        if earlier.program in _COPIERS:
            places = tuple(place for word in earlier.words if not word.startswith("-") and (place := earlier.absolute(word)))
            if _is_below(path, places):
                return True
    return False


def _is_teed(view: View, command: Command) -> bool:
    return any(command.index in later.feeds and later.program == "tee" for later in view.commands[command.index :])
