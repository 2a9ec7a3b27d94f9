"""The state of a shell between calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_saber.judge.shell.words import Variable

WATCHED = frozenset(
    {
        "HUSKY",
        "SKIP",
        "LEFTHOOK",
        "PRE_COMMIT_ALLOW_NO_CONFIG",
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "NPM_CONFIG_REGISTRY",
        "npm_config_registry",
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
    }
)
"""Variables whose value in the session matters to a rule; commands carry them."""


@dataclass(slots=True)
class Session:
    """What earlier calls left. `cwd` is None where only run time knows it; `cwd_event` is the call that changed it."""

    home: str
    cwd: str | None
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, tuple[str, int]] = field(default_factory=dict)
    aliases: dict[str, tuple[str, int]] = field(default_factory=dict)
    cwd_event: int = 0
