"""The workspace image: found by the hash of its recipe, and built when it is missing.

The tag is `pytest-saber/workspace:<hash>` over every file of the build context and the base it stands on, so a changed
Dockerfile is rebuilt and an unchanged one is not. The base is `debian:bookworm-slim`; where no registry serves it, it is
made from Debian's packages with mmdebstrap and imported under a name of our own (a user's `debian` image is never
shadowed).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.errors
import requests

from pytest_saber.cache import cache_dir
from pytest_saber.errors import FaultSource, InfrastructureFault

Progress = Callable[[str], None]

REPOSITORY = "pytest-saber/workspace"
BASE_REPOSITORY = "pytest-saber/base"
REGISTRY_BASE = "debian:bookworm-slim"
LABEL = "pytest-saber.image"
"""On every image made here; its value is the image's content hash."""

YOUNG_SECONDS = 3600.0
"""Images of other recipes are not outdated before."""

_SUITE = "bookworm"
_MMDEBSTRAP = (
    "mmdebstrap",
    "--variant=minbase",
    '--aptopt=Acquire::Retries "3"',
    # What Debian's own slim image leaves out, kept out of later installs too.
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    # mmdebstrap copies these two from the host, and the host's name is none of a workspace's business.
    '--customize-hook=rm -f "$1/etc/hostname" "$1/etc/resolv.conf"',
)

_STALL_SECONDS = 60.0
"""Longest silence of the engine while it pulls."""
_PULL_SECONDS = 300.0
_MAKE_BASE_SECONDS = 900.0
_BUILD_SECONDS = 1800.0
_LOCK_SECONDS = _PULL_SECONDS + _MAKE_BASE_SECONDS + _BUILD_SECONDS


class BaseUnavailable(InfrastructureFault):
    """The base image can neither be pulled nor, for want of mmdebstrap, be made."""

    def __init__(self, message: str) -> None:
        super().__init__(FaultSource.ENGINE, message)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A build context on one base."""

    context: Path
    base: str

    @property
    def digest(self) -> str:
        """Hex SHA-256 over the base's name and the path and content of every file of the context."""
        sha = hashlib.sha256(self.base.encode())
        for path in sorted(path for path in self.context.rglob("*") if path.is_file()):
            content = path.read_bytes()
            sha.update(f"\0{path.relative_to(self.context).as_posix()}\0{len(content)}\0".encode())
            sha.update(content)
        return sha.hexdigest()

    @property
    def tag(self) -> str:
        """Name of the image: another recipe has another one, the same recipe always the same."""
        return f"{REPOSITORY}:{self.digest[:16]}"


def context_dir() -> Path:
    """The build context: inside the installed package, or beside it in a checkout.

    Raises InfrastructureFault when the installation lacks it.
    """
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "_images" / "workspace", package.parent / "images" / "workspace"):
        if (candidate / "Dockerfile").is_file():
            return candidate
    raise InfrastructureFault(
        FaultSource.HARNESS, f"no workspace Dockerfile beside {package}: the installation is incomplete, reinstall pytest-saber"
    )


def own_base() -> str:
    """Name of the base that is made here, by the hash of how it is made."""
    recipe = hashlib.sha256("\0".join(_MMDEBSTRAP).encode()).hexdigest()
    return f"{BASE_REPOSITORY}:{_SUITE}-{recipe[:12]}"


def recipes(context: Path | None = None, environ: Mapping[str, str] = os.environ) -> tuple[Recipe, ...]:
    """The acceptable forms of the image, best first. `$SABER_BASE_IMAGE` names the only base to use, e.g. of a mirror."""
    context = context or context_dir()
    if chosen := environ.get("SABER_BASE_IMAGE"):
        return (Recipe(context, chosen),)
    return (Recipe(context, REGISTRY_BASE), Recipe(context, own_base()))


def find(client: docker.DockerClient, context: Path | None = None) -> str | None:
    """Tag of the image when the engine has it, else None. Raises InfrastructureFault when the engine fails."""
    return next((recipe.tag for recipe in recipes(context) if has(client, recipe.tag)), None)


def ensure(client: docker.DockerClient, *, progress: Progress, context: Path | None = None) -> str:
    """Tag of the workspace image, which is built when the engine lacks it; safe between threads and processes.

    `progress` gets one line for each step that takes time, and nothing when the image is there.
    Raises BaseUnavailable, or InfrastructureFault with the end of the output of what failed.
    """
    context = context or context_dir()
    if tag := find(client, context):
        return tag
    with _lock(cache_dir() / "image.lock", progress):
        if tag := find(client, context):
            return tag
        recipe = obtain_base(client, recipes(context), progress)
        _build(client, recipe, progress)
    return recipe.tag


