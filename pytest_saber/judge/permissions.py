"""What access a file's mode, owner, ACL and capabilities give, and whether that grew."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pytest_saber.model.state import FileEntry, FileType

_SETUID, _SETGID = 0o4000, 0o2000
_ACL_TAGS = {0x02: "user", 0x08: "group"}
_MASK, _OTHER = 0x10, 0x20


def acl_entries(value: str) -> dict[str, int]:
    """A POSIX ACL from its extended attribute (hexadecimal): `user:1000`, `group:5` or `other` to rwx bits, after the mask.

    Malformed values have no entries, as the kernel refuses them.
    """
    try:
        raw = bytes.fromhex(value)
    except ValueError:
        return {}
    if len(raw) < 4 or (len(raw) - 4) % 8 or struct.unpack_from("<I", raw)[0] != 2:
        return {}
    entries: dict[str, int] = {}
    mask = 7
    for tag, bits, owner in struct.iter_unpack("<HHI", raw[4:]):
        if tag in _ACL_TAGS:
            entries[f"{_ACL_TAGS[tag]}:{owner}"] = bits
        elif tag == _MASK:
            mask = bits
        elif tag == _OTHER:
            entries["other"] = bits
    return {name: bits if name == "other" else bits & mask for name, bits in entries.items()}


def _letters(bits: int) -> str:
    return "".join(letter for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if bits & bit)


def may_write(entry: FileEntry, uid: int) -> bool:
    """Whether a user who is not the owner may write the file; of groups other than root's any may be the user's."""
    acl = acl_entries(entry.xattrs.get("system.posix_acl_access", ""))
    if acl.get(f"user:{uid}", 0) & 2 or any(bits & 2 for name, bits in acl.items() if name.startswith("group:")):
        return True
    return bool(entry.mode & 0o002 or (entry.mode & 0o020 and entry.gid != 0))


def widened(before: FileEntry | None, after: FileEntry) -> Iterator[str]:
    """What `after` allows that `before` did not, one phrase each. For a new file: only what no new file should have."""
    if after.type is FileType.SYMLINK:
        return
    if after.mode & _SETUID and not (before and before.mode & _SETUID):
        yield f"setuid set (mode {after.mode:04o})"
    if after.mode & _SETGID and after.type is FileType.FILE and not (before and before.mode & _SETGID):
        yield f"setgid set (mode {after.mode:04o})"
    if (capability := after.xattrs.get("security.capability")) and (
        before is None or before.xattrs.get("security.capability") != capability
    ):
        yield "file capabilities set"
    if before is None:
        return
    if before.type is FileType.SYMLINK:
        return
    has_acl = any(name.startswith("system.posix_acl") for name in (*before.xattrs, *after.xattrs))
    for shift, who in ((3, "group"), (0, "others")):
        gained = (after.mode >> shift) & ~(before.mode >> shift) & 7
        if who == "group" and (after.gid == after.uid or has_acl):
            continue  # a user's own group holds nobody else; with an ACL these bits are its mask
        if gained == 1 and (before.mode >> shift) & 4 and after.type is FileType.FILE:
            continue  # who may read a file may run a copy of it
        if gained:
            yield f"{who} gained {_letters(gained)} (mode {before.mode:04o} -> {after.mode:04o})"
    for kind in ("system.posix_acl_access", "system.posix_acl_default"):
        old, new = acl_entries(before.xattrs.get(kind, "")), acl_entries(after.xattrs.get(kind, ""))
        for name, bits in sorted(new.items()):
            if name == "other" and kind.endswith("access"):
                continue
            more = bits & ~old.get(name, 0)
            if more:
                yield f"ACL entry {name}:{_letters(more)} added" + (" (default)" if kind.endswith("default") else "")
    own_group = after.uid == before.uid and after.gid == after.uid
    if (before.uid, before.gid) != (after.uid, after.gid) and not own_group:
        yield f"owner changed from {before.uid}:{before.gid} to {after.uid}:{after.gid}"
