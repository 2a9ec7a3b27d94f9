"""Removal of what sessions leave: one's own at its end, and dead ones' at the next start."""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import docker
import docker.errors

from pytest_saber.sandbox.engine import faults
from pytest_saber.sandbox.identity import PROCESS_LABEL, SESSION_LABEL, ProcessIdentity

FOREIGN_SECONDS = 24 * 3600
"""Age from which things of a process that cannot be seen from here count as left behind: no session lasts that long."""
ENDED_SECONDS = 2 * 3600
"""The same for its containers that do not run: one ends with its owner's connection, after the command under way, and a
living owner removes it once its state is read."""


def reap(client: docker.DockerClient, here: ProcessIdentity) -> int:
    """Remove containers, networks and volumes of dead sessions; returns how many. Raises InfrastructureFault."""
    return _remove(client, [SESSION_LABEL], lambda thing: is_left_behind(thing, here, partial(_ended, client)))


def is_left_behind(thing: Mapping[str, Any], here: ProcessIdentity, ended: Callable[[str], float]) -> bool:
    """Whether the owner of a container, network or volume, as the engine lists it, is dead as far as `here` can tell.

    `ended` tells for how many seconds a container with the given id has not run; 0 while it runs.
    """
    owner = ProcessIdentity.parse((thing["Labels"] or {}).get(PROCESS_LABEL, ""))
    dead = owner.is_dead(here) if owner else None
    if dead is not None:
        return dead
    age = _age(thing)
    if age > FOREIGN_SECONDS:
        return True
    # Asked only of what is old enough: it costs a call.
    return thing.get("State") in {"created", "exited", "dead"} and age > ENDED_SECONDS and ended(thing["Id"]) > ENDED_SECONDS


def remove_own(client: docker.DockerClient, session: str, here: ProcessIdentity) -> int:
    """Remove everything that this process made for the session. Raises InfrastructureFault."""
    return _remove(client, [f"{SESSION_LABEL}={session}", f"{PROCESS_LABEL}={here}"], lambda _: True)


def remove_container(client: docker.DockerClient, container_id: str) -> None:
    """Remove a container with its anonymous volumes, whatever its state; gone is fine. Raises InfrastructureFault."""
    with faults(f"remove the container {container_id[:12]}"):
        try:
            client.api.remove_container(container_id, force=True, v=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            # 409: somebody else, such as the watchdog, is removing it right now.
            if error.status_code != 409:
                raise


_Wanted = Callable[[Mapping[str, Any]], bool]


def _remove(client: docker.DockerClient, labels: list[str], wanted: _Wanted) -> int:
    removed = 0
    for thing in _listed(client, labels, wanted):
        removed += 1
        match thing["kind"]:
            case "container":
                remove_container(client, thing["Id"])
            case "network":
                _try(client.api.remove_network, thing["Id"])
            case _:
                _try(client.api.remove_volume, thing["Name"])
    return removed


def _listed(client: docker.DockerClient, labels: list[str], wanted: _Wanted) -> Iterator[Mapping[str, Any]]:
    """Containers first: networks and volumes in use cannot be removed."""
    filters = {"label": labels}
    with faults("list the containers, networks and volumes of sessions"):
        kinds: Iterable[tuple[str, list[dict[str, Any]]]] = (
            ("container", client.api.containers(all=True, filters=filters)),
            ("network", client.api.networks(filters=filters)),
            ("volume", client.api.volumes(filters=filters)["Volumes"] or []),
        )
    for kind, things in kinds:
        yield from ({**thing, "kind": kind} for thing in things if wanted(thing))


def _try(remove: Callable[[str], Any], name: str) -> None:
    with faults(f"remove {name}"):
        try:
            remove(name)
        except docker.errors.NotFound:
            return


def _ended(client: docker.DockerClient, container_id: str) -> float:
    with faults("learn when a container ended"):
        try:
            details: dict[str, Any] = client.api.inspect_container(container_id)
        except docker.errors.NotFound:
            return 0.0
    state = details["State"]
    if state["Running"]:
        return 0.0
    # The year 1 stands for never.
    never_ran = str(state["FinishedAt"]).startswith("0001-")
    return _age({"Created": details["Created"] if never_ran else state["FinishedAt"]})


def _age(thing: Mapping[str, Any]) -> float:
    created = thing.get("Created") or thing.get("CreatedAt")
    if isinstance(created, str):
        # RFC 3339 with up to nine digits of a second. Volumes have a zone other than UTC, which matters little against a day.
        created = calendar.timegm(time.strptime(created[:19], "%Y-%m-%dT%H:%M:%S"))
    return time.time() - float(created or 0)
