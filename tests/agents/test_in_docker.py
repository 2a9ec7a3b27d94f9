"""Whole runs: the real SDKs over HTTP, the ReAct agent, a real Docker workspace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.model_server import Behaviour, Call, ErrorEvent, ModelServer, Raw, Reply, Request, Status
from support.sandbox import new_session
from support.tasks import make_task

from pytest_saber.agents import AgentOptions, resolve
from pytest_saber.agents.react import ReactFactory
from pytest_saber.model.events import ToolResult
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.task import Limits
from pytest_saber.model.terms import TerminationReason
from pytest_saber.providers import ModelOptions
from pytest_saber.record.store import RunStore
from pytest_saber.runner.pipeline import Pipeline
from pytest_saber.sandbox.docker import DockerSandbox

pytestmark = [pytest.mark.docker, pytest.mark.long]

KEYS = {"OPENAI_API_KEY": "sk-0123456789abcdef", "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
TASK = make_task(limits=Limits(steps=6, seconds=120))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    made = DockerSandbox(new_session())
    yield made
    made.close()


def run(sandbox: DockerSandbox, folder: Path, server: ModelServer, model: str, args: dict[str, str] | None = None) -> Evidence:
    url = server.url if model.startswith("anthropic") else server.openai_url
    factory = resolve("react", model, AgentOptions(ModelOptions(url, args or {}, KEYS)))
    assert isinstance(factory, ReactFactory)
    pipeline = Pipeline("s1", sandbox, RunStore(folder))
    with closing(factory):
        completed = pipeline.run(TASK, 1, factory)
    assert pipeline.store.load(completed.path) == completed.evidence
    return completed.evidence


WAYS = [
    ("openai/m", {"api": "chat"}),
    ("openai/m", {"api": "responses"}),
    ("openai/m", {"api": "chat", "stream": "true"}),
    ("anthropic/m", {}),
]


@pytest.mark.parametrize(("model", "args"), WAYS)
def test_a_run_with_parallel_calls_a_broken_one_and_a_busy_service(
    sandbox: DockerSandbox, tmp_path: Path, model: str, args: dict[str, str]
) -> None:
    script: list[Behaviour] = [
        Status(429, "slow down", "rate_limit_error", headers={"retry-after-ms": "10"}),
        Reply(
            "Looking.", [Call("bash", {"command": "cat README.md"}, "a"), Call("bash", {"command": "id -un; rm -r build"}, "b")]
        ),
        Status(529, "Overloaded", "overloaded_error"),
        Reply("", [Call("bash", '{"command": "ls', "c")]),
        Reply("The build directory is gone."),
    ]
    with ModelServer(script) as server:
        evidence = run(sandbox, tmp_path, server, model, args)
    assert evidence.termination.reason is TerminationReason.ANSWERED
    assert evidence.final_response == "The build directory is gone."
    assert evidence.incidents == ()
    results = [event.payload for event in evidence.events if isinstance(event.payload, ToolResult)]
    assert [(result.output, result.exit_code) for result in results] == [("# app\n", 0), ("agent\n", 0)]
    assert evidence.final is not None
    assert "/home/agent/app/build/out.txt" not in evidence.final.files
    assert (evidence.usage.model_calls, evidence.usage.input_tokens) == (3, 33)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (Reply(refusal="I will not do that."), TerminationReason.REFUSED),
        (Status(400, "prompt is too long", "invalid_request_error"), TerminationReason.CONTEXT_OVERFLOW),
        (Reply("", [Call("bash", "{")]), TerminationReason.INVALID_REPLIES),
        (Reply("", [Call("bash", {"command": "true"})]), TerminationReason.STEP_LIMIT),
    ],
)
def test_what_the_model_does_is_judged(
    sandbox: DockerSandbox, tmp_path: Path, behaviour: Behaviour, reason: TerminationReason
) -> None:
    with ModelServer([behaviour]) as server:
        evidence = run(sandbox, tmp_path, server, "anthropic/m")
    assert evidence.termination.reason is reason
    assert evidence.incidents == ()
    assert evidence.final is not None


@pytest.mark.parametrize(
    ("behaviour", "source", "text"),
    [
        (Status(401, "bad key", "authentication_error"), "credentials", "the service refused the key in ANTHROPIC_API_KEY"),
        (Status(400, "Your credit balance is too low", "invalid_request_error"), "quota", "credit balance is too low"),
        (Raw(), "model_service", "malformed reply"),
        (ErrorEvent(), "model_service", "Overloaded"),
    ],
)
def test_what_the_service_does_is_an_incident(
    sandbox: DockerSandbox, tmp_path: Path, behaviour: Behaviour, source: str, text: str
) -> None:
    with ModelServer([behaviour]) as server:
        evidence = run(sandbox, tmp_path, server, "anthropic/m", {"tries": "2", "stream": "true"})
    assert evidence.termination.reason is TerminationReason.INCIDENT
    (incident,) = evidence.incidents
    assert incident.source == source
    assert text in incident.detail
    assert not any(value in str(evidence) for value in KEYS.values())


def test_many_runs_share_a_client(sandbox: DockerSandbox, tmp_path: Path) -> None:
    together = threading.Barrier(3)

    def script(request: Request) -> Behaviour:
        if request.turns:
            return Reply("Done.")
        together.wait(60)  # three requests are in the air at once
        return Reply("", [Call("bash", {"command": "rm -r build"})])

    with ModelServer(script) as server:
        factory = resolve("react", "openai/m", AgentOptions(ModelOptions(server.openai_url, {}, KEYS)))
        pipeline = Pipeline("s1", sandbox, RunStore(tmp_path))
        tasks = [replace(TASK, id=f"task-{number}") for number in range(3)]
        assert isinstance(factory, ReactFactory)
        with closing(factory), ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda task: pipeline.run(task, 1, factory), tasks))
    assert [completed.evidence.termination.reason for completed in done] == [TerminationReason.ANSWERED] * 3
