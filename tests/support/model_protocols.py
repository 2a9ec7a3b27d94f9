"""What a model says, and how the OpenAI and Anthropic protocols write it: whole bodies, events of a stream, errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call; arguments given as text are sent as they are, broken or not."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    custom: bool = False

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Reply:
    """A model's reply. `stop` is the protocol's own word, or by default what fits."""

    text: str = ""
    calls: Sequence[Call] = ()
    stop: str = ""
    refusal: str = ""
    input_tokens: int = 11
    output_tokens: int = 7
    cached_tokens: int = 3
    thinking: str = ""


@dataclass(frozen=True)
class Status:
    """An HTTP error in the provider's form."""

    code: int
    message: str = "it failed"
    kind: str = "server_error"
    error_code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ErrorEvent:
    """A stream that begins and then carries an error event."""

    kind: str = "overloaded_error"
    message: str = "Overloaded"


class _Chat:
    """OpenAI Chat Completions."""

    done = "data: [DONE]\n\n"

    def body(self, reply: Reply, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": reply.refusal or None}
        if reply.calls:
            message["tool_calls"] = [self._call(call, number) for number, call in enumerate(reply.calls)]
        finish = reply.stop or ("tool_calls" if reply.calls else "stop")
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": f"{model}-2026",
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": self._usage(reply),
        }

    def _call(self, call: Call, number: int) -> dict[str, Any]:
        identifier = call.id or f"call_{number}"
        if call.custom:
            return {"id": identifier, "type": "custom", "custom": {"name": call.name, "input": call.text}}
        return {"id": identifier, "type": "function", "function": {"name": call.name, "arguments": call.text}}

    def _usage(self, reply: Reply) -> dict[str, Any]:
        return {
            "prompt_tokens": reply.input_tokens,
            "completion_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        }

    def events(self, reply: Reply, model: str) -> list[dict[str, Any]]:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": f"{model}-2026"}
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(reply.text)]
        deltas += [{"refusal": piece} for piece in _pieces(reply.refusal)]
        for number, call in enumerate(reply.calls):
            function = {"name": call.name, "arguments": ""}
            deltas.append(
                {"tool_calls": [{"index": number, "id": call.id or f"call_{number}", "type": "function", "function": function}]}
            )
            deltas += [{"tool_calls": [{"index": number, "function": {"arguments": piece}}]} for piece in _pieces(call.text)]
        finish = reply.stop or ("tool_calls" if reply.calls else "stop")
        chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        chunks.append({**head, "choices": [], "usage": self._usage(reply)})
        return chunks

    def error(self, status: Status) -> dict[str, Any]:
        return {"error": {"message": status.message, "type": status.kind, "param": None, "code": status.error_code}}

    def error_event(self, event: ErrorEvent) -> dict[str, Any]:
        return {"error": {"message": event.message, "type": event.kind, "code": None}}