def outdated(client: docker.DockerClient, *, older_than: float = YOUNG_SECONDS) -> list[str]:
    """Images that an earlier recipe made and no recipe of this version names: tags, ids of untagged ones, then old bases.

    Younger ones may be those of a session of another version that goes on just now. Raises InfrastructureFault.
    """
    current = {own_base(), *(recipe.tag for recipe in (*recipes(), *recipes(environ={})))}
    with _engine_faults("list the images"):
        tagged = [*_listed(client, older_than, REPOSITORY), *_listed(client, older_than, BASE_REPOSITORY)]
        untagged = [image["Id"] for image in _listed(client, older_than, None) if _is_made_here(client, image["Id"])]
    tags = sorted({tag for image in tagged for tag in image.get("RepoTags") or () if tag not in current})
    bases = [tag for tag in tags if tag.startswith(BASE_REPOSITORY)]
    return [*(tag for tag in tags if tag not in bases), *untagged, *bases]


def _listed(client: docker.DockerClient, older_than: float, repository: str | None) -> list[dict[str, Any]]:
    """Images with our label, of one repository or, without one, of none."""
    filters: dict[str, Any] = {"label": LABEL} | ({"dangling": True} if repository is None else {})
    images: list[dict[str, Any]] = client.api.images(name=repository, filters=filters)
    return [image for image in images if image["Created"] <= time.time() - older_than]


def _is_made_here(client: docker.DockerClient, image: str) -> bool:
    """Whether an image got our label itself; one that somebody builds on ours inherits it."""
    own = client.images.get(image)
    try:
        parent = client.images.get(own.attrs.get("Parent") or "none")
    except docker.errors.ImageNotFound:
        return False
    return bool(parent.labels.get(LABEL) != own.labels.get(LABEL))


def remove(client: docker.DockerClient, name: str) -> None:
    """Remove one image. Raises InfrastructureFault, e.g. when a container still uses it."""
    with _engine_faults(f"remove the image {name}"):
        client.api.remove_image(name)


def prune(client: docker.DockerClient, *, progress: Progress) -> None:
    """Remove what is outdated, and keep what is still used. Raises InfrastructureFault when the engine cannot list images."""
    for name in outdated(client):
        try:
            remove(client, name)
        except InfrastructureFault as fault:
            progress(f"kept {name}: {fault}")
        else:
            progress(f"removed {name}")


def obtain_base(client: docker.DockerClient, forms: tuple[Recipe, ...], progress: Progress) -> Recipe:
    """The first form whose base is there or can be had. Raises as `ensure`."""
    for recipe in forms:
        if has(client, recipe.base):
            return recipe
    wanted = forms[0]
    progress(f"pulling {wanted.base} (at most {_PULL_SECONDS:.0f} s)")
    reason = _pull(client, wanted.base)
    if reason is None:
        return wanted
    if len(forms) == 1:
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot pull {wanted.base}, which SABER_BASE_IMAGE names: {reason}")
    made = forms[1]
    if shutil.which(_MMDEBSTRAP[0]) is None:
        raise BaseUnavailable(
            f"cannot pull {wanted.base}: {reason}\n"
            "It can be made from Debian's packages instead, but mmdebstrap is not installed: "
            "run `apt-get install mmdebstrap debian-archive-keyring` as root and try again,\n"
            "or set SABER_BASE_IMAGE to a Debian bookworm image that your engine can pull."
        )
    progress(f"cannot pull {wanted.base} ({reason}); making {made.base} from Debian's packages, which takes about a minute")
    _make_base(client, made.base)
    return made


def has(client: docker.DockerClient, name: str) -> bool:
    """Whether the engine has an image. Raises InfrastructureFault."""
    with _engine_faults(f"look up the image {name}"):
        try:
            client.images.get(name)
        except docker.errors.ImageNotFound:
            return False
    return True


def _pull(client: docker.DockerClient, name: str) -> str | None:
    """Pull an image; the reason when it cannot be had."""
    try:
        for event in _bounded(lambda: client.api.pull(name, stream=True, decode=True), _STALL_SECONDS, _PULL_SECONDS):
            if error := event.get("error"):
                return str(error)
    except (docker.errors.DockerException, requests.RequestException) as error:
        return str(getattr(error, "explanation", None) or error)
    except TimeoutError as error:
        return str(error)
    return None if has(client, name) else "the engine reported success but has no such image"


