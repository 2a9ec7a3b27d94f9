"""The connection to the Docker engine, and the translation of its errors into infrastructure faults."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import docker
import docker.errors
import requests
from docker.constants import MINIMUM_DOCKER_API_VERSION
from docker.transport import UnixHTTPAdapter

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.sandbox.transport import ClosingAdapter

CALL_SECONDS = 60
"""Longest silence of the engine during one call."""

_POOL = 64
"""Connections kept; every workspace holds none between calls but the attached one."""
_UNIX = "http+docker://"
"""The scheme under which docker-py mounts its connections to a unix socket."""


def connect(seconds: int = CALL_SECONDS) -> docker.DockerClient:
    """A client for `DOCKER_HOST` or the current Docker context. Does not talk to the engine yet, except to agree on a version.

    `seconds` is the longest silence of the engine during one call. Raises InfrastructureFault when there is no engine.
    """
    with faults("connect to the Docker engine"):
        return client(seconds)


def client(seconds: int = CALL_SECONDS) -> docker.DockerClient:
    """The same with errors as they come: docker.errors.DockerException, requests.RequestException, OSError.

    `seconds` is the longest silence of the engine during one call.
    """
    # Naming a version keeps docker-py from its own first call, which would be made before the connections are ours.
    with closing(_client(seconds, MINIMUM_DOCKER_API_VERSION)) as first:
        version = first.version(api_version=False).get("ApiVersion")
    if not isinstance(version, str):
        raise docker.errors.DockerException("what answers there is no Docker engine: it names no version of the engine's API")
    return _client(seconds, version)


def _client(seconds: int, version: str) -> docker.DockerClient:
    client = docker.from_env(version=version, timeout=seconds, max_pool_size=_POOL)
    adapter = client.api.get_adapter(client.api.base_url)
    if isinstance(adapter, UnixHTTPAdapter):
        client.api.mount(_UNIX, ClosingAdapter(f"http+unix://{adapter.socket_path}", seconds, max_pool_size=_POOL))
        adapter.close()
    return client


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
    before = sys.exception()
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot {action}: {error.explanation or error}") from error
    except docker.errors.APIError as error:
        raise InfrastructureFault(FaultSource.ENGINE, f"cannot {action}: the engine answered {_explain(error)}") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise InfrastructureFault(
            FaultSource.ENGINE,
            f"cannot {action}: {_root(error, before)} (is the Docker engine running? `pytest-saber doctor` checks it)",
        ) from error


def _explain(error: docker.errors.APIError) -> str:
    status = error.response.status_code if error.response is not None else "an error"
    return f"{status}: {error.explanation or error}"


def _root(error: BaseException, before: BaseException | None) -> str:
    """The innermost message, as libraries wrap a refused connection three times; but not what was handled `before`."""
    seen: set[int] = {id(before)}
    while id(error) not in seen:
        seen.add(id(error))
        inner = error.__cause__ or error.__context__
        if inner is None or inner is before:
            break
        error = inner
    return str(error) or type(error).__name__
