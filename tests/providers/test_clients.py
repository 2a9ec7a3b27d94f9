"""The vendors' real SDKs against a real HTTP server that speaks their protocols, failures included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from support.model_server import Call, Cut, ErrorEvent, Hang, ModelServer, Raw, Reply, Script, Status, Trickle

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model.evidence import Usage
from pytest_saber.model.ports import ChatMessage, ModelClient, ModelRequest, ToolSpec, ToolUse
from pytest_saber.providers import ModelOptions, anthropic, openai
from pytest_saber.providers.retry import BudgetSpent, Retrier
from pytest_saber.providers.sdk import LARGEST_REPLY

KEY = "sk-test-0123456789abcdefghijk"
BASH = ToolSpec(
    "bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
)
REQUEST = ModelRequest("You are an agent.", (ChatMessage("user", "List the files."),), (BASH,), seconds=60.0)

WAYS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "chat": ("openai", {"api": "chat"}),
    "chat-stream": ("openai", {"api": "chat", "stream": "true"}),
    "responses": ("openai", {"api": "responses"}),
    "responses-stream": ("openai", {"api": "responses", "stream": "true"}),
    "messages": ("anthropic", {"stream": "false"}),
    "messages-stream": ("anthropic", {"stream": "true"}),
}


class Link:
    """A client, its server, and the pauses it made."""

    def __init__(self, client: ModelClient, server: ModelServer, pauses: list[float]) -> None:
        self.client = client
        self.server = server
        self.pauses = pauses

    @property
    def sent(self) -> dict[str, object]:
        """The body of the last request."""
        body: dict[str, object] = self.server.requests[-1].body
        return body


@pytest.fixture
def connect() -> Iterator[Callable[..., Link]]:
    """Make a link for a way and a script. Pauses are noted, not waited for."""
    opened: list[Link] = []

    def make(way: str, script: Script, *, tries: int = 3, **args: str) -> Link:
        provider, own = WAYS[way]
        server = ModelServer(script).__enter__()
        pauses: list[float] = []
        module = openai if provider == "openai" else anthropic
        options = ModelOptions(
            server.openai_url if provider == "openai" else server.url,
            {**own, **args},
            {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY},
        )
        client = module.connect("some-model", options, retrier=Retrier(tries=tries, seed=1, pause=pauses.append))
        opened.append(Link(client, server, pauses))
        return opened[-1]

    yield make
    for link in opened:
        link.server.over.set()
        link.client.close()
        link.server.__exit__(None, None, None)


every_way = pytest.mark.parametrize("way", WAYS)


@every_way
def test_a_text_reply(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Reply("All done, näïve ☃.")])
    reply = link.client.complete(REQUEST)
    assert (reply.message.text, reply.message.tool_uses, reply.stop) == ("All done, näïve ☃.", (), "end")
    assert reply.usage == Usage(input_tokens=11, output_tokens=7, cached_tokens=3, model_calls=1)
    assert reply.model == "some-model-2026"
    assert link.sent.get("stream", False) is ("stream" in way)
    assert link.server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@every_way
def test_parallel_tool_calls_and_their_results_go_round(way: str, connect: Callable[..., Link]) -> None:
    calls = [Call("bash", {"command": "ls -la"}, "c1"), Call("bash", {"command": 'echo "ü"'}, "c2")]
    link = connect(way, [Reply("Looking.", calls, thinking="secret thoughts"), Reply("Two files.")])
    first = link.client.complete(REQUEST)
    assert (first.stop, first.message.text) == ("tool_use", "Looking.")
    assert [(use.id, use.name, use.arguments) for use in first.message.tool_uses] == [
        ("c1", "bash", {"command": "ls -la"}),
        ("c2", "bash", {"command": 'echo "ü"'}),
    ]
    results = (ChatMessage("tool", "a.txt caf\udce9", call_id="c1"), ChatMessage("tool", "", call_id="c2", is_error=True))
    second = link.client.complete(replace(REQUEST, messages=(*REQUEST.messages, first.message, *results)))
    assert second.message.text == "Two files."
    sent = str(link.sent)
    for text in ("You are an agent.", "List the files.", "Looking.", "ls -la", "c1", "c2", "a.txt caf\ufffd"):
        assert text in sent
    if not way.startswith("chat"):
        assert "secret thoughts" in sent  # reasoning is sent back as the service gave it


@every_way
def test_broken_arguments_are_the_model_s_and_can_be_sent_back(way: str, connect: Callable[..., Link]) -> None:
    texts = ['{"command": "ls', "[1]", '{"n": NaN}', '{"a":' * 40 + "1" + "}" * 40, "ls -la"]
    link = connect(way, [behaviour for text in texts for behaviour in (Reply("", [Call("bash", text, "c1")]), Reply("Sorry."))])
    for text in texts:
        first = link.client.complete(REQUEST)
        (use,) = first.message.tool_uses
        assert (use.name, use.arguments) == ("bash", None)
        answer = ChatMessage("tool", "error: not JSON", call_id="c1", is_error=True)
        second = link.client.complete(replace(REQUEST, messages=(*REQUEST.messages, first.message, answer)))
        assert second.message.text == "Sorry."
        assert text not in str(link.sent)


@pytest.mark.parametrize("way", ["chat", "responses", "responses-stream"])
def test_custom_tool_calls_are_broken_calls(way: str, connect: Callable[..., Link]) -> None:
    reply = connect(way, [Reply("", [Call("bash", "ls -la", "c1", custom=True)])]).client.complete(REQUEST)
    assert reply.message.tool_uses == (ToolUse("c1", "bash", None, "ls -la"),)


@every_way
def test_an_empty_argument_text_means_no_arguments(way: str, connect: Callable[..., Link]) -> None:
    arguments: Mapping[str, str] | str = {} if way == "messages" else ""
    reply = connect(way, [Reply("", [Call("status", arguments, "c1")])]).client.complete(REQUEST)
    assert reply.message.tool_uses[0].arguments == {}


@every_way
def test_a_refusal_stops(way: str, connect: Callable[..., Link]) -> None:
    reply = connect(way, [Reply(refusal="I can't help with that.")]).client.complete(REQUEST)
    assert (reply.stop, reply.message.text) == ("refusal", "I can't help with that.")


STOPS = {
    "chat": {"length": "length", "content_filter": "refusal", "something_new": "other"},
    "responses": {"max_output_tokens": "length", "content_filter": "refusal", "something_new": "other"},
    "messages": {
        "max_tokens": "length",
        "pause_turn": "pause",
        "refusal": "refusal",
        "model_context_window_exceeded": "context_overflow",
        "stop_sequence": "end",
        "something_new": "other",
    },
}


@every_way
def test_stop_reasons(way: str, connect: Callable[..., Link]) -> None:
    words = STOPS[way.partition("-")[0]]
    link = connect(way, [Reply("partial", stop=word) for word in words])
    assert {word: link.client.complete(REQUEST).stop for word in words} == words


PASSING = (
    Status(500, "boom"),
    Status(502, "bad gateway"),
    Status(503, "unavailable"),
    Status(529, "Overloaded", "overloaded_error"),
    Status(408, "request timeout"),
    Status(409, "conflict"),
    Raw(),
    Raw("<html>proxy error</html>", "text/html"),
    Raw("{}"),
    Raw("null"),
    Raw('{"choices": [], "output": 3, "content": {}}'),
    Raw("[" * 100_000),
    Raw(" " * (LARGEST_REPLY + 1)),
    Cut(),
)


@every_way
def test_faults_that_pass_are_tried_again(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [*PASSING, Reply("Back again.")], tries=len(PASSING) + 1)
    assert link.client.complete(replace(REQUEST, seconds=10_000.0)).message.text == "Back again."
    assert len(link.server.requests) == len(PASSING) + 1
    assert len(link.pauses) == len(PASSING)


@pytest.mark.parametrize("way", [way for way in WAYS if "stream" in way])
def test_half_a_stream_is_never_a_reply(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Cut(events=0), Cut(events=1), Cut(events=3), ErrorEvent(), Reply("Whole.")], tries=5)
    assert link.client.complete(REQUEST).message.text == "Whole."
    assert len(link.server.requests) == 5


@every_way
def test_retry_after_is_respected(way: str, connect: Callable[..., Link]) -> None:
    limited = Status(429, "slow down", "rate_limit_error", headers={"retry-after": "7"})
    link = connect(way, [limited, Reply("Now.")])
    assert link.client.complete(REQUEST).message.text == "Now."
    assert 7.0 <= link.pauses[0] <= 7.5


@every_way
def test_exhausted_tries_are_an_incident_that_says_what_happened(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Status(503, "we are down", "server_error")])
    with pytest.raises(InfrastructureFault) as caught:
        link.client.complete(REQUEST)
    assert caught.value.source is FaultSource.MODEL_SERVICE
    provider = WAYS[way][0]
    assert str(caught.value) == f"{provider}/some-model: HTTP 503: we are down (server_error) (3 tries in 0 s)"
    assert len(link.server.requests) == 3  # the SDK adds no tries of its own


USELESS: Sequence[tuple[Status, FaultSource, str]] = (
    (
        Status(401, f"Incorrect API key provided: {KEY[:7]}****hijk", "authentication_error"),
        FaultSource.CREDENTIALS,
        "the service refused the key in ",
    ),
    (Status(403, "no access", "permission_error"), FaultSource.CREDENTIALS, "HTTP 403: no access (permission_error)"),
    (Status(402, "pay first", "billing_error"), FaultSource.QUOTA, "HTTP 402: pay first (billing_error)"),
    (Status(429, "Over quota", "insufficient_quota", "insufficient_quota"), FaultSource.QUOTA, "HTTP 429: Over quota"),
    (Status(400, "Your credit balance is too low", "invalid_request_error"), FaultSource.QUOTA, "credit balance is too low"),
    (Status(404, "no such model", "not_found_error"), FaultSource.MODEL_SERVICE, "HTTP 404: no such model (not_found_error)"),
    (Status(400, "tool_choice needs a parser"), FaultSource.MODEL_SERVICE, "works with --saber-tool-format=fenced"),
)


@every_way
def test_useless_tries_are_not_made(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [failure for failure, _, _ in USELESS])
    for number, (_, source, text) in enumerate(USELESS, start=1):
        with pytest.raises(InfrastructureFault) as caught:
            link.client.complete(REQUEST)
        assert caught.value.source is source
        assert text in str(caught.value)
        assert KEY[:7] not in str(caught.value)
        assert len(link.server.requests) == number


BEHAVIOUR: Sequence[tuple[Status, str]] = (
    (Status(400, "too long", "invalid_request_error", "context_length_exceeded"), "context_overflow"),
    (Status(400, "This model's maximum context length is 4096 tokens", "invalid_request_error"), "context_overflow"),
    (Status(400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), "context_overflow"),
    (Status(400, "the request exceeds the available context", "exceed_context_size_error"), "context_overflow"),
    (Status(413, "Request exceeds the maximum size", "request_too_large"), "context_overflow"),
    (Status(400, "flagged", "content_filter", "content_filter"), "refusal"),
)


@every_way
def test_a_full_context_and_a_filtered_prompt_are_the_model_s_behaviour(way: str, connect: Callable[..., Link]) -> None:
    cases = [case for case in BEHAVIOUR if case[0].error_code != "context_length_exceeded" or not way.startswith("messages")]
    link = connect(way, [failure for failure, _ in cases])
    for failure, stop in cases:
        reply = link.client.complete(REQUEST)
        assert (reply.stop, reply.message.text) == (stop, "")
        assert failure.message in reply.details["refused"]
    assert len(link.server.requests) == len(cases)


@every_way
def test_a_hang_ends_with_the_timeout_of_a_try(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Hang(), Reply("Awake.")], timeout="1")
    assert link.client.complete(REQUEST).message.text == "Awake."


@pytest.mark.parametrize("way", ["chat", "responses", "messages"])
def test_a_body_that_never_ends_does(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Trickle(), Reply("Awake.")], timeout="1")
    assert link.client.complete(REQUEST).message.text == "Awake."


@pytest.mark.parametrize("way", ["chat", "messages"])
def test_a_hang_ends_with_the_request_s_budget(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Hang()])
    with pytest.raises(BudgetSpent, match=r"some-model: no answer in time$"):
        link.client.complete(replace(REQUEST, seconds=0.5))


@every_way
def test_nobody_listening_is_an_incident(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Reply("x")])
    link.server.__exit__(None, None, None)
    try:
        with pytest.raises(InfrastructureFault, match=r"some-model: cannot be reached: .*\(3 tries in"):
            link.client.complete(REQUEST)
    finally:
        link.server = ModelServer([Reply("x")]).__enter__()


@every_way
def test_arguments_reach_the_service(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Reply("x")], max_tokens="77", temperature="0.5", extra_body='{"top_k": 5}')
    link.client.complete(REQUEST)
    limit = {"chat": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}[way.partition("-")[0]]
    assert (link.sent[limit], link.sent["temperature"], link.sent["top_k"]) == (77, 0.5, 5)


@every_way
def test_tools_are_sent_only_when_asked_for(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Reply("x")])
    link.client.complete(REQUEST)
    assert "Run a command." in str(link.sent["tools"])
    link.client.complete(replace(REQUEST, tools=()))
    assert "tools" not in link.sent


def test_reasoning_is_not_asked_for_again_from_a_model_without_it(connect: Callable[..., Link]) -> None:
    refused = Status(400, "Encrypted content is not supported with this model.", "invalid_request_error")
    link = connect("responses", [refused, Reply("Fine."), Reply("Again.")])
    assert link.client.complete(REQUEST).message.text == "Fine."
    assert link.client.complete(REQUEST).message.text == "Again."
    assert ["include" in request.body for request in link.server.requests] == [True, False, False]
    assert link.pauses == []


def test_reasoning_and_caching_settings(connect: Callable[..., Link]) -> None:
    link = connect("responses", [Reply("x")], reasoning_effort="high")
    link.client.complete(REQUEST)
    assert (link.sent["reasoning"], link.sent["store"]) == ({"effort": "high"}, False)
    link = connect("chat", [Reply("x")], reasoning_effort="low", seed="4")
    link.client.complete(REQUEST)
    assert (link.sent["reasoning_effort"], link.sent["seed"]) == ("low", 4)
    link = connect("messages", [Reply("x")], cache="true", thinking_tokens="2000", effort="high", max_tokens="500")
    link.client.complete(REQUEST)
    assert link.sent["cache_control"] == {"type": "ephemeral"}
    assert (link.sent["thinking"], link.sent["max_tokens"]) == ({"type": "enabled", "budget_tokens": 2000}, 2500)
    assert link.sent["output_config"] == {"effort": "high"}


def test_long_anthropic_replies_are_streamed(connect: Callable[..., Link]) -> None:
    link = connect("messages", [Reply("x")])
    client = anthropic.connect("m", ModelOptions(link.server.url, {}, {"ANTHROPIC_AUTH_TOKEN": KEY}))
    client.complete(replace(REQUEST, max_tokens=1000))
    assert "stream" not in link.sent
    client.complete(replace(REQUEST, max_tokens=60_000))
    assert link.sent["stream"] is True
    assert link.server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    client.close()


@every_way
def test_a_closed_client_fails_at_once(way: str, connect: Callable[..., Link]) -> None:
    link = connect(way, [Reply("x")])
    link.client.complete(REQUEST)
    link.client.close()
    with pytest.raises(InfrastructureFault, match="the model client was closed"):
        link.client.complete(REQUEST)


def test_a_local_server_is_not_asked_through_a_proxy(connect: Callable[..., Link], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert connect("chat", [Reply("Direct.")]).client.complete(REQUEST).message.text == "Direct."
