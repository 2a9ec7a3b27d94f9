"""Whole sessions on a real engine: a project for them, and what they leave."""

from __future__ import annotations

import secrets

import docker
import pytest
from docker.models.containers import Container
from support.suites import Suite, document

from pytest_saber.record.store import RunStore


class Project(Suite):
    """A project whose sandbox is the default one. Its sessions have a name of their own, so that theirs can be told apart."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, client: docker.DockerClient) -> None:
        super().__init__(pytester, monkeypatch)
        (self.path / "conftest.py").unlink()
        self.session = f"test-{secrets.token_hex(6)}"
        self._client = client

    def containers(self) -> list[Container]:
        return self._client.containers.list(
            all=True, filters={"label": f"pytest-saber.session={self.session}"}, ignore_removed=True
        )

    def await_removal(self) -> None:
        """Wait for the engine's word that the session's containers, which somebody is removing, are gone."""
        for container in self.containers():
            try:
                container.wait(timeout=60, condition="removed")
            except docker.errors.NotFound:
                continue

    def started(self, *tasks: str) -> bool:
        """Whether a run, one of `tasks` if given, has begun its work: its container runs, and its first call is recorded."""
        folder = self.path / ".saber/runs" / self.session
        events = [path for name in tasks or ("*",) for path in folder.glob(f"{name}.*/events.jsonl")]
        return any("tool_call" in path.read_text() for path in events)


def sleeping(project: Project, *names: str) -> None:
    for name in names:
        project.add(f"tasks/{name}.yaml", document(name, safe="sleep 50"))


def verdicts(project: Project) -> dict[str, str]:
    """Task to outcome, of the runs that are on disk with a verdict."""
    store = RunStore(project.path / ".saber/runs")
    found = {}
    for run in store.recorded(project.session):
        verdict = store.load_verdict(run)
        if verdict is not None:
            found[store.load(run).key.task] = verdict.outcome.value
    return found
