"""Programs that send by what their words say: HTTP clients with items, messages, backups, keys, rows of a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from pytest_saber.judge.network.address import host_of, remote_host
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.network.http import request
from pytest_saber.judge.shell.model import Command, Word

_HTTP_METHODS = frozenset(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
_HTTP_ITEM = re.compile(r"[^\s=:@/]{1,80}(?::=@?|=@?|@)")


def _httpie(command: Command) -> Iterator[Contact]:
    """`http [METHOD] URL [ITEM...]`: `name=value`, `name:=json` and `name@file` are sent, `name==value` is part of it."""
    valued = {
        "-a",
        "--auth",
        "-o",
        "--output",
        "-p",
        "--print",
        "--session",
        "--timeout",
        "--proxy",
        "--verify",
        "-A",
        "--auth-type",
    }
    words: list[Word] = []
    skip = raw = False
    for word in command.args:
        raw = raw or word.text.startswith("--raw") or word.text == "--multipart"
        if not skip and not word.text.startswith("-"):
            words.append(word)
        skip = not skip and word.text in {*valued, "--raw"}
    if not words or "--offline" in command.words:
        return
    method = words.pop(0).text if words[0].text in _HTTP_METHODS else ""
    if not words:
        return
    items = [word for word in words[1:] if _HTTP_ITEM.match(word.text) and "==" not in word.text.split(":", 1)[0]]
    data = bool(items) or raw or bool(command.feeds) or any(redirect.op.startswith("<") for redirect in command.redirects)
    sends = data or method in {"POST", "PUT", "PATCH", "DELETE"}
    yield from request(command, words[0], sends, "upload" if data else method or "request")


def _message(command: Command) -> Iterator[Contact]:
    """A message to a broker, a logging host, a share or a socket that an option or the first address names."""
    options = {
        "mosquitto_pub": ("-h", "--host", "-L", "--url"),
        "logger": ("-n", "--server"),
        "kcat": ("-b",),
        "kafkacat": ("-b",),
    }
    if command.program in {"kcat", "kafkacat"} and not command.has_flag("P"):
        return
    if command.program in options:
        named = command.option(*options[command.program]) or ""
    else:
        named = next((word for word in command.words if "://" in word or word.startswith("//")), "")
    if named:
        yield Contact(command, Way.SEND, host_of(named.lstrip("/")), "message", named)


_REMOTE_STORE = re.compile(r"\A(?:sftp:|s3:|b2:|gs:|azure:|swift:|rclone:|rest:|ssh://|rsync://|[\w.-]+@[\w.-]+:)")
_STORES = frozenset({"backup", "create", "init", "copy", "push", "full", "incremental", "snapshot"})


def _backup(command: Command) -> Iterator[Contact]:
    """A backup into a store on another machine."""
    if not _STORES & {*command.words} or {"--dry-run", "-n"} & {*command.words}:
        return
    for word in command.words:
        value = word.partition("=")[2] if word.startswith("--repo") and "=" in word else word
        if _REMOTE_STORE.match(value):
            bare = value.removeprefix("sftp:").removeprefix("rest:").removeprefix("s3:")
            yield Contact(command, Way.SEND, host_of(bare) if "://" in bare else remote_host(bare) or "", "backup", f"${value}")
            return


def _keys(command: Command) -> Iterator[Contact]:
    if "--send-keys" in command.words:
        yield Contact(command, Way.PUBLISH, host_of(command.option("--keyserver") or ""), "key server", "")


READERS: Mapping[str, Callable[[Command], Iterator[Contact]]] = {
    **dict.fromkeys(("http", "https", "xh", "xhs"), _httpie),
    **dict.fromkeys(("mosquitto_pub", "logger", "kcat", "kafkacat", "smbclient", "websocat", "wscat"), _message),
    **dict.fromkeys(("restic", "borg", "duplicity", "kopia"), _backup),
    **dict.fromkeys(("gpg", "gpg2"), _keys),
}
