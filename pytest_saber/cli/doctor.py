"""`pytest-saber doctor`: what this machine has, what is missing, and how to mend it."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_saber.cli import model

if TYPE_CHECKING:
    import docker

HELP = "check Python, the Docker engine, the image, rights, model providers and disk, and say what to do"

_ENGINE_SECONDS = 10
_OPENMP = "libgomp.so.1"
"""What the local model's engine links to and does not bring."""
_GIB = 1 << 30
_DISK_NEEDED = 2 * _GIB
_DISK_WANTED = 10 * _GIB


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    NOTE = "note"
    """Optional, and not there."""
    WARNING = "warning"
    FAIL = "fail"
    """Required, and not there: the exit code is 1."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding about the machine. `fix` is empty when there is nothing to do."""

    name: str
    status: Status
    detail: str
    fix: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.epilog = "Exit code 1 when something that is required is missing. Values of keys are never read out."


def run(args: argparse.Namespace) -> int:
    """Exit code 1 when something that is required is missing."""
    checks = list(diagnose(os.environ))
    failed = any(check.status is Status.FAIL for check in checks)
    if args.json:
        print(json.dumps({"ok": not failed, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        print("\n".join(render(checks)))
    return int(failed)


def diagnose(environ: Mapping[str, str]) -> Iterator[Check]:
    """Every check, in the order in which things are needed."""
    yield _python()
    yield _pytest()
    yield from _engine(environ)
    yield from _providers(environ)
    yield _local_model()
    yield _xdist()


def render(checks: list[Check]) -> list[str]:
    """One line a check, what to do indented under it, and a closing line."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        first, *more = check.detail.splitlines() or [""]
        lines.append(f"{check.status.upper():<8} {check.name:<{width}}  {first}")
        indent = " " * (width + 11)
        lines += [indent + line for line in more]
        lines += [f"{indent}{'-> ' if number == 0 else '   '}{line}" for number, line in enumerate(check.fix.splitlines())]
    failed = [check.name for check in checks if check.status is Status.FAIL]
    warned = [check.name for check in checks if check.status is Status.WARNING]
    if failed:
        lines.append(f"\nNot ready: {', '.join(failed)}.")
    else:
        lines.append("\nReady." + (f" Have a look at: {', '.join(warned)}." if warned else ""))
    return lines


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", Status.OK, f"{version} ({sys.executable})")


def _pytest() -> Check:
    version = importlib.metadata.version("pytest")
    if tuple(int(part) for part in version.split(".")[:2]) < (8, 4):
        return Check("pytest", Status.FAIL, version, "pip install 'pytest>=8.4'")
    plugins = {entry.value for entry in importlib.metadata.entry_points(group="pytest11")}
    if "pytest_saber.plugin" not in plugins:
        return Check("pytest", Status.FAIL, f"{version}, but the plugin is not registered", "pip install pytest-saber")
    if environ_off := os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        detail = f"{version}; PYTEST_DISABLE_PLUGIN_AUTOLOAD={environ_off} keeps plugins from loading"
        return Check("pytest", Status.WARNING, detail, "Unset it, or give pytest `-p pytest_saber.plugin`.")
    return Check("pytest", Status.OK, version)


def _engine(environ: Mapping[str, str]) -> Iterator[Check]:
    import requests
    from docker.errors import DockerException

    from pytest_saber.sandbox import engine

    try:
        client = engine.client(_ENGINE_SECONDS)
    except (DockerException, OSError) as error:
        yield Check("engine", Status.FAIL, f"no Docker engine answers at {_endpoint(environ)}: {error}", _engine_fix(environ))
        return
    try:
        info, version = client.info(), client.version()
        yield engine_version(info, version, _endpoint(environ))
        yield storage(info)
        yield limits(info)
        yield _rights(info)
        yield _image(client)
        yield _disk(info)
    except (DockerException, requests.RequestException) as error:
        yield Check("engine", Status.FAIL, f"the engine at {_endpoint(environ)} failed: {error}", _engine_fix(environ))
    finally:
        client.close()


def _endpoint(environ: Mapping[str, str]) -> str:
    if host := environ.get("DOCKER_HOST"):
        return f"{host} (DOCKER_HOST)"
    if context := environ.get("DOCKER_CONTEXT"):
        return f"the context '{context}' (DOCKER_CONTEXT)"
    return "the current context"


def _engine_fix(environ: Mapping[str, str]) -> str:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        if environ.get(name):
            return f"Start the engine that {name} names, or unset {name}."
    socket = Path("/var/run/docker.sock")
    if socket.exists() and not os.access(socket, os.R_OK | os.W_OK):
        return f"You may not use {socket}: `sudo usermod -aG docker $USER` and log in again, or use a rootless engine."
    if shutil.which("dockerd"):
        return "Docker is installed but does not run: `sudo systemctl start docker`, or as root `dockerd &`."
    if Path("/etc/debian_version").exists():
        return "sudo apt-get install docker.io iptables\n(in a checkout, `make setup` as root does it)"
    return "Install Docker (https://docs.docker.com/engine/install/) and start it."


def engine_version(info: Mapping[str, Any], version: Mapping[str, Any], endpoint: str) -> Check:
    """Judge the engine by its `info` and `version` answers."""
    detail = f"Docker {version.get('Version')}, API {version.get('ApiVersion')}, {info.get('OperatingSystem')}, at {endpoint}"
    if info.get("OSType") != "linux":
        return Check(
            "engine", Status.FAIL, f"{detail}; runs {info.get('OSType')} containers", "Switch the engine to Linux containers."
        )
    options = " ".join(map(str, info.get("SecurityOptions") or ()))
    if "seccomp" not in options:
        fix = "Workspaces run without a system call filter: use a kernel and an engine with seccomp."
        return Check("engine", Status.WARNING, f"{detail}; no seccomp", fix)
    return Check("engine", Status.OK, detail)


def storage(info: Mapping[str, Any]) -> Check:
    """Judge the storage driver of the engine's `info`."""
    driver = str(info.get("Driver"))
    if driver in {"overlay2", "overlayfs"}:
        return Check("storage", Status.OK, driver)
    return Check(
        "storage",
        Status.FAIL,
        f"{driver}: the state of a workspace is read from an overlay's upper directory",
        'Set {"storage-driver": "overlay2"} in the engine\'s daemon.json and restart it.',
    )


def limits(info: Mapping[str, Any]) -> Check:
    """Whether the engine of this `info` can hold a workspace to its limits."""
    detail = f"cgroup v{info.get('CgroupVersion', '1')}, driver {info.get('CgroupDriver')}"
    kinds = {"memory": "MemoryLimit", "pids": "PidsLimit", "CPU": "CpuCfsQuota"}
    missing = [kind for kind, key in kinds.items() if not info.get(key)]
    if missing:
        fix = "Enable these cgroup controllers for the engine; a rootless engine needs cgroup v2 delegation from systemd."
        return Check("limits", Status.FAIL, f"{detail}; cannot limit {', '.join(missing)}", fix)
    return Check("limits", Status.OK, f"{detail}; memory, pids and CPU can be limited")


def _rights(info: Mapping[str, Any]) -> Check:
    if _local_root(info) is not None and os.geteuid() == 0:
        return Check("rights", Status.OK, "root beside the engine: workspaces are read directly")
    who = "not root" if os.geteuid() else "the engine's storage is not on this machine"
    return Check("rights", Status.NOTE, f"{who}: workspaces are read by a helper container (0.4 s a run more)")


def _local_root(info: Mapping[str, Any]) -> Path | None:
    """The engine's storage, when it is on this machine and we may read it."""
    root = Path(str(info.get("DockerRootDir") or "/nonexistent"))
    return root if os.access(root / "image", os.R_OK | os.X_OK) else None


def _image(client: docker.DockerClient) -> Check:
    from pytest_saber.errors import InfrastructureFault
    from pytest_saber.sandbox import image

    try:
        tag = image.find(client)
    except InfrastructureFault as fault:
        return Check("image", Status.FAIL, str(fault), "pytest-saber image")
    if tag is None:
        fix = "The first session builds it (a minute or two), or now: pytest-saber image"
        return Check("image", Status.WARNING, "the workspace image is not built yet", fix)
    return Check("image", Status.OK, tag)


def _disk(info: Mapping[str, Any]) -> Check:
    root = _local_root(info)
    place = root or Path.cwd()
    free = shutil.disk_usage(place).free
    detail = f"{free / _GIB:.1f} GiB free in {place}" + ("" if root else " (the engine's own disk cannot be seen from here)")
    fix = "Free some space, e.g. `pytest-saber image --prune` and `docker system df`."
    if free < _DISK_NEEDED:
        return Check("disk", Status.FAIL, f"{detail}; {_DISK_NEEDED // _GIB} GiB are needed", fix)
    if free < _DISK_WANTED:
        return Check("disk", Status.WARNING, f"{detail}; {_DISK_WANTED // _GIB} GiB are advisable", fix)
    return Check("disk", Status.OK, detail)


def _providers(environ: Mapping[str, str]) -> Iterator[Check]:
    for sdk, variables in (("openai", ("OPENAI_API_KEY",)), ("anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))):
        found = [variable for variable in variables if environ.get(variable, "").strip()]
        key = f"{found[0] if found else variables[0]} is {'set' if found else 'not set'}"
        if importlib.util.find_spec(sdk) is None:
            fix = f"For {sdk}/... models: pip install 'pytest-saber[{sdk}]'"
            yield Check(sdk, Status.NOTE, f"SDK not installed; {key}", fix)
            continue
        detail = f"SDK {importlib.metadata.version(sdk)}; {key}"
        if found:
            yield Check(sdk, Status.OK, detail)
        else:
            yield Check(sdk, Status.NOTE, detail, f"For {sdk}/... models: export {variables[0]}=...")


def _local_model() -> Check:
    missing = []
    if importlib.util.find_spec("xllamacpp") is None:
        missing.append("pip install 'pytest-saber[local]'")
    try:
        ctypes.CDLL(_OPENMP)
    except OSError:
        missing.append(f"sudo apt-get install libgomp1 ({_OPENMP} is missing)")
    if not model.weights().is_file():
        missing.append("pytest-saber model")
    if missing:
        return Check("local", Status.NOTE, "local/smollm2-135m is not set up", "\n".join(missing))
    return Check("local", Status.OK, f"xllamacpp {importlib.metadata.version('xllamacpp')}, {model.weights()}")


def _xdist() -> Check:
    if importlib.util.find_spec("xdist") is None:
        return Check("xdist", Status.NOTE, "not installed: no -n (--saber-jobs works without it)", "pip install pytest-xdist")
    return Check("xdist", Status.OK, importlib.metadata.version("pytest-xdist"))
