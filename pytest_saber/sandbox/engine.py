"""The connection to the Docker engine, and the translation of its errors into infrastructure faults."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import docker
import docker.errors
import requests
from docker.context import ContextAPI

from pytest_saber.errors import FaultSource, InfrastructureFault

CALL_SECONDS = 60
"""Longest silence of the engine during one call."""

_POOL = 64
"""Connections kept; every workspace holds none between calls but the attached one."""


def connect() -> docker.DockerClient:
    """A client for `DOCKER_HOST` or the current Docker context. Does not talk to the engine yet, except to agree on a version.

    Raises InfrastructureFault when there is no engine.
    """
    with faults("connect to the Docker engine"):
        return client()


def client(seconds: int = CALL_SECONDS) -> docker.DockerClient:
    """The same with errors as they come: docker.errors.DockerException, OSError."""
    knock()
    return docker.from_env(timeout=seconds, max_pool_size=_POOL)


def knock() -> None:
    """Raise OSError when nobody listens on the engine's unix socket.

    docker-py leaves the socket of a refused connection to the garbage collector (`UnixHTTPConnection.connect`), whose
    ResourceWarning then fails whatever test of the user runs at that moment.
    """
    host = os.environ.get("DOCKER_HOST") or ContextAPI.kwargs_from_context().get("base_url") or "unix:///var/run/docker.sock"
    if not str(host).startswith("unix://"):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.settimeout(CALL_SECONDS)
        door.connect(str(host).removeprefix("unix://"))


def request(client: docker.DockerClient, method: str, path: str, params: Mapping[str, str | int]) -> requests.Response:
    """A call that docker-py has no method for. Raises what docker-py raises, for a bad status docker.errors.APIError."""
    api = client.api
    response = api.request(method, f"{api.base_url}/v{api.api_version}{path}", params=dict(params), timeout=CALL_SECONDS)
    try:
        response.raise_for_status()
    except requests.exceptions.HTTPError as error:
        docker.errors.create_api_error_from_http_exception(error)
    return response


@contextmanager
def faults(action: str) -> Iterator[None]:
    """Turn every way in which the engine can fail `action` into InfrastructureFault(ENGINE)."""
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot {action}: {error.explanation or error}") from error
    except docker.errors.APIError as error:
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot {action}: the engine answered {_explain(error)}") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise InfrastructureFault(
            FaultSource.ENGINE,
            f"cannot {action}: {_root(error)} (is the Docker engine running? `pytest-saber doctor` checks it)",
        ) from error


def _explain(error: docker.errors.APIError) -> str:
    status = error.response.status_code if error.response is not None else "an error"
    return f"{status}: {error.explanation or error}"


def _root(error: BaseException) -> str:
    """The innermost message: libraries wrap a refused connection three times."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = error.__cause__ or error.__context__
        if inner is None:
            break
        error = inner
    return str(error) or type(error).__name__
