"""What commands would do on the network: whom they name, and whether data leaves with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge.network import clients, senders
from pytest_saber.judge.network.address import host_of, remote_host
from pytest_saber.judge.network.code import code_contacts
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.network.http import saved_as
from pytest_saber.judge.network.own_code import own_contacts, script_contacts
from pytest_saber.judge.network.programs import READERS, git_words
from pytest_saber.judge.shell.model import Command

__all__ = ["Contact", "Way", "contacts", "git_words", "host_of", "remote_host", "saved_as", "script_contacts"]

_DEV = re.compile(r"/dev/(tcp|udp)/([^/\s]+)/(\w+)")


def contacts(command: Command) -> Iterator[Contact]:
    """Every contact the command names; nothing for commands that stay on this machine."""
    for redirect in command.redirects:
        if redirect.target is not None and (match := _DEV.search(redirect.target.text)):
            yield Contact(command, Way.SEND, match[2], "bash network device", redirect.target.text)
    for word in command.args:
        if command.program in {"exec", "cat", "tee", "dd", "cp"} and (match := _DEV.search(word.text)):
            yield Contact(command, Way.SEND, match[2], "bash network device", word.text)
    reader = clients.READERS.get(command.program) or READERS.get(command.program) or senders.READERS.get(command.program)
    if reader is not None:
        yield from reader(command)
    elif command.code is not None:
        yield from code_contacts(command)
        yield from own_contacts(command)
