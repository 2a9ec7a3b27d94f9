"""`anthropic/NAME`: the Messages API of Anthropic, or a server that speaks it (`--saber-base-url`)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import Usage
from pytest_saber.model.ports import ChatMessage, ModelClient, ModelReply, ModelRequest, StopReason, ToolUse
from pytest_saber.providers.arguments import checked_arguments, clean_json, clean_text, parse_arguments
from pytest_saber.providers.failures import BadReply
from pytest_saber.providers.keys import UNUSED, Key, find_key
from pytest_saber.providers.options import ModelOptions, Reader, choice, flag, read_arguments, whole
from pytest_saber.providers.retry import Retrier
from pytest_saber.providers.sdk import COMMON_ARGUMENTS, SdkClient, Settings, checked_url, count, require

OFFICIAL = "https://api.anthropic.com"
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
STREAM_ABOVE = 8192
"""Replies that may be longer are streamed: the SDK refuses to wait for them otherwise."""

ARGUMENTS: Mapping[str, Reader] = {
    **COMMON_ARGUMENTS,
    "cache": flag,
    "effort": choice("low", "medium", "high", "xhigh", "max"),
    "stream": flag,
    "thinking_tokens": whole(1024, 200_000),
}

_STOPS: Mapping[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_overflow",
}


def connect(name: str, options: ModelOptions, *, retrier: Retrier | None = None) -> ModelClient:
    """A client for `anthropic/NAME`. Raises UsageError for a missing SDK or key, or a wrong argument."""
    require("anthropic", f"anthropic/{name}")
    args = read_arguments("anthropic", options.args, ARGUMENTS)
    base_url = options.base_url or options.environ.get("ANTHROPIC_BASE_URL", "") or OFFICIAL
    checked_url(base_url, "--saber-base-url" if options.base_url else "env ANTHROPIC_BASE_URL")
    official = is_official(base_url)
    variables = (args["key_env"],) if "key_env" in args else KEYS
    key = find_key(variables, options.environ)
    if key is None:
        if official or "key_env" in args:
            raise UsageError(
                f"--saber-model=anthropic/{name}: the environment variable {variables[0]} is not set;"
                f" export {variables[0]}=YOUR-KEY"
            )
        key = Key(f"{KEYS[0]} (not set)", UNUSED)
    return AnthropicClient(
        Settings("anthropic", name, key, base_url, args, options.args, max_tokens=16_384), "anthropic", retrier
    )


def is_official(base_url: str) -> bool:
    """Whether the address is Anthropic's own."""
    return urlsplit(base_url).hostname == "api.anthropic.com"


class AnthropicClient(SdkClient):
    """A ModelClient for `/v1/messages`."""

    def _create(self, package: Any, http_client: Any) -> Any:
        settings = self._settings
        secret = {"auth_token" if settings.key.variable == KEYS[1] else "api_key": settings.key.reveal()}
        return package.Anthropic(
            base_url=settings.base_url, max_retries=0, timeout=settings.timeout, http_client=http_client, **secret
        )

    def _send(self, sdk: Any, request: ModelRequest, timeout: float) -> ModelReply:
        body = self._body(request)
        deadline = time.monotonic() + timeout
        if not self._settings.args.get("stream", body["max_tokens"] > STREAM_ABOVE):
            with sdk.messages.with_streaming_response.create(**body, timeout=timeout) as response:
                return read_message(self._read(response, deadline))
        with sdk.messages.create(**body, stream=True, timeout=timeout) as events:
            body = assemble((event.model_dump(warnings=False, exclude_unset=True) for event in events), deadline)
            return read_message(self._received(body))

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        settings, args = self._settings, self._settings.args
        body: dict[str, Any] = {
            "model": settings.name,
            "messages": anthropic_messages(request),
            "max_tokens": settings.tokens(request),
        }
        if request.system:
            body["system"] = clean_text(request.system)
        if request.tools:
            body["tools"] = [
                {"name": spec.name, "description": spec.description, "input_schema": clean_json(dict(spec.parameters))}
                for spec in request.tools
            ]
        if args.get("cache", is_official(settings.base_url)):
            body["cache_control"] = {"type": "ephemeral"}
        if "thinking_tokens" in args:
            body["thinking"] = {"type": "enabled", "budget_tokens": args["thinking_tokens"]}
            body["max_tokens"] += args["thinking_tokens"]
        if "effort" in args:
            body["output_config"] = {"effort": args["effort"]}
        extra = dict(args.get("extra_body", {}))
        temperature = settings.temperature(request)
        if temperature is not None:
            extra["temperature"] = temperature  # the SDK has no parameter for it
        if extra:
            body["extra_body"] = extra
        return body


