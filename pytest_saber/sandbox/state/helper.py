"""The same scan in a helper container, for a process that has no rights to the engine's files, or whose engine is elsewhere."""

from __future__ import annotations

import dataclasses
import io
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError
from docker.models.containers import Container
from docker.types import LogConfig

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.sandbox.channel import STDERR, close_stream, frames, socket_of
from pytest_saber.sandbox.state import content as content_module
from pytest_saber.sandbox.state import gitscan, overlay, processes, scan, wire
from pytest_saber.sandbox.state.scan import Request

_ROOT = "/.saber"
_PACKAGE = "pytest_saber/sandbox/state"
_MODULES = (gitscan, overlay, processes, scan, wire, content_module)
_START = f"import sys; sys.path.insert(0, '{_ROOT}'); from pytest_saber.sandbox.state import scan; scan.main('{_ROOT}')"
_OUTPUT = 640 << 20
_GRACE = 15.0
"""Seconds for the helper beyond the scan's own, after which it is given up."""


def run(
    client: docker.DockerClient, image: str, container: str, request: Request, labels: Mapping[str, str], emit: wire.Emit
) -> None:
    """Scan in a container of `image`, which needs Python 3.11.

    It sees only the directories to read, read-only, has no network, and is removed.

    Raises InfrastructureFault when it does not run to its end, docker's APIError and WireError.
    """
    inside, binds = _mounts(request)
    helper: Container = client.containers.create(
        image,
        ["python3", "-I", "-B", "-c", _START],
        user="0:0",
        working_dir="/",
        entrypoint=[],
        network_mode="none",
        pid_mode=f"container:{container}" if request.pid else None,
        cap_drop=["ALL"],
        cap_add=["SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH"],
        security_opt=["no-new-privileges"],
        mem_limit="1g",
        pids_limit=32,
        volumes=binds,
        labels=dict(labels),
        log_config=LogConfig(type="none"),
    )
    try:
        helper.put_archive("/", _payload(inside))
        stream = client.api.attach_socket(str(helper.id), params={"stdout": 1, "stderr": 1, "stream": 1})
        errors = bytearray()
        try:
            helper.start()
            for header, content in wire.records(_stdout(stream, errors, request.bounds.seconds + _GRACE), _OUTPUT):
                emit(header, content)
        finally:
            close_stream(stream)
        status = helper.wait(timeout=30)["StatusCode"]
        if status:
            reason = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
            raise InfrastructureFault(
                FaultSource.ENGINE,
                f"the helper container that reads the workspace failed with status {status}: {reason[0][:300]}",
            )
    finally:
        try:
            helper.remove(force=True, v=True)
        except APIError as error:
            if error.status_code not in {404, 409}:
                raise


def _mounts(request: Request) -> tuple[Request, list[str]]:
    """The request in the helper's own paths, and what is mounted there."""
    binds = [f"{request.upper}:{_ROOT}-upper:ro"]
    binds += [f"{layer}:{_ROOT}-lower/{number}:ro" for number, layer in enumerate(request.lower)]
    binds += [f"{source}:{_ROOT}-mounts/{number}:ro" for number, (source, _) in enumerate(request.mounts)]
    return dataclasses.replace(
        request,
        pid=1 if request.pid else 0,
        container="",
        upper=f"{_ROOT}-upper",
        lower=tuple(f"{_ROOT}-lower/{number}" for number in range(len(request.lower))),
        mounts=tuple((f"{_ROOT}-mounts/{number}", point) for number, (_, point) in enumerate(request.mounts)),
    ), binds


def _payload(request: Request) -> bytes:
    files = {f"{_ROOT}/request.json": request.dumps()}
    for folder in ("pytest_saber", "pytest_saber/sandbox", _PACKAGE):
        files[f"{_ROOT}/{folder}/__init__.py"] = b""
    for module in _MODULES:
        source = Path(str(module.__file__))
        files[f"{_ROOT}/{_PACKAGE}/{source.name}"] = source.read_bytes()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name.lstrip("/"))
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _stdout(stream: Any, errors: bytearray, seconds: float) -> Iterator[bytes]:
    """What the helper writes to its standard output; the end of what it writes to the other goes to `errors`.

    Raises TimeoutError after `seconds`.
    """
    connection = socket_of(stream)
    deadline = time.monotonic() + seconds
    buffer = bytearray()
    while True:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        data = connection.recv(1 << 18)
        if not data:
            return
        buffer += data
        for number, frame in frames(buffer):
            if number == STDERR:
                errors += frame
                del errors[: -(1 << 16)]
            else:
                yield frame
