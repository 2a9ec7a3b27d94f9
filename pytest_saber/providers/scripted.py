"""`scripted/FILE.json`: a model that always says the same, for trying out agents, tasks and gates without a service.

The file is a list of replies, each `{"text": "...", "calls": [{"tool": "bash", "arguments": {...}}], "stop": "refusal"}`
with every key optional. The reply to a request is the one at the number of assistant turns that the request holds (the last one
from then on), so that a client has no state and any number of runs may share it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import Usage
from pytest_saber.model.ports import ChatMessage, ModelClient, ModelReply, ModelRequest, StopReason, ToolUse
from pytest_saber.providers.arguments import checked_arguments
from pytest_saber.providers.options import ModelOptions, flag, read_arguments

LARGEST = 1024 * 1024


class ScriptedClient:
    """A ModelClient that plays `replies`. Thread-safe, as it keeps no state."""

    def __init__(self, replies: Sequence[ModelReply], *, name: str = "replies", native_tools: bool = True) -> None:
        if not replies:
            raise UsageError(f"scripted/{name}: at least one reply is needed")
        self._replies = tuple(replies)
        self._name = name
        self._native_tools = native_tools

    @property
    def model(self) -> str:
        """`scripted/NAME`."""
        return f"scripted/{self._name}"

    @property
    def native_tools(self) -> bool:
        """As it was made."""
        return self._native_tools

    def complete(self, request: ModelRequest) -> ModelReply:
        """The reply whose turn it is, counted by the request's assistant messages; the last one again after the end."""
        turns = sum(message.role == "assistant" for message in request.messages)
        return self._replies[min(turns, len(self._replies) - 1)]

    def close(self) -> None:
        """Holds nothing that could be closed."""


def connect(name: str, options: ModelOptions) -> ModelClient:
    """The client for a file of replies. Raises UsageError."""
    args = read_arguments("scripted", options.args, {"native_tools": flag})
    if options.base_url:
        raise UsageError("--saber-base-url: a scripted model has none, its replies are in the file")
    path = Path(name)
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"--saber-model=scripted/{name}: larger than {LARGEST} bytes")
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--saber-model=scripted/{name}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--saber-model=scripted/{name}: not JSON: {error}") from error
    if not isinstance(body, list):
        raise UsageError(f"--saber-model=scripted/{name}: expected a list of replies")
    replies = [reply(item, f"scripted/{name}[{number}]") for number, item in enumerate(body)]
    return ScriptedClient(replies, name=path.name, native_tools=args.get("native_tools", True))


def reply(item: Any, where: str = "reply") -> ModelReply:
    """One reply from its JSON form. Raises UsageError."""
    if not isinstance(item, Mapping) or set(item) - {"text", "calls", "stop"}:
        raise UsageError(f"{where}: expected an object with text, calls and stop")
    text, calls, stop = item.get("text", ""), item.get("calls", []), item.get("stop")
    if not isinstance(text, str) or not isinstance(calls, list):
        raise UsageError(f"{where}: text must be a string and calls a list")
    uses = tuple(_use(call, number, where) for number, call in enumerate(calls, start=1))
    if stop is None:
        stop = "tool_use" if uses else "end"
    if stop not in get_args(StopReason):
        raise UsageError(f"{where}: stop must be one of {', '.join(get_args(StopReason))}")
    return ModelReply(ChatMessage("assistant", text, uses), cast(StopReason, stop), Usage(model_calls=1))


def _use(call: Any, number: int, where: str) -> ToolUse:
    arguments = checked_arguments(call.get("arguments", {})) if isinstance(call, Mapping) else None
    if arguments is None or not isinstance(call.get("tool"), str):
        raise UsageError(f"{where}: call {number}: expected an object with tool and arguments")
    return ToolUse(f"call_{number}", call["tool"], arguments, json.dumps(arguments))
