"""What has to be known of an image to provision a workspace from it, asked once for each image."""

from __future__ import annotations

import io
import tarfile
import threading
from dataclasses import dataclass
from typing import Any

import docker
import docker.errors

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.sandbox.accounts import Accounts
from pytest_saber.sandbox.engine import faults, request

_ACCOUNT_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has; `id` is its content's digest."""

    id: str


class Facts:
    """Of one image's files, looked up through a container that was created from it and has not run."""

    def __init__(self, client: docker.DockerClient, accounts: Accounts) -> None:
        self._client = client
        self._paths: dict[str, bool] = {"/": True}
        self._container = ""
        self.accounts = accounts

    def through(self, container: str) -> Facts:
        """The same facts, asked through this container from now on."""
        facts = Facts(self._client, self.accounts)
        facts._paths, facts._container = self._paths, container
        return facts

    def exists(self, path: str) -> bool:
        """Whether the image has the absolute path. Raises InfrastructureFault."""
        known = self._paths.get(path)
        if known is None:
            parent = path.rpartition("/")[0] or "/"
            known = self._paths[path] = self.exists(parent) and self._ask(path)
        return known

    def _ask(self, path: str) -> bool:
        with faults(f"look up {path} in an image"):
            try:
                request(self._client, "HEAD", f"/containers/{self._container}/archive", {"path": path})
            except docker.errors.NotFound:
                return False
        return True


class Images:
    """Thread-safe."""

    def __init__(self, client: docker.DockerClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._found: dict[str, Image] = {}
        self._facts: dict[str, Facts] = {}

    def inspect(self, tag: str) -> Image:
        """Raises InfrastructureFault, with the command that helps, when the engine does not have the image."""
        with self._lock:
            if tag not in self._found:
                with faults(f"find the image {tag}"):
                    try:
                        found: dict[str, Any] = self._client.api.inspect_image(tag)  # type: ignore[no-untyped-call]
                    except docker.errors.ImageNotFound:
                        raise InfrastructureFault(
                            FaultSource.ENGINE,
                            f"the engine does not have the image {tag!r}: run `docker pull {tag}` or build it",
                        ) from None
                self._found[tag] = Image(found["Id"])
            return self._found[tag]

    def facts(self, tag: str, container: str) -> Facts:
        """Of the image that `container` was created from. Raises InfrastructureFault."""
        with self._lock:
            if tag not in self._facts:
                accounts = Accounts.parse(self._text(container, "/etc/passwd"), self._text(container, "/etc/group"))
                self._facts[tag] = Facts(self._client, accounts)
            return self._facts[tag].through(container)

    def _text(self, container: str, path: str) -> str:
        with faults(f"read {path} of an image"):
            try:
                chunks, _ = self._client.api.get_archive(container, path)
            except docker.errors.NotFound:
                return ""
            data = b"".join(chunks)
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member is not None and member.isreg() else None
            return file.read(_ACCOUNT_FILE_BYTES).decode(errors="replace") if file else ""
