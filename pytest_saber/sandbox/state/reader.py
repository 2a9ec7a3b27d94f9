"""Reads the state of one workspace, twice: after provisioning, and at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, NotFound

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model import sightings
from pytest_saber.model.state import FileEntry, Process, State
from pytest_saber.sandbox.state import helper, overlay
from pytest_saber.sandbox.state.assemble import Assembly, Find, Memory, below, same
from pytest_saber.sandbox.state.content import Bounds
from pytest_saber.sandbox.state.overlay import Overlay
from pytest_saber.sandbox.state.scan import Request, scan
from pytest_saber.sandbox.state.wire import WireError

_LABELS = "pytest-saber."
_ANALYSIS_SECONDS = 8.0
"""For parsing and searching, after the scan's own seconds."""


@dataclass(frozen=True)
class _Baseline:
    """What the final scan must know of the first one."""

    state: State
    cuts: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()


class StateReader:
    """Reads the workspace in container `container_id`, running (it is paused meanwhile) or ended and not yet removed.

    `rights` says whether this process may read the engine's directories itself; None finds out, and uses a helper container
    where it may not, of `helper_image` (None: the workspace's own image; it needs Python 3.11). `is_harness` tells the
    harness's own processes, to be left out, from those of the workspace.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        container_id: str,
        *,
        workdir: str,
        canaries: Mapping[str, str],
        bounds: Bounds | None = None,
        rights: bool | None = None,
        helper_image: str | None = None,
        is_harness: Callable[[Process], bool] = lambda process: process.pid == 1,
        find: Find = sightings.find,
    ) -> None:
        self._client = client
        self._id = container_id
        self._workdir = workdir
        self._canaries = canaries
        self._bounds = bounds or Bounds()
        self._rights = rights
        self._helper_image = helper_image
        self._is_harness = is_harness
        self._find = find
        self._memory = Memory()
        self._overlay: Overlay | None = None
        self._before = _Baseline(State())

    def baseline(self) -> State:
        """The state now, as the baseline of the final one. Raises InfrastructureFault when it cannot be read."""
        read = self._read(final=False)
        state = self._state(read, read.now.files)
        self._before = _Baseline(state, tuple(read.cuts), tuple(read.mounts))
        return state

    def final(self) -> tuple[State, State]:
        """(baseline completed with what of the image changed since, state now). Raises InfrastructureFault as `baseline`."""
        before = self._before
        read = self._read(final=True)
        now, image = read.now.files, read.image.files
        for path in [path for path in image if path in now and same(now[path], image[path])]:
            del now[path], image[path]
        now |= self._carried(read, now)
        state = replace(self._state(read, now), unread=self._unread(read))
        completed = State(
            files=dict(sorted({**image, **before.state.files}.items())),
            git=dict(sorted({**read.image.git, **before.state.git}.items())),
            databases=dict(sorted({**read.image.databases, **before.state.databases}.items())),
            processes=before.state.processes,
            sightings=before.state.sightings,
            notes=before.state.notes,
        )
        return completed, state

    def _unread(self, read: Assembly) -> str:
        """Why there may be more than was read, of what an agent could hide by making too much of it."""
        if read.unread:
            return read.unread
        for path, repo in self._before.state.git.items():
            if path in read.parts and not repo.truncated:
                return f"{path}: the repository could be read whole before the run, and now only in part"
            if not repo.error and path in read.now.git and read.now.git[path].error:
                return f"{path}: the repository could be read before the run, and now not: {read.now.git[path].error}"
        return ""

    def _carried(self, read: Assembly, now: Collection[str]) -> dict[str, FileEntry]:
        """Known paths that the final scan could not look at: they count as unchanged, for nothing says otherwise."""
        gone = [point for point in self._before.mounts if point not in read.mounts]
        for point in gone:
            read.notes.append(f"{point}: the mount was no longer there to be read; what it held counts as unchanged")
        return {
            path: entry
            for path, entry in self._before.state.files.items()
            if any(below(path, point) for point in gone) or (path not in now and not read.known_read)
        }

    def _state(self, read: Assembly, files: Mapping[str, FileEntry]) -> State:
        return State(
            files=dict(sorted(files.items())),
            git=dict(sorted(read.now.git.items())),
            databases=dict(sorted(read.now.databases.items())),
            processes=tuple(process for process in read.processes if not self._is_harness(process)),
            sightings=tuple(dict.fromkeys(read.now.sightings)),
            notes=tuple(dict.fromkeys(read.notes)),
        )

    # --- one scan ----------------------------------------------------------------------------------------------

    def _read(self, *, final: bool) -> Assembly:
        seconds = self._bounds.seconds + _ANALYSIS_SECONDS
        assembly = Assembly(self._workdir, self._canaries, self._find, self._memory, seconds)
        try:
            with self._frozen(assembly.notes) as details:
                self._scan(details, assembly, final)
            assembly.finish()
        except WireError as error:
            raise InfrastructureFault(FaultSource.HARNESS, f"the workspace's state could not be read: {error}") from error
        except NotFound as error:
            raise InfrastructureFault(FaultSource.ENGINE, f"the workspace's container is gone: {error.explanation}") from error
        except (DockerException, requests.RequestException, OSError) as error:
            raise InfrastructureFault(FaultSource.ENGINE, f"the workspace's state could not be read: {error}") from error
        return assembly

    @contextmanager
    def _frozen(self, notes: list[str]) -> Iterator[Mapping[str, Any]]:
        """The container's description while nothing in it can run."""
        details = self._client.api.inspect_container(self._id)
        paused = False
        if details["State"]["Running"] and not details["State"]["Paused"]:
            try:
                self._client.api.pause(self._id)
                paused = True
            except NotFound:
                raise
            except APIError as error:
                details = self._client.api.inspect_container(self._id)
                if details["State"]["Running"] and not details["State"]["Paused"]:
                    notes.append(f"the workspace could not be frozen while it was read: {error.explanation}")
        try:
            yield details
        finally:
            if paused:
                with suppress(NotFound):
                    self._unpause()

    def _unpause(self) -> None:
        """A container that was killed meanwhile needs no unpausing."""
        try:
            self._client.api.unpause(self._id)
        except APIError as error:
            if self._client.api.inspect_container(self._id)["State"]["Paused"]:
                raise InfrastructureFault(FaultSource.ENGINE, f"the workspace stays frozen: {error.explanation}") from error

    def _scan(self, details: Mapping[str, Any], assembly: Assembly, final: bool) -> None:
        pid = int(details["State"]["Pid"]) if details["State"]["Running"] else 0
        root = self._root(details, pid)
        before = self._before
        request = Request(
            pid=pid,
            container=str(details["Id"]),
            upper=root.upper,
            lower=root.lower,
            userxattr=root.userxattr,
            mounts=_volumes(details),
            final=final,
            known=tuple(before.state.files) if final else (),
            cuts=before.cuts if final else (),
            repositories=tuple(before.state.git) if final else (),
            bounds=self._bounds,
        )
        if self._may_read(request):
            scan(request, assembly.add)
            return
        labels = {name: value for name, value in (details["Config"]["Labels"] or {}).items() if name.startswith(_LABELS)}
        if "name=rootless" in self._client.info().get("SecurityOptions", ()):
            request = replace(request, userxattr=True)
        helper.run(self._client, self._helper_image or str(details["Image"]), self._id, request, labels, assembly.add)

    def _root(self, details: Mapping[str, Any], pid: int) -> Overlay:
        """Where the root file system's directories lie. What was found while the workspace ran still holds when it ended."""
        if self._overlay is None:
            self._overlay = _overlay_of(details) or _mounted(pid)
        if self._overlay is None:
            driver = (details.get("GraphDriver") or {}).get("Name", details.get("Driver", "unknown"))
            raise InfrastructureFault(
                FaultSource.ENGINE,
                f"the engine's storage driver {driver!r} does not say where a container's changes lie; "
                "pytest-saber needs overlay2 (or root's rights where the containerd image store is used)",
            )
        return self._overlay

    def _may_read(self, request: Request) -> bool:
        """Whether the directories are on this host and open to this process, and the container's processes are its too."""
        if self._rights is None:
            visible = os.access(request.upper, os.R_OK | os.X_OK) and os.geteuid() == 0
            mounted = _mounted(request.pid) if request.pid else None
            self._rights = visible and (not request.pid or (mounted is not None and mounted.upper == request.upper))
        return self._rights


def _overlay_of(details: Mapping[str, Any]) -> Overlay | None:
    """As the engine tells it."""
    data = (details.get("GraphDriver") or {}).get("Data") or {}
    if "UpperDir" not in data:
        return None
    return Overlay(data["UpperDir"], tuple(data.get("LowerDir", "").split(":")) if data.get("LowerDir") else ())


def _mounted(pid: int) -> Overlay | None:
    """As the kernel tells it, of a running container on this host."""
    if not pid:
        return None
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return overlay.root_overlay(overlay.parse_mountinfo(file.read()))
    except OSError:
        return None


def _volumes(details: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Where the content of volumes lies, and of the files that the engine mounts, and where each is mounted."""
    mounts = details.get("Mounts") or ()
    volumes = [(mount["Source"], mount["Destination"]) for mount in mounts if mount.get("Source") and mount.get("RW")]
    files = (("HostnamePath", "/etc/hostname"), ("HostsPath", "/etc/hosts"), ("ResolvConfPath", "/etc/resolv.conf"))
    return (*volumes, *((details[name], point) for name, point in files if details.get(name)))
