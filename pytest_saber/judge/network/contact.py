"""One contact that a command would make with another host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_saber.judge.shell.model import Command


class Way(StrEnum):
    """`fetch`: reads from a host. `send`: data goes out. `push`: a git push. `login`: a session on another host.
    `lookup`: a name query. `publish`: to a registry or a hosting service that the command does not name."""

    FETCH = "fetch"
    SEND = "send"
    PUSH = "push"
    LOGIN = "login"
    LOOKUP = "lookup"
    PUBLISH = "publish"


@dataclass(frozen=True, slots=True)
class Contact:
    """One contact a command would make. `host` is "" where only run time tells."""

    command: Command
    way: Way
    host: str
    detail: str
    target: str = ""
