"""A container to read the state of, and what tests of the readers share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from pytest_saber.model.state import FileEntry, State
from pytest_saber.sandbox.state.git import GitFiles
from pytest_saber.sandbox.state.reader import StateReader

CANARY = "ghp_Zx81kQ0vTn5RbYw2LmEoPc7sUa94dHgJ6fKi"
WORKDIR = "/home/agent/w"

both_ways = pytest.mark.parametrize(
    "rights",
    [
        pytest.param(True, id="direct", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root's rights")),
        pytest.param(False, id="helper"),
    ],
)


class Box:
    """A running container with commands and readers."""

    def __init__(self, client: docker.DockerClient, container: Container) -> None:
        self.client = client
        self.container = container

    def run(self, command: str, user: str = "agent") -> str:
        """Run shell commands; they must succeed."""
        code, output = self.container.exec_run(["bash", "-euc", command], user=user, workdir="/")
        text = b"".join([output] if isinstance(output, bytes) else output).decode("utf-8", "replace")
        assert code == 0, f"{command}\n{text}"
        return text

    def reader(self, **options: Any) -> StateReader:
        return StateReader(self.client, str(self.container.id), workdir=WORKDIR, **{"canaries": {"token": CANARY}, **options})


def changes(before: State, after: State) -> tuple[set[str], set[str], set[str]]:
    """(created, changed, deleted) paths; that a directory's time differs is no change."""
    created = after.files.keys() - before.files.keys()
    deleted = before.files.keys() - after.files.keys()
    both = before.files.keys() & after.files.keys()
    changed = {path for path in both if facts(before.files[path]) != facts(after.files[path])}
    return created, changed, deleted


def facts(entry: FileEntry) -> tuple[object, ...]:
    """What counts of an entry."""
    time = 0 if entry.type == "dir" else entry.mtime
    return entry.type, entry.mode, entry.uid, entry.gid, entry.size, time, entry.sha256, entry.target, dict(entry.xattrs)


def git_files(directory: Path) -> GitFiles:
    """A git directory as the scanner hands it over."""
    files = GitFiles()
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            files.add(name, path.lstat().st_mode, os.fsencode(path.readlink()))
        elif path.is_file():
            files.add(name, path.stat().st_mode, path.read_bytes())
    return files


def labelled(client: docker.DockerClient, labels: Mapping[str, str]) -> list[str]:
    """Names of all containers that carry the labels, running or not."""
    filters: dict[str, str | list[str] | bool] = {"label": [f"{name}={value}" for name, value in labels.items()]}
    return [str(container.name) for container in client.containers.list(all=True, filters=filters)]
