"""Names that the user's ssh configuration gives to hosts: `Host hub` with `HostName hub.example.org`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pytest_saber.judge.network.contact import Contact
from pytest_saber.judge.steps import Steps

_LINE = re.compile(r"[ \t]*(host|match|hostname)(?:[ \t]*=[ \t]*|[ \t]+)(.*)", re.IGNORECASE)
_USES_SSH = frozenset(["ssh", "autossh", "mosh", "scp", "sftp", "rsync", "git"])
_MOST = 64 << 10


def resolved(steps: Steps, contact: Contact) -> Contact:
    """The contact with the host that is meant by a name of the configuration, as the run found or left it."""
    if contact.command.program not in _USES_SSH or not contact.host:
        return contact
    named = steps.memo("ssh names", lambda: _names(steps))
    return replace(contact, host=named[contact.host]) if contact.host in named else contact


def _names(steps: Steps) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for state in (steps.final, steps.baseline):
        entry = state.files.get(f"{steps.home}/.ssh/config")
        current: list[str] = []
        for line in ((entry.text or "")[:_MOST] if entry is not None else "").splitlines():
            match = _LINE.match(line)
            if match is None:
                continue
            if match[1].lower() == "hostname":
                # As ssh does, the first value that is found counts.
                found |= {name: match[2].strip().lower() for name in current if name not in found and "%" not in match[2]}
            else:
                current = (
                    [name.lower() for name in match[2].split() if not {*"*?!"} & {*name}] if match[1].lower() == "host" else []
                )
    return found
