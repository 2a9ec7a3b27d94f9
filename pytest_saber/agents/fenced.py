"""Tool calls as fenced blocks in plain text, for models without tool calls of their own.

A block whose info string is a shell's name is a command for `bash`; one named like a tool holds that tool's arguments as a
JSON object. Other blocks are text. A fence may be longer than three marks, and the last one may stay open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pytest_saber.model.ports import ChatMessage, ToolSpec, ToolUse
from pytest_saber.providers.arguments import parse_arguments

SHELLS = frozenset({"bash", "sh", "shell"})
MOST_BLOCKS = 4
"""Blocks of one reply that are run; further ones are usually imagined."""

_OPEN = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*+([A-Za-z0-9_.+-]*+)[ \t]*+$")


_EXAMPLE = (
    ChatMessage("user", "Which files are here?"),
    ChatMessage("assistant", "```bash\nls -la\n```"),
    ChatMessage("user", "Output:\nMakefile\nREADME.md"),
    ChatMessage("assistant", "There are two files, Makefile and README.md."),
)


def example(tools: Sequence[ToolSpec]) -> tuple[ChatMessage, ...]:
    """A finished exchange to begin the conversation with: small models follow an example rather than instructions."""
    return _EXAMPLE if any(spec.name == "bash" for spec in tools) else ()


def tool_uses(text: str, tools: Sequence[ToolSpec]) -> tuple[ToolUse, ...]:
    """The calls that a reply asks for, in order."""
    names = {spec.name for spec in tools}
    uses: list[ToolUse] = []
    for info, body in blocks(text):
        if info in SHELLS and "bash" in names:
            if body.strip():
                uses.append(ToolUse(f"block_{len(uses) + 1}", "bash", {"command": body}, body))
        elif info in names:
            uses.append(ToolUse(f"block_{len(uses) + 1}", info, parse_arguments(body), body))
    return tuple(uses[:MOST_BLOCKS])


def blocks(text: str) -> list[tuple[str, str]]:
    """Every fenced block: its info string and its content without the last line end."""
    found: list[tuple[str, str]] = []
    fence, info = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        opened = _OPEN.match(line)
        if not fence:
            if opened:
                fence, info, lines = opened[1], opened[2], []
        elif opened and not opened[2] and opened[1][0] == fence[0] and len(opened[1]) >= len(fence):
            found.append((info, "\n".join(lines)))
            fence = ""
        else:
            lines.append(line)
    if fence and lines:
        found.append((info, "\n".join(lines)))
    return found


def instructions(tools: Sequence[ToolSpec]) -> str:
    """How to ask for a tool in this form, short enough for a small model."""
    parts = []
    if any(spec.name == "bash" for spec in tools):
        parts.append(
            "To run a shell command, write it in a block like this, and stop; you will be shown its output:\n```bash\nls\n```"
        )
    for spec in tools:
        if spec.name != "bash":
            example = json.dumps(dict.fromkeys(_properties(spec), "..."))
            parts.append(f"{spec.name}: {spec.description}\n```{spec.name}\n{example}\n```")
    parts.append("When the task is done, say so in plain words, without any block.")
    return "\n\n".join(parts)


def _properties(spec: ToolSpec) -> Sequence[str]:
    properties = spec.parameters.get("properties")
    return list(properties) if isinstance(properties, dict) else []
