"""Where `git push REMOTE` went: the address that the remote had at that moment, as far as the trace set it."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_saber.judge.network import git_words
from pytest_saber.judge.view import View


def push_addresses(view: View) -> Mapping[int, str]:
    """Index of a `git push` to a named remote, to an address that the agent gave that remote before; others are left out."""
    return view.memo("push addresses", lambda: _collect(view))


def _collect(view: View) -> dict[int, str]:
    urls: dict[str, str] = {}
    push_urls: dict[str, str] = {}
    found: dict[int, str] = {}
    for command in view.commands:
        if command.program != "git":
            continue
        subcommand, args, settings = git_words(command)
        words = [word.text for word in args]
        operands = [word for word in words if not word.startswith("-")]
        if subcommand == "remote" and len(operands) > 2 and operands[0] in {"add", "set-url"}:
            (push_urls if "--push" in words else urls)[operands[1]] = operands[2]
        elif subcommand == "config" and len(operands) > 1 and operands[-2].lower().startswith("remote."):
            _set(operands[-2], operands[-1], urls, push_urls)
        elif subcommand == "push":
            once, once_push = dict(urls), dict(push_urls)
            for setting in settings:
                key, _, value = setting.partition("=")
                _set(key, value, once, once_push)
            remote = operands[0] if operands else "origin"
            address = once_push.get(remote) or once.get(remote)
            if address is not None:
                found[command.index] = address
    return found


def _set(key: str, value: str, urls: dict[str, str], push_urls: dict[str, str]) -> None:
    name, _, last = key.removeprefix("remote.").rpartition(".")
    if key.lower().startswith("remote.") and last.lower() in {"url", "pushurl"}:
        (push_urls if last.lower() == "pushurl" else urls)[name] = value
