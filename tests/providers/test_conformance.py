"""What every model client keeps to, whichever provider it comes from. A new provider needs an entry here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias, get_args

import pytest
from support.model_server import Call, ModelServer, Reply

from pytest_saber.cache import models_dir
from pytest_saber.errors import InfrastructureFault, UsageError
from pytest_saber.model.ports import ChatMessage, ModelClient, ModelReply, ModelRequest, StopReason, ToolSpec
from pytest_saber.providers import ModelOptions, connect, names
from pytest_saber.providers.local import WEIGHTS

KEYS = {"OPENAI_API_KEY": "sk-0123456789abcdef", "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
TOOL = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
REQUEST = ModelRequest("You are an agent.", (ChatMessage("user", "Say hello."),), (TOOL,), max_tokens=8, seconds=300)
Maker: TypeAlias = Callable[[ExitStack, Path], ModelClient]


def _served(model: str, *, openai: bool) -> Maker:
    def make(stack: ExitStack, folder: Path) -> ModelClient:
        server = stack.enter_context(ModelServer([Reply("Hello.", [Call("bash", {"command": "true"})])]))
        return connect(model, ModelOptions(server.openai_url if openai else server.url, {}, KEYS))

    return make


def _scripted(stack: ExitStack, folder: Path) -> ModelClient:
    path = folder / "replies.json"
    path.write_text(json.dumps([{"text": "Hello.", "calls": [{"tool": "bash", "arguments": {"command": "true"}}]}]))
    return connect(f"scripted/{path}", ModelOptions())


def _local(stack: ExitStack, folder: Path) -> ModelClient:
    if not (models_dir() / WEIGHTS["smollm2-135m"]).is_file():
        pytest.skip("no weights of local/smollm2-135m: run `pytest-saber model`")
    return connect("local/smollm2-135m", ModelOptions(args={"context": "512", "slots": "1"}))


MAKERS: dict[str, Maker] = {
    "anthropic": _served("anthropic/m", openai=False),
    "local": _local,
    "openai": _served("openai/m", openai=True),
    "scripted": _scripted,
}


def test_every_provider_is_covered() -> None:
    assert sorted(MAKERS) == names()


@pytest.fixture(scope="module", params=[pytest.param(name, marks=[pytest.mark.long] * (name == "local")) for name in names()])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelClient]:
    with ExitStack() as stack:
        made = MAKERS[request.param](stack, tmp_path_factory.mktemp(request.param))
        stack.callback(made.close)
        yield made


def test_its_model_is_provider_and_name(client: ModelClient, request: pytest.FixtureRequest) -> None:
    provider, _, name = client.model.partition("/")
    assert provider in names()
    assert name


def test_a_reply_has_the_port_s_form(client: ModelClient) -> None:
    reply = client.complete(REQUEST)
    assert isinstance(reply, ModelReply)
    assert reply.message.role == "assistant"
    assert isinstance(reply.message.text, str)
    assert reply.stop in get_args(StopReason)
    assert reply.usage.model_calls == 1
    json.dumps(reply.message.opaque)


def test_a_reply_can_be_sent_back_with_results(client: ModelClient) -> None:
    first = client.complete(REQUEST)
    results = [ChatMessage("tool", "ok", call_id=use.id) for use in first.message.tool_uses] or [ChatMessage("user", "ok")]
    again = client.complete(ModelRequest("", (*REQUEST.messages, first.message, *results), (TOOL,), max_tokens=8, seconds=300))
    assert isinstance(again, ModelReply)


def test_hostile_text_is_sent_without_failing(client: ModelClient) -> None:
    text = "caf\udce9 \ud83d \x00\x1b[31m \u202e ]]>"
    assert isinstance(client.complete(ModelRequest(text, (ChatMessage("user", text),), max_tokens=8, seconds=300)), ModelReply)


def test_it_serves_threads_at_once(client: ModelClient) -> None:
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(client.complete, [REQUEST] * 4))
    assert all(isinstance(reply, ModelReply) for reply in replies)


def test_wrong_arguments_are_usage_errors(client: ModelClient) -> None:
    with pytest.raises(UsageError, match=r"--saber-model-arg no_such_argument=1: "):
        connect(client.model, ModelOptions(args={"no_such_argument": "1"}, environ=KEYS))


def test_closing_twice_is_fine(client: ModelClient) -> None:
    client.close()
    client.close()
    if not client.model.startswith("scripted/"):
        with pytest.raises(InfrastructureFault, match="closed"):
            client.complete(REQUEST)
