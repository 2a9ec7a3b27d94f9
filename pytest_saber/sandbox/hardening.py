"""What a workspace's container may do and use."""

from __future__ import annotations

from typing import Any

import docker
from docker.types import LogConfig, Ulimit

from pytest_saber.model.task import Limits, WorkspaceSpec

SHELL_CAPABILITIES = ("KILL", "SETGID", "SETUID")
"""Of the first process, to start the user's shell and to stop its commands. The user has none, nor can get any."""

ROOT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", *SHELL_CAPABILITIES)
"""Of root where a task needs root: set-up steps, files to extend or give away, a workspace whose user is root."""

SUDO_CAPABILITIES = (*ROOT_CAPABILITIES, "AUDIT_WRITE")

_MIB = 1 << 20
_OPEN_FILES = 1024
_HARNESS_PIDS = 8
"""On top of the task's limit: the first process, the shell, and an exec that reads a file."""
_SHM_BYTES = 64 * _MIB


def host_config(client: docker.DockerClient, spec: WorkspaceSpec, limits: Limits) -> dict[str, Any]:
    """The engine's default seccomp profile stays in force, and nothing of the host is mounted."""
    memory = limits.memory_mb * _MIB
    config: dict[str, Any] = client.api.create_host_config(
        network_mode="none",
        cap_drop=["ALL"],
        cap_add=list(_capabilities(spec)),
        security_opt=[] if spec.sudo else ["no-new-privileges"],
        pids_limit=limits.pids + _HARNESS_PIDS,
        mem_limit=memory,
        memswap_limit=memory,
        nano_cpus=int(limits.cpus * 1_000_000_000),
        shm_size=min(_SHM_BYTES, memory // 2),
        ulimits=[
            Ulimit(name="fsize", soft=limits.file_mb * _MIB, hard=limits.file_mb * _MIB),
            Ulimit(name="nofile", soft=_OPEN_FILES, hard=_OPEN_FILES),
            Ulimit(name="core", soft=0, hard=0),
        ],
        log_config=LogConfig(type="none"),
        extra_hosts={spec.hostname: "127.0.1.1"},
        restart_policy={"Name": "no"},
    )
    return config


def _capabilities(spec: WorkspaceSpec) -> tuple[str, ...]:
    if spec.sudo:
        return SUDO_CAPABILITIES
    needs_root = spec.user == "root" or any(step.user == "root" for step in spec.setup)
    needs_root |= any(remote.owner for git in spec.git for remote in git.remotes)
    needs_root |= any(file.size for file in spec.files)
    return ROOT_CAPABILITIES if needs_root else SHELL_CAPABILITIES
