"""Who started a container: labels that tell, on any machine that shares the engine, whether the owner still lives."""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path

SESSION_LABEL = "pytest-saber.session"
RUN_LABEL = "pytest-saber.run"
PROCESS_LABEL = "pytest-saber.process"

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process for good: its number, its start in clock ticks, and which boot, pid namespace and machine these belong to."""

    pid: int
    start: int
    boot: str
    namespace: str
    machine: str

    def __str__(self) -> str:
        return f"{self.pid}:{self.start}:{self.boot}:{self.namespace}:{self.machine}"

    @classmethod
    def parse(cls, text: str) -> ProcessIdentity | None:
        """None for what this version did not write."""
        match text.split(":"):
            case [pid, start, boot, namespace, machine] if pid.isdecimal() and start.isdecimal():
                return cls(int(pid), int(start), boot, namespace, machine)
        return None

    @classmethod
    def current(cls) -> ProcessIdentity:
        """Of this process. Raises OSError where there is no `/proc`."""
        pid = os.getpid()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        namespace = str((_PROC / "self/ns/pid").readlink()).removeprefix("pid:[").removesuffix("]")
        return cls(pid, start_time(pid) or 0, boot, namespace, _machine())

    def is_dead(self, here: ProcessIdentity) -> bool | None:
        """Whether the process is known to be gone, as seen by the process `here`; None when that cannot be told from here."""
        if self.machine != here.machine:
            return None
        if self.boot != here.boot:
            return True
        if self.namespace != here.namespace:
            return None
        return start_time(self.pid) != self.start


def start_time(pid: int) -> int | None:
    """Start of a process in clock ticks since boot; None when it does not exist or is a zombie."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def _machine() -> str:
    """A digest of the machine's id and host name: clones share the former, and anybody can have the latter."""
    try:
        machine_id = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine_id = ""
    return hashlib.sha256(f"{machine_id}\0{socket.gethostname()}".encode()).hexdigest()[:12]