def anthropic_messages(request: ModelRequest) -> list[dict[str, Any]]:
    """The conversation in the protocol's form: turns alternate, all results of a turn's calls come first in one user turn."""
    turns: list[dict[str, Any]] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] = [*turns[-1]["content"], *blocks]
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: ChatMessage) -> list[Any]:
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.call_id, "content": clean_text(message.text)}
        return [{**result, "is_error": True}] if message.is_error else [result]
    if isinstance(message.opaque, list) and message.opaque:
        return message.opaque
    uses = [
        {"type": "tool_use", "id": use.id, "name": use.name, "input": clean_json(use.arguments or {})}
        for use in message.tool_uses
    ]
    if message.text.strip() or not uses:  # the service refuses blank text blocks
        return [{"type": "text", "text": clean_text(message.text) if message.text.strip() else "(nothing)"}, *uses]
    return list(uses)


def read_message(body: Any) -> ModelReply:
    """The reply of a message as decoded JSON. Raises BadReply when it is none."""
    try:
        texts: list[str] = []
        uses: list[ToolUse] = []
        opaque: list[Any] = []
        if not isinstance(body["content"], list):
            raise BadReply("the content is no list")
        for block in body["content"]:
            kind = block["type"]
            if kind == "text":
                texts.append(block["text"])
                if not block["text"].strip():
                    continue
            elif kind == "tool_use":
                raw = block.get("raw")  # of a stream; decoded arguments need no second look
                arguments = checked_arguments(block["input"]) if raw is None else parse_arguments(raw)
                uses.append(ToolUse(block["id"], block["name"], arguments, json.dumps(block["input"]) if raw is None else raw))
                block = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": arguments or {}}
            opaque.append({name: value for name, value in block.items() if value is not None})
        finish = body.get("stop_reason")
        return ModelReply(
            ChatMessage("assistant", "".join(texts), tuple(uses), opaque=opaque),
            _STOPS.get(finish, "other") if isinstance(finish, str) else "other",
            _usage(body.get("usage")),
            str(body.get("model") or ""),
            {"stop_reason": str(finish)},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BadReply(f"no message: {error!r}") from error


def _usage(usage: Any) -> Usage:
    """Input tokens read from and written to the cache are counted apart by the service, and are input all the same."""
    if not isinstance(usage, dict):
        return Usage(model_calls=1)
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Usage(count(usage.get("input_tokens")) + cached + written, count(usage.get("output_tokens")), cached, 1)


def assemble(events: Iterable[dict[str, Any]], deadline: float) -> dict[str, Any]:
    """One message out of the events of a stream. Raises BadReply for half a stream, TimeoutError after `deadline`."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    ended = False
    for event in events:
        if time.monotonic() > deadline:
            raise TimeoutError
        match event.get("type"):
            case "message_start":
                message = dict(event["message"])
            case "content_block_start":
                block = dict(event["content_block"])
                blocks[event["index"]] = {**block, "raw": ""} if block["type"] == "tool_use" else block
            case "content_block_delta":
                _extend(blocks[event["index"]], event["delta"])
            case "message_delta":
                message["stop_reason"] = event["delta"].get("stop_reason")
                message["usage"] = {**(message.get("usage") or {}), **_given(event.get("usage"))}
            case "message_stop":
                ended = True
    if not ended:
        raise BadReply("the stream ended before the reply did")
    return {**message, "content": [blocks[index] for index in sorted(blocks)]}


def _extend(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "input_json_delta":
            block["raw"] = block.get("raw", "") + delta["partial_json"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]


def _given(usage: Any) -> dict[str, Any]:
    return {name: value for name, value in (usage or {}).items() if value is not None}