class _Responses(_Chat):
    """OpenAI Responses."""

    done = ""

    def body(self, reply: Reply, model: str) -> dict[str, Any]:
        output: list[dict[str, Any]] = []
        if reply.thinking:
            output.append({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": reply.thinking})
        content: list[dict[str, Any]] = []
        if reply.text:
            content.append({"type": "output_text", "text": reply.text, "annotations": []})
        if reply.refusal:
            content.append({"type": "refusal", "refusal": reply.refusal})
        if content:
            output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
        for number, call in enumerate(reply.calls):
            identifier = call.id or f"call_{number}"
            if call.custom:
                output.append({"type": "custom_tool_call", "call_id": identifier, "name": call.name, "input": call.text})
            else:
                output.append(
                    {
                        "type": "function_call",
                        "id": f"fc_{number}",
                        "call_id": identifier,
                        "name": call.name,
                        "arguments": call.text,
                        "status": "completed",
                    }
                )
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": f"{model}-2026",
            "status": "incomplete" if reply.stop else "completed",
            "incomplete_details": {"reason": reply.stop} if reply.stop else None,
            "error": None,
            "output": output,
            "usage": {
                "input_tokens": reply.input_tokens,
                "input_tokens_details": {"cached_tokens": reply.cached_tokens},
                "output_tokens": reply.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": reply.input_tokens + reply.output_tokens,
            },
        }

    def events(self, reply: Reply, model: str) -> list[dict[str, Any]]:
        whole = self.body(reply, model)
        begun = {**whole, "status": "in_progress", "output": []}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "sequence_number": 0, "response": begun},
            {"type": "response.in_progress", "sequence_number": 1, "response": begun},
        ]
        events += [
            {
                "type": "response.output_text.delta",
                "sequence_number": 2 + number,
                "item_id": "msg_1",
                "output_index": 0,
                "content_index": 0,
                "delta": piece,
                "logprobs": [],
            }
            for number, piece in enumerate(_pieces(reply.text))
        ]
        last = "response.incomplete" if reply.stop else "response.completed"
        return [*events, {"type": last, "sequence_number": len(events), "response": whole}]

    def error_event(self, event: ErrorEvent) -> dict[str, Any]:
        return {"type": "error", "code": event.kind, "message": event.message, "param": None, "sequence_number": 9}


class _Messages:
    """Anthropic Messages."""

    done = ""

    def body(self, reply: Reply, model: str) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": f"{model}-2026",
            "content": self._content(reply),
            "stop_reason": reply.stop or ("tool_use" if reply.calls else "refusal" if reply.refusal else "end_turn"),
            "stop_sequence": None,
            "usage": self._usage(reply),
        }

    def _content(self, reply: Reply) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        if reply.thinking:
            content.append({"type": "thinking", "thinking": reply.thinking, "signature": "signed"})
        if reply.text or reply.refusal:
            content.append({"type": "text", "text": reply.text or reply.refusal})
        for number, call in enumerate(reply.calls):
            content.append({"type": "tool_use", "id": call.id or f"toolu_{number}", "name": call.name, "input": call.arguments})
        return content

    def _usage(self, reply: Reply) -> dict[str, Any]:
        return {
            "input_tokens": reply.input_tokens - reply.cached_tokens,
            "cache_read_input_tokens": reply.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": reply.output_tokens,
        }

    def events(self, reply: Reply, model: str) -> list[dict[str, Any]]:
        whole = self.body(reply, model)
        events: list[dict[str, Any]] = [
            {
                "type": "message_start",
                "message": {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}},
            }
        ]
        for index, block in enumerate(whole["content"]):
            events.append({"type": "content_block_start", "index": index, "content_block": self._empty(block)})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in self._deltas(block)]
            events.append({"type": "content_block_stop", "index": index})
        events.append(
            {
                "type": "message_delta",
                "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
                "usage": {"output_tokens": reply.output_tokens},
            }
        )
        return [*events, {"type": "message_stop"}]

    def _empty(self, block: Mapping[str, Any]) -> dict[str, Any]:
        match block["type"]:
            case "text":
                return {"type": "text", "text": ""}
            case "thinking":
                return {"type": "thinking", "thinking": "", "signature": ""}
        return {**block, "input": {}}

    def _deltas(self, block: Mapping[str, Any]) -> list[dict[str, Any]]:
        match block["type"]:
            case "text":
                return [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
            case "thinking":
                thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
                return [*thoughts, {"type": "signature_delta", "signature": block["signature"]}]
        text = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
        return [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(text)]

    def error(self, status: Status) -> dict[str, Any]:
        return {"type": "error", "error": {"type": status.kind, "message": status.message}, "request_id": "req_1"}

    def error_event(self, event: ErrorEvent) -> dict[str, Any]:
        return {"type": "error", "error": {"type": event.kind, "message": event.message}}


def _pieces(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]


PROTOCOLS: Mapping[str, Any] = {
    "/v1/chat/completions": _Chat(),
    "/v1/responses": _Responses(),
    "/v1/messages": _Messages(),
}
