"""The connection to the Docker engine, and the translation of its errors into infrastructure faults."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, cast

import docker
import docker.errors
import requests
from docker.constants import MINIMUM_DOCKER_API_VERSION
from docker.transport import UnixHTTPAdapter

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.sandbox.transport import ClosingAdapter

CALL_SECONDS = 60
"""Longest silence of the engine during one call, unless `DOCKER_CLIENT_TIMEOUT` says another."""
HANDSHAKE_SECONDS = 20
"""The same for the first call, which an engine that works answers in no time."""
MOST_SILENCES = 3
"""Calls in a row that the engine may leave without an answer before it is asked no more."""

_POOL = 64
"""Connections kept; every workspace holds none between calls but the attached one."""
_UNIX = "http+docker://"
"""The scheme under which docker-py mounts its connections to a unix socket."""


class EngineSilent(requests.exceptions.Timeout):
    """The engine gave no answer in time, or has been silent too often to be asked again."""


class Patience:
    """What the clients of one session know of an engine that hangs, so that not every run waits for it anew. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silences = 0

    def raise_if_over(self) -> None:
        """Raises EngineSilent once the engine has left MOST_SILENCES calls in a row without an answer, for good."""
        with self._lock:
            if self._silences >= MOST_SILENCES:
                raise EngineSilent(f"it gave no answer to {MOST_SILENCES} calls in a row, and this session asks it no more")

    def silent(self) -> None:
        """A call got no answer in time."""
        with self._lock:
            self._silences += 1

    def answered(self) -> None:
        """A call got one, if only an error."""
        with self._lock:
            if self._silences < MOST_SILENCES:
                self._silences = 0


class _Api(docker.APIClient):
    patience: Patience

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """As `requests.Session.send`. Raises EngineSilent."""
        self.patience.raise_if_over()
        try:
            response = super().send(request, **kwargs)
        except requests.exceptions.Timeout as error:
            self.patience.silent()
            raise EngineSilent(f"it gave no answer within {kwargs.get('timeout') or self.timeout} s") from error
        self.patience.answered()
        return response


class _Client(docker.DockerClient):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.api = _Api(*args, **kwargs)


def connect(seconds: int | None = None, patience: Patience | None = None) -> docker.DockerClient:
    """A client for `DOCKER_HOST` or the current Docker context. Does not talk to the engine yet, except to agree on a version.

    `seconds` is the longest silence of the engine during one call, `patience` what clients of the same session share.
    Raises InfrastructureFault when there is no engine.
    """
    with faults("connect to the Docker engine"):
        return client(seconds, patience)


def client(seconds: int | None = None, patience: Patience | None = None) -> docker.DockerClient:
    """The same with errors as they come: docker.errors.DockerException, requests.RequestException, OSError."""
    seconds, patience = seconds or _call_seconds(os.environ), patience or Patience()
    # Naming a version keeps docker-py from its own first call, which would be made before the connections are ours.
    with closing(_client(min(seconds, HANDSHAKE_SECONDS), MINIMUM_DOCKER_API_VERSION, patience)) as first:
        version = first.version(api_version=False).get("ApiVersion")
    if not isinstance(version, str):
        raise docker.errors.DockerException("what answers there is no Docker engine: it names no version of the engine's API")
    return _client(seconds, version, patience)


def _call_seconds(environ: Mapping[str, str]) -> int:
    text = environ.get("DOCKER_CLIENT_TIMEOUT", "")
    if text and not (text.isascii() and text.isdigit() and int(text)):
        raise docker.errors.DockerException(f"DOCKER_CLIENT_TIMEOUT={text} is no number of seconds")
    return int(text) if text else CALL_SECONDS


def _client(seconds: int, version: str, patience: Patience) -> docker.DockerClient:
    client = _Client.from_env(version=version, timeout=seconds, max_pool_size=_POOL)
    cast(_Api, client.api).patience = patience
    adapter = client.api.get_adapter(client.api.base_url)
    if isinstance(adapter, UnixHTTPAdapter):
        client.api.mount(_UNIX, ClosingAdapter(f"http+unix://{adapter.socket_path}", seconds, max_pool_size=_POOL))
        adapter.close()
    return client


def request(client: docker.DockerClient, method: str, path: str, params: Mapping[str, str | int]) -> requests.Response:
    """A call that docker-py has no method for. Raises what docker-py raises, for a bad status docker.errors.APIError."""
    api = client.api
    response = api.request(method, f"{api.base_url}/v{api.api_version}{path}", params=dict(params), timeout=api.timeout)
    try:
        response.raise_for_status()
    except requests.exceptions.HTTPError as error:
        docker.errors.create_api_error_from_http_exception(error)
    return response


@contextmanager
def faults(action: str) -> Iterator[None]:
    """Turn every way in which the engine can fail `action` into InfrastructureFault(ENGINE)."""
    before = sys.exception()
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot {action}: {error.explanation or error}") from error
    except docker.errors.APIError as error:
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot {action}: the engine answered {_explain(error)}") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        root = error if isinstance(error, EngineSilent) else _root(error, before)
        why = f"the Docker engine hangs: {error}" if isinstance(error, EngineSilent) else str(root) or type(root).__name__
        hint = "is the Docker engine running? `pytest-saber doctor` checks it"
        if isinstance(root, PermissionError):
            hint = "this user may not use the Docker engine; `pytest-saber doctor` says how to"
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot {action}: {why} ({hint})") from error


def _explain(error: docker.errors.APIError) -> str:
    status = error.response.status_code if error.response is not None else "an error"
    return f"{status}: {error.explanation or error}"


def _root(error: BaseException, before: BaseException | None) -> BaseException:
    """The innermost error, as libraries wrap a refused connection three times; but not what was handled `before`.

    Nor a name that docker-py lacks where a package of an extra is missing: it says so itself, one further out.
    """
    seen: set[int] = {id(before)}
    while id(error) not in seen:
        seen.add(id(error))
        inner = error.__cause__ or error.__context__
        if inner is None or inner is before or isinstance(inner, NameError):
            break
        error = inner
    return error
