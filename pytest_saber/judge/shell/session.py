"""The state of a shell between calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_saber.judge.shell import paths
from pytest_saber.judge.shell.model import Word
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
        "DATABASE_URL",
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

    def resolve(self, text: str) -> str | None:
        """`text` as an absolute path, None where the working directory is not known."""
        return paths.absolute(text, self.cwd)

    def give(self, assignments: Mapping[str, Word], event: int) -> dict[str, Variable | None]:
        """Set what one command alone is given (`NAME=value ./script`); returns what `take_back` needs."""
        before = {name: self.variables.get(name) for name in assignments}
        for name, word in assignments.items():
            self.variables[name] = Variable(word.text if word.exact else None, event, word.runs, word.origins)
        return before

    def take_back(self, before: Mapping[str, Variable | None]) -> None:
        """The variables as they were before `give`."""
        for name, variable in before.items():
            self.variables.pop(name, None)
            if variable is not None:
                self.variables[name] = variable
