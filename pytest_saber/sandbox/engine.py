"""The connection to the Docker engine, and the translation of its errors into infrastructure faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import docker
import docker.errors
import requests

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
        return docker.from_env(timeout=CALL_SECONDS, max_pool_size=_POOL)


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
