"""What a user may say about the agent under test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_saber.providers.options import ModelOptions


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """`args` are the `--saber-agent-arg` pairs; `tool_format` is `auto`, `native` or `fenced`."""

    model: ModelOptions = field(default_factory=ModelOptions)
    args: Mapping[str, str] = field(default_factory=dict)
    tool_format: str = "auto"
