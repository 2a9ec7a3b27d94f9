"""The local model: a real LLM in a child process. Nothing here asserts what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_saber.cache import models_dir
from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model.ports import ChatMessage, ModelReply, ModelRequest
from pytest_saber.providers import ModelOptions, connect
from pytest_saber.providers.local import WEIGHTS, LocalClient, find_model

pytest.importorskip("xllamacpp")
needs_weights = pytest.mark.skipif(
    not (models_dir() / WEIGHTS["smollm2-135m"]).is_file(), reason="no weights of local/smollm2-135m: run `pytest-saber model`"
)
REQUEST = ModelRequest("You are a coding agent.", (ChatMessage("user", "Say hello."),), max_tokens=8, seconds=300)


def children() -> set[int]:
    """Process ids of the engines that this process started."""
    listed = Path(f"/proc/{os.getpid()}/task").iterdir()
    pids = {int(pid) for task in listed for pid in (task / "children").read_text().split()}
    return {pid for pid in pids if b"local_server" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.fixture(scope="module")
def client() -> Iterator[LocalClient]:
    made = LocalClient("smollm2-135m", find_model("smollm2-135m"), {"max_tokens": 8, "context": 512, "slots": 1}, {})
    yield made
    made.close()
    assert children() == set()


@needs_weights
@pytest.mark.long
def test_it_answers_within_bounds(client: LocalClient) -> None:
    reply = client.complete(REQUEST)
    assert isinstance(reply, ModelReply)
    assert reply.stop in ("end", "length")
    assert 0 < reply.usage.output_tokens <= 8
    assert reply.usage.input_tokens > 5
    assert (client.model, reply.model, client.native_tools) == ("local/smollm2-135m", "smollm2-135m", False)


@needs_weights
@pytest.mark.long
def test_a_full_context_is_the_model_s_limit(client: LocalClient) -> None:
    long = ModelRequest("", (ChatMessage("user", "word " * 3000),), seconds=300)
    assert client.complete(long).stop == "context_overflow"


@needs_weights
@pytest.mark.long
def test_the_engine_shows_no_token_and_gets_no_keys(client: LocalClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.complete(REQUEST)
    (pid,) = children()
    assert Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")[1:-1] == [b"-P"]
    assert b"_KEY=" not in Path(f"/proc/{pid}/environ").read_bytes()


@needs_weights
@pytest.mark.long
def test_a_dead_engine_is_started_anew(client: LocalClient) -> None:
    client.complete(REQUEST)
    (first,) = children()
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert client.complete(REQUEST).usage.output_tokens > 0
    assert children() != {first}


@needs_weights
@pytest.mark.long
def test_a_killed_parent_takes_the_engine_along() -> None:
    script = """
import os, signal, sys
from pathlib import Path
from pytest_saber.providers.local import LocalClient, find_model
client = LocalClient("smollm2-135m", find_model("smollm2-135m"), {"context": 512, "slots": 1}, {})
engine = client._started()
print(engine.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        fd = os.pidfd_open(pid)
        assert parent.wait() == -signal.SIGKILL
    try:
        import select

        poll = select.poll()
        poll.register(fd, select.POLLIN)
        assert poll.poll(60_000), "the engine outlived its parent"
    finally:
        os.close(fd)


def test_a_broken_file_is_an_incident_with_the_engine_s_words(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 64)
    before = children()
    client = connect("local/broken", ModelOptions(args={"path": str(path)}))
    with pytest.raises(InfrastructureFault, match=r"^local/broken: the engine ended with code -?\d+: ") as caught:
        client.complete(REQUEST)
    assert caught.value.source is FaultSource.MODEL_SERVICE
    client.close()
    assert children() == before
    with pytest.raises(InfrastructureFault, match="the model client was closed"):
        client.complete(REQUEST)


@needs_weights
def test_what_an_identity_tells() -> None:
    client = LocalClient("x", find_model("smollm2-135m"), {}, {"path": "/home/me/x.gguf", "context": "512"})
    details = dict(client.details)
    assert details.pop("xllamacpp")
    assert details == {"weights": "SmolLM2-135M-Instruct.Q4_1.gguf", "model_arg.context": "512"}