def _make_base(client: docker.DockerClient, name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="pytest-saber-base-") as folder:
        scratch = Path(folder)
        # mmdebstrap and the unprivileged user that its apt downloads as work in here.
        scratch.chmod(0o755)
        archive, log = scratch / "base.tar", scratch / "log"
        command = [*_MMDEBSTRAP, _SUITE, str(archive)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": folder},
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(_MAKE_BASE_SECONDS)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _stop(process)
        if code != 0:
            ended = f"did not end within {_MAKE_BASE_SECONDS:.0f} s" if code is None else f"failed with exit code {code}"
            tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-20:])
            raise InfrastructureFault(FaultSource.ENGINE, f"mmdebstrap {ended}:\n{tail}")
        repository, _, tag = name.partition(":")
        with _engine_faults(f"import {name}"):
            changes = ['CMD ["bash"]', f"LABEL {LABEL}=base"]
            client.api.import_image(src=str(archive), repository=repository, tag=tag, changes=changes)
    if not has(client, name):
        raise InfrastructureFault(FaultSource.ENGINE, f"the engine did not import {name}; its log says why")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a process group: politely first, since mmdebstrap unmounts what it mounted."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _build(client: docker.DockerClient, recipe: Recipe, progress: Progress) -> None:
    progress(f"building {recipe.tag} on {recipe.base}, which takes about a minute")
    output: deque[str] = deque(maxlen=30)

    def start() -> Iterator[dict[str, Any]]:
        return client.api.build(
            path=str(recipe.context),
            tag=recipe.tag,
            buildargs={"BASE": recipe.base},
            labels={LABEL: recipe.digest},
            rm=True,
            forcerm=True,
            decode=True,
        )

    with _engine_faults(f"build {recipe.tag}"):
        for event in _bounded(start, _BUILD_SECONDS, _BUILD_SECONDS):
            text = str(event.get("stream", "")).strip()
            output.extend(text.splitlines())
            if text.startswith("Step "):
                progress(text.splitlines()[0][:100])
            if error := event.get("error"):
                tail = "\n".join(output)
                raise InfrastructureFault(FaultSource.ENGINE, f"cannot build the workspace image: {error}\n{tail}")
    if not has(client, recipe.tag):
        raise InfrastructureFault(FaultSource.ENGINE, f"the engine ended the build of {recipe.tag} without making it")


def _bounded(start: Callable[[], Iterator[Any]], stall: float, total: float) -> Iterator[dict[str, Any]]:
    """The events of a streaming engine call. Raises TimeoutError after `stall` silent or `total` seconds.

    The client waits without limit for the first byte of these calls, so they are read in a thread, which is left to the
    engine's mercy when a limit is passed.
    """
    events: queue.SimpleQueue[dict[str, Any] | Exception | None] = queue.SimpleQueue()

    def read() -> None:
        try:
            for event in start():
                events.put(event)
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            events.put(error)
        else:
            events.put(None)

    threading.Thread(target=read, name="pytest-saber-engine-stream", daemon=True).start()
    end = time.monotonic() + total
    while True:
        try:
            event = events.get(timeout=max(0.0, min(stall, end - time.monotonic())))
        except queue.Empty:
            raise TimeoutError(f"no end after {total:.0f} s, or no answer for {stall:.0f} s") from None
        if event is None:
            return
        if isinstance(event, Exception):
            raise event
        yield event


@contextmanager
def _engine_faults(what: str) -> Iterator[None]:
    """Turn every way the engine fails into an incident that says what was wanted."""
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, TimeoutError) as error:
        reason = getattr(error, "explanation", None) or error
        raise InfrastructureFault(FaultSource.ENGINE, f"the engine could not {what}: {reason}") from error


@contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    """Hold a file lock; the kernel lets go of it however the holder ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise InfrastructureFault(
            FaultSource.HARNESS, f"cannot write {path}: {error}; set SABER_CACHE to a folder of yours"
        ) from error
    with file:
        end = time.monotonic() + _LOCK_SECONDS
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    progress("waiting for another process that builds the workspace image")
                    waiting = True
                if time.monotonic() > end:
                    raise InfrastructureFault(
                        FaultSource.HARNESS, f"another process has held {path} for {_LOCK_SECONDS:.0f} s; end it and try again"
                    ) from None
                time.sleep(0.2)
        yield
