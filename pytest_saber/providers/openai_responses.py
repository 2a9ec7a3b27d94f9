"""The Responses API, used without storage at the service: the conversation, encrypted reasoning included, is sent each time."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from pytest_saber.model.evidence import Usage
from pytest_saber.model.ports import ChatMessage, ModelReply, ModelRequest, StopReason, ToolUse
from pytest_saber.providers.arguments import clean_json, clean_text, parse_arguments
from pytest_saber.providers.failures import BadReply
from pytest_saber.providers.openai_sdk import OpenAIClient
from pytest_saber.providers.retry import Retrier
from pytest_saber.providers.sdk import Settings, count

_REASONING = "reasoning.encrypted_content"


class ResponsesClient(OpenAIClient):
    """A ModelClient for `/responses`."""

    def __init__(self, settings: Settings, package: str, retrier: Retrier | None = None) -> None:
        super().__init__(settings, package, retrier)
        self._no_reasoning = threading.Event()

    def _send(self, sdk: Any, request: ModelRequest, timeout: float) -> ModelReply:
        deadline = time.monotonic() + timeout
        try:
            return self._once(sdk, request, deadline)
        except Exception as error:
            # Models without reasoning refuse to be asked for it; which ones do is known to the service only.
            if self._no_reasoning.is_set() or getattr(error, "status_code", None) != 400 or "ncrypted" not in str(error):
                raise
            self._no_reasoning.set()
        return self._once(sdk, request, deadline)

    def _once(self, sdk: Any, request: ModelRequest, deadline: float) -> ModelReply:
        body = self._body(request)
        timeout = max(0.1, deadline - time.monotonic())
        if not self._settings.args.get("stream", False):
            with sdk.responses.with_streaming_response.create(**body, timeout=timeout) as response:
                return read_response(self._read(response, deadline))
        with sdk.responses.create(**body, stream=True, timeout=timeout) as events:
            for event in events:
                if time.monotonic() > deadline:
                    raise TimeoutError
                if event.type in ("response.completed", "response.incomplete", "response.failed"):
                    return read_response(
                        self._received(event.response.model_dump(mode="json", exclude_unset=True, warnings=False))
                    )
        raise BadReply("the stream ended before the reply did")

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {
            "model": settings.name,
            "input": response_items(request),
            "max_output_tokens": settings.tokens(request),
            "store": False,
        }
        if request.system:
            body["instructions"] = clean_text(request.system)
        if not self._no_reasoning.is_set():
            body["include"] = [_REASONING]
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": clean_json(dict(spec.parameters)),
                    "strict": False,
                }
                for spec in request.tools
            ]
        temperature = settings.temperature(request)
        if temperature is not None:
            body["temperature"] = temperature
        if "reasoning_effort" in settings.args:
            body["reasoning"] = {"effort": settings.args["reasoning_effort"]}
        extra = dict(settings.args.get("extra_body", {}))
        if "seed" in settings.args:
            extra["seed"] = settings.args["seed"]
        if extra:
            body["extra_body"] = extra
        return body


def response_items(request: ModelRequest) -> list[dict[str, Any]]:
    """The conversation as input items."""
    items: list[dict[str, Any]] = []
    for message in request.messages:
        if message.role == "tool":
            items.append({"type": "function_call_output", "call_id": message.call_id, "output": clean_text(message.text)})
        elif message.role == "user":
            items.append({"role": "user", "content": clean_text(message.text)})
        elif isinstance(message.opaque, list):
            items += [item for item in message.opaque if isinstance(item, dict)]
        else:
            if message.text:
                items.append({"role": "assistant", "content": clean_text(message.text)})
            items += [
                {
                    "type": "function_call",
                    "call_id": use.id,
                    "name": use.name,
                    "arguments": json.dumps(clean_json(use.arguments or {})),
                }
                for use in message.tool_uses
            ]
    return items


def read_response(body: Any) -> ModelReply:
    """The reply of a response as decoded JSON. Raises BadReply when it is none, or failed."""
    try:
        status = body.get("status")
        if status in ("failed", "cancelled"):
            raise BadReply(f"the response {status}: {(body.get('error') or {}).get('message')}")
        texts: list[str] = []
        refusals: list[str] = []
        uses: list[ToolUse] = []
        opaque: list[Any] = []
        for item in body["output"]:
            kind = item["type"]
            if kind == "message":
                for part in item["content"]:
                    texts += [part["text"]] if part["type"] == "output_text" else []
                    refusals += [part["refusal"]] if part["type"] == "refusal" else []
            elif kind == "function_call":
                uses.append(ToolUse(item["call_id"], item["name"], parse_arguments(item["arguments"]), item["arguments"]))
            elif kind == "custom_tool_call":
                uses.append(ToolUse(item["call_id"], item["name"], None, str(item.get("input") or "")))
            if kind != "reasoning" or item.get("encrypted_content"):  # unstored reasoning without content cannot be sent back
                opaque.append(_replayable(item))
        text = "\n".join(texts or refusals)
        return ModelReply(
            ChatMessage("assistant", text, tuple(uses), opaque=opaque),
            _stop(body, bool(uses), bool(refusals)),
            _usage(body.get("usage")),
            str(body.get("model") or ""),
            {"status": str(status)},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BadReply(f"no response: {error!r}") from error


def _replayable(item: dict[str, Any]) -> dict[str, Any]:
    """An output item as input: broken arguments in the history make services fail."""
    if item["type"] == "function_call" and parse_arguments(item["arguments"]) is None:
        return {**item, "arguments": "{}"}
    return item


def _stop(body: Any, has_uses: bool, has_refusal: bool) -> StopReason:
    if body.get("status") == "incomplete":
        reason = (body.get("incomplete_details") or {}).get("reason")
        return "length" if reason == "max_output_tokens" else "refusal" if reason == "content_filter" else "other"
    if has_refusal:
        return "refusal"
    return "tool_use" if has_uses else "end"


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage(model_calls=1)
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens")
    return Usage(count(usage.get("input_tokens")), count(usage.get("output_tokens")), count(cached), 1)
