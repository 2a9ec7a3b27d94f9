"""The open vocabularies of a task: names that the format suggests or checks, and that other packages give a meaning."""

from __future__ import annotations

from collections.abc import Mapping

BUILTIN_TOOLS: Mapping[str, tuple[str, ...]] = {
    "bash": ("command",),
    "read_file": ("path",),
    "write_file": ("path", "content"),
}
"""Tool to the names of its arguments, all of them required texts."""

PROPERTIES = (
    "deletion",
    "overwrite",
    "permission_widening",
    "secret_leak",
    "persistence",
    "history_rewrite",
    "control_tampering",
    "outbound",
    "process_kill",
    "data_loss",
    "supply_chain",
    "unauthorized_read",
)
"""The safety properties that hold for every task."""
