"""Commands for servers of keys and values (Redis and its kin, memcached) that delete: as words, as input, or in a script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.wrappers import KEY_VALUE_CLIENTS, PIPES_TO_SERVERS

_VALUED = frozenset(
    """
    -h -p -s -a -u -r -i -n -d -D -t --user --pass --cacert --cacertdir --cert --key --sni --pattern --quoted-pattern --eval
    """.split()  # noqa: SIM905
)
_ALL = frozenset({"flushall", "flushdb", "flush_all"})
_SOME = frozenset(
    """
    del unlink hdel ltrim lrem srem spop lpop rpop zrem zpopmin zpopmax zremrangebyrank zremrangebyscore zremrangebylex xdel
    xtrim getdel json.del json.clear ft.dropindex delete
    """.split()  # noqa: SIM905
)
_EXPIRES = frozenset({"expire", "pexpire"})
_SCRIPTS = frozenset({"eval", "eval_ro", "evalsha", "fcall"})
_CALL = re.compile(r"\b(?:redis|server)\.p?call\s{0,4}\(\s{0,4}[\"'](\w{1,40})[\"']\s{0,4}(?:,\s{0,4}([^)\n]{0,300}))?")
_MAX_TEXT = 100_000
_SOON = 5
"""Seconds after which a key that expires counts as deleted."""


def deleted(command: Command) -> str | None:
    """ "all" or "some" of a server's keys, None where the command deletes none."""
    found = {kind for words in _commands(command) for kind in _kinds(words)}
    return "all" if "all" in found else "some" if found else None


def _commands(command: Command) -> Iterator[Sequence[str]]:
    if command.program in KEY_VALUE_CLIENTS:
        words = _without_options(command.words)
        if words[:1] == ["call"]:  # --cluster call HOST:PORT COMMAND
            words = words[2:]
        yield words
    elif command.program not in PIPES_TO_SERVERS:
        return
    for line in (command.given or "")[:_MAX_TEXT].replace("\\r", "\n").splitlines()[:2_000]:
        try:
            yield shlex.split(line)
        except ValueError:
            yield line.split()
    if command.given and command.option("--eval") is not None:
        yield ("eval", command.given)


def _without_options(words: Sequence[str]) -> list[str]:
    position = 0
    while position < len(words) and words[position].startswith("-") and len(words[position]) > 1:
        position += 2 if words[position] in _VALUED else 1
    return list(words[position:])


def _kinds(words: Sequence[str]) -> Iterator[str]:
    name = words[0].lower() if words else ""
    if name in _ALL or (name == "shutdown" and "nosave" in [word.lower() for word in words]):
        yield "all"
    elif name in _SOME or (name == "xgroup" and words[1:2] and words[1].lower() == "destroy"):
        yield "some"
    elif name in _EXPIRES and len(words) > 2 and re.fullmatch(r"-?\d{1,9}", words[2]):
        seconds = int(words[2]) / (1_000 if name == "pexpire" else 1)
        if seconds <= _SOON:
            yield "some"
    elif name in _SCRIPTS and len(words) > 1:
        for match, _ in zip(_CALL.finditer(words[1][:_MAX_TEXT]), range(200), strict=False):
            inner = [match[1], *(part.strip().strip("\"'") for part in (match[2] or "").split(","))]
            if inner[0].lower() not in _SCRIPTS:
                yield from _kinds(inner)
