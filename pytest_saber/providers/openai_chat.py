"""Chat Completions: the protocol that nearly every model server speaks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_saber.model.evidence import Usage
from pytest_saber.model.ports import ChatMessage, ModelReply, ModelRequest, StopReason, ToolUse
from pytest_saber.providers.arguments import clean_json, clean_text, parse_arguments
from pytest_saber.providers.failures import BadReply
from pytest_saber.providers.openai_sdk import OpenAIClient, is_official
from pytest_saber.providers.sdk import count

_STOPS: Mapping[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "content_filter": "refusal",
}


class ChatClient(OpenAIClient):
    """A ModelClient for `/chat/completions`."""

    def _send(self, sdk: Any, request: ModelRequest, timeout: float) -> ModelReply:
        body = self._body(request)
        deadline = time.monotonic() + timeout
        if not self._settings.args.get("stream", False):
            with sdk.chat.completions.with_streaming_response.create(**body, timeout=timeout) as response:
                return read_completion(self._read(response, deadline))
        chunks = sdk.chat.completions.create(**body, stream=True, stream_options={"include_usage": True}, timeout=timeout)
        with chunks:
            body = assemble((chunk.model_dump(warnings=False) for chunk in chunks), deadline)
            return read_completion(self._received(body))

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._settings
        limit = "max_completion_tokens" if is_official(settings.base_url) else "max_tokens"
        body: dict[str, Any] = {"model": settings.name, "messages": chat_messages(request), limit: settings.tokens(request)}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": spec.name,
                        "description": spec.description,
                        "parameters": clean_json(dict(spec.parameters)),
                    },
                }
                for spec in request.tools
            ]
        temperature = settings.temperature(request)
        if temperature is not None:
            body["temperature"] = temperature
        for name in ("reasoning_effort", "seed"):
            if name in settings.args:
                body[name] = settings.args[name]
        if "extra_body" in settings.args:
            body["extra_body"] = settings.args["extra_body"]
        return body


def chat_messages(request: ModelRequest) -> list[dict[str, Any]]:
    """The conversation in the protocol's form."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": clean_text(request.system)}] if request.system else []
    for message in request.messages:
        if message.role == "tool":
            messages.append({"role": "tool", "tool_call_id": message.call_id, "content": clean_text(message.text)})
        elif message.role == "user":
            messages.append({"role": "user", "content": clean_text(message.text)})
        elif isinstance(message.opaque, dict):
            messages.append(dict(message.opaque))
        else:
            messages.append(_assistant(message.text, message.tool_uses, None))
    return messages


def _assistant(text: str, uses: Iterable[ToolUse], reasoning: str | None) -> dict[str, Any]:
    """An assistant turn to be sent back. Servers fail on broken arguments in the history, so those become an empty object."""
    turn: dict[str, Any] = {"role": "assistant", "content": clean_text(text)}
    calls = [
        {
            "id": use.id,
            "type": "function",
            "function": {"name": use.name, "arguments": json.dumps(clean_json(use.arguments or {}))},
        }
        for use in uses
    ]
    if calls:
        turn["tool_calls"] = calls
        if reasoning:
            turn["reasoning_content"] = reasoning  # some servers want the thinking of a turn that called tools
    return turn


def read_completion(body: Any) -> ModelReply:
    """The reply of a completion as decoded JSON. Raises BadReply when it is none."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        finish = choice.get("finish_reason")
        uses = tuple(_tool_use(call, number) for number, call in enumerate(message.get("tool_calls") or ()))
        text = message.get("content") or ""
        refusal = message.get("refusal") or ""
        if not isinstance(text, str) or not isinstance(refusal, str):
            raise BadReply("the content is no text")
        reasoning = message.get("reasoning_content")
        stop: StopReason = _STOPS.get(finish, "other") if isinstance(finish, str) else "other"
        if refusal:
            stop = "refusal"
        elif uses and stop in ("end", "other"):  # several servers say "stop" beside tool calls
            stop = "tool_use"
        opaque = _assistant(text, uses, reasoning if isinstance(reasoning, str) else None)
        return ModelReply(
            ChatMessage("assistant", text or refusal, uses, opaque=opaque),
            stop,
            _usage(body.get("usage")),
            str(body.get("model") or ""),
            {"finish_reason": str(finish)},
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadReply(f"no chat completion: {error!r}") from error


def _tool_use(call: Any, number: int) -> ToolUse:
    identifier = str(call.get("id") or f"call_{number}")
    if call.get("type") == "custom" or "function" not in call:
        custom = call["custom"]
        return ToolUse(identifier, str(custom["name"]), None, str(custom.get("input") or ""))
    function = call["function"]
    arguments = function.get("arguments")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolUse(identifier, str(function["name"]), parse_arguments(raw), raw)


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage(model_calls=1)
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    return Usage(count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")), count(cached), 1)


def assemble(chunks: Iterable[dict[str, Any]], deadline: float) -> dict[str, Any]:
    """One completion out of the chunks of a stream. Raises BadReply for half a stream, TimeoutError after `deadline`."""
    message: dict[str, Any] = {"content": "", "refusal": "", "reasoning_content": ""}
    calls: dict[int, dict[str, Any]] = {}
    body: dict[str, Any] = {"model": "", "usage": None}
    finish = None
    for chunk in chunks:
        if time.monotonic() > deadline:
            raise TimeoutError
        body["model"] = chunk.get("model") or body["model"]
        body["usage"] = chunk.get("usage") or body["usage"]
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                continue
            delta = choice.get("delta") or {}
            for name in message:
                message[name] += delta.get(name) or ""
            for part in delta.get("tool_calls") or ():
                _add_call(calls, part)
            finish = choice.get("finish_reason") or finish
    if finish is None:
        raise BadReply("the stream ended before the reply did")
    return {
        **body,
        "choices": [{"message": {**message, "tool_calls": [calls[n] for n in sorted(calls)]}, "finish_reason": finish}],
    }


def _add_call(calls: dict[int, dict[str, Any]], part: Mapping[str, Any]) -> None:
    call = calls.setdefault(part.get("index") or 0, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    call["id"] = part.get("id") or call["id"]
    function = part.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
