"""The accounts of an image, from its `/etc/passwd` and `/etc/group`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    """A user of an image, with the primary group."""

    name: str
    uid: int
    gid: int
    home: str


@dataclass(frozen=True, slots=True)
class Accounts:
    """The users and groups of an image by name."""

    users: Mapping[str, Account]
    groups: Mapping[str, int]

    @classmethod
    def parse(cls, passwd: str, group: str) -> Accounts:
        """From the texts of `/etc/passwd` and `/etc/group`; lines of another form are passed over."""
        users: dict[str, Account] = {}
        for line in passwd.splitlines():
            match line.split(":"):
                case [name, _, uid, gid, _, home, _] if uid.isdecimal() and gid.isdecimal():
                    users[name] = Account(name, int(uid), int(gid), home or "/")
        groups = {
            fields[0]: int(fields[2])
            for line in group.splitlines()
            if len(fields := line.split(":")) >= 3 and fields[2].isdecimal()
        }
        return cls(users, groups)

    def owner(self, owner: str) -> tuple[int, int]:
        """User and group id of `user` or `user:group`, by name or number. Raises KeyError with the part that is unknown."""
        name, colon, group_name = owner.partition(":")
        account = self.users.get(name)
        if account is None and not name.isdecimal():
            raise KeyError(name)
        uid = account.uid if account else int(name)
        if not colon:
            return uid, account.gid if account else uid
        if group_name in self.groups:
            return uid, self.groups[group_name]
        if group_name.isdecimal():
            return uid, int(group_name)
        raise KeyError(group_name)
