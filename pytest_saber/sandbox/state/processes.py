"""The processes of a workspace, from `/proc`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

_PROCESSES = 4096
_FDS = 4096
_ARGV = 128 << 10
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_LISTEN, _UDP_OPEN = "0A", "07"


def read(init: int, container: str, note: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Each process of the workspace whose first process is `init`.

    `container` occurs in the control group of the workspace's processes, which a process cannot leave. Where it is empty,
    everything but this process belongs to the workspace: a helper container that shares the process namespace.
    """
    level = len(_status(init).get("NSpid", "").split()) - 1
    members = [pid for pid in _pids() if pid != os.getpid() and _belongs(pid, container)]
    if len(members) > _PROCESSES:
        note(f"more than {_PROCESSES} processes; the rest was not read")
    statuses = {pid: _status(pid) for pid in members[:_PROCESSES]}
    inside = {pid: _inside(status, level) for pid, status in statuses.items()}
    sockets = _listening(init)
    for pid, status in statuses.items():
        number = inside[pid]
        if number is None:
            continue
        state, start = _stat(pid)
        yield {
            "pid": number,
            "ppid": inside.get(int(status.get("PPid", "0"))) or 0,
            "uid": int(status.get("Uid", "-1").split()[0]),
            "argv": _argv(pid) or [f"[{status.get('Name', '?')}]"],
            "start": start,
            "state": state,
            "listening": sorted({sockets[inode] for inode in _inodes(pid) if inode in sockets} if sockets else ()),
        }


def _pids() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _text(path: str, limit: int = 1 << 16) -> str:
    """What `/proc` says, or nothing for a process that ended meanwhile."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _belongs(pid: int, container: str) -> bool:
    return not container or container in _text(f"/proc/{pid}/cgroup")


def _status(pid: int) -> dict[str, str]:
    lines = (line.partition(":") for line in _text(f"/proc/{pid}/status").splitlines())
    return {name: value.strip() for name, _, value in lines}


def _inside(status: dict[str, str], level: int) -> int | None:
    """The process number in the workspace's own namespace; None for one that ended, or that is not in it."""
    numbers = status.get("NSpid", "").split()
    return int(numbers[level]) if len(numbers) > level >= 0 else None


def _stat(pid: int) -> tuple[str, int]:
    """State letter and start time in clock ticks. Whether a frozen process would run or sleep cannot be told: it sleeps."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) < 20:
        return "X", 0
    return fields[0] if fields[0] in "ZXTt" else "S", int(fields[19])


def _argv(pid: int) -> list[str]:
    text = _text(f"/proc/{pid}/cmdline", _ARGV)
    return text.removesuffix("\0").split("\0") if text else []


def _inodes(pid: int) -> Iterator[str]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names[:_FDS]:
        try:
            match = _SOCKET.fullmatch(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
        if match:
            yield match[1]


def _listening(pid: int) -> dict[str, str]:
    """Socket inode to `address:port`, of TCP sockets that listen and UDP sockets that have no peer."""
    found = {}
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for line in _text(f"/proc/{pid}/net/{name}", 1 << 20).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == (_UDP_OPEN if name.startswith("udp") else _LISTEN):
                found[fields[9]] = _address(fields[1])
    return found


def _address(field: str) -> str:
    """`0100007F:1F90` is `127.0.0.1:8080`; each 32-bit word is in host byte order."""
    host, _, port = field.partition(":")
    raw = b"".join(bytes.fromhex(host[index : index + 8])[::-1] for index in range(0, len(host), 8))
    if len(raw) == 4:
        return f"{'.'.join(str(part) for part in raw)}:{int(port, 16)}"
    words = [f"{int.from_bytes(raw[index : index + 2], 'big'):x}" for index in range(0, 16, 2)]
    text = ":".join(words)
    return f"[{'::' if not any(raw) else '::1' if raw == bytes(15) + bytes([1]) else text}]:{int(port, 16)}"
