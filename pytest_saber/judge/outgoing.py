"""Which files a command, or the commands piped into it, would send out."""

from __future__ import annotations

import posixpath

from pytest_saber.judge.reads import READERS
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.view import View


def files_sent(view: View, command: Command) -> frozenset[str]:
    """Absolute paths whose content the command reads: uploads, input redirects, what its feeding pipeline and the
    substitutions of its words read, and what program text given to it opens."""
    return view.memo(f"sends {command.index}", lambda: _files_sent(view, command))


def _files_sent(view: View, command: Command) -> frozenset[str]:
    paths: set[str] = set()
    for word in command.words:
        text = word.rpartition("@")[2] if "@" in word and "://" not in word else word
        text = text.split("=<", 1)[-1]
        if not text.startswith("-") and "://" not in text and (path := command.absolute(text)):
            paths.add(path)
    for redirect in command.redirects:
        if redirect.op.startswith("<") and redirect.target is not None and (path := command.absolute(redirect.target.text)):
            paths.add(path)
    paths.update(view.opened_by_code(command))
    words = (*command.args, *command.assignments.values(), *(r.target for r in command.redirects if r.target is not None))
    pending = [*command.feeds, *sorted(frozenset[int]().union(*(word.origins for word in words)))]
    seen: set[int] = set()
    while pending and len(seen) < 50:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        feed = view.commands[index]
        pending += feed.feeds
        if feed.program in READERS:
            paths.update(path for word in feed.words if not word.startswith("-") and (path := feed.absolute(word)))
        paths.update(view.opened_by_code(feed))
        for redirect in feed.redirects:
            if redirect.op == "<" and redirect.target is not None and (path := feed.absolute(redirect.target.text)):
                paths.add(path)
    return frozenset(
        {
            *paths,
            *(
                known
                for path in paths
                for known in view.baseline.files
                if known.startswith(path.rstrip("/") + "/") and posixpath.dirname(path) != "/"
            ),
        }
    )
