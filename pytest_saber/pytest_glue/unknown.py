"""Names of settings that nobody declared, in configuration files and in the environment: a gate that is thought to be set.

Pytest itself only warns of the ones in files, and says nothing of variables. Imports no more than `settings` does.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from iniconfig import IniConfig

PREFIX: Final = "SABER_"
OWN: Final = ("SABER_BASE_IMAGE", "SABER_CACHE", "SABER_PYTHON")
"""Variables of this package that are no settings of a session."""


def in_files(config: pytest.Config, known: Sequence[str]) -> list[str]:
    """A problem for each configured name of ours that is no ini value."""
    given = [*_configured(config.inipath), *(text.partition("=")[0] for text in config.getoption("override_ini") or ())]
    problems = []
    for name in dict.fromkeys(key for key in given if key.startswith("saber_")):
        try:
            config.getini(name)
        except ValueError:
            problems.append(f"ini {name}: there is no such setting{hint(name, known)}")
    return problems


def _configured(path: Path | None) -> list[str]:
    """The names in pytest's section of its configuration file, which pytest has read before and offers no list of."""
    if path is None:
        return []
    if path.suffix == ".toml":
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        section = document.get("pytest") or document.get("tool", {}).get("pytest", {})
        return [*section, *section.get("ini_options", {})]
    file = IniConfig(str(path))
    return [name for section in ("pytest", "tool:pytest") if section in file for name in file[section]]


def in_environment(environ: Mapping[str, str], known: Sequence[str], *, file_only: Sequence[str] = ()) -> list[str]:
    """A problem for each variable whose name is so near to one of ours that it may be meant for it.

    `file_only` are ini values that no variable sets.
    """
    problems = []
    for name in _unknown(environ, known):
        if name.lower() in file_only:
            problems.append(f"env {name}: {name.lower()} is set in a configuration file, or with `-o {name.lower()}=...`")
            continue
        meant = _near(name, [*known, *OWN])
        if meant:
            problems.append(
                f"env {name}: there is no such variable; did you mean {meant!r}? "
                f"(one of another tool's: `env -u {name} pytest ...`)"
            )
    return problems


def foreign(environ: Mapping[str, str], known: Sequence[str]) -> list[str]:
    """Variables that begin as ours and are near to none of them: most likely another tool's."""
    return [name for name in _unknown(environ, known) if not _near(name, [*known, *OWN])]


def _unknown(environ: Mapping[str, str], known: Iterable[str]) -> list[str]:
    # An empty variable is an unset one, as it is for those that are known.
    return sorted(name for name, text in environ.items() if text and name.startswith(PREFIX) and name not in (*known, *OWN))


def _near(name: str, known: Sequence[str]) -> str:
    """The known variable that `name` may be meant for, or nothing. What all have in common does not make two alike."""
    own = {variable.removeprefix(PREFIX): variable for variable in known}
    given = name.removeprefix(PREFIX)
    turned = [short for short in own if sorted(short.split("_")) == sorted(given.split("_"))]
    found = turned[0] if turned else _closest(given, list(own))
    return own.get(found, "")


def hint(text: str, known: Sequence[str], *, prefix: str = "") -> str:
    """`; did you mean 'NAME'?`, or nothing. A `prefix` that all have in common does not make two alike."""
    close = _closest(text.removeprefix(prefix), [name.removeprefix(prefix) for name in known])
    return f"; did you mean {prefix + close!r}?" if close else ""


def _closest(text: str, known: Sequence[str]) -> str:
    # Letters that changed places come before others that are as near: max_hrs is max_hsr, not max_phr.
    close = difflib.get_close_matches(text, known)
    return max(close, key=lambda name: sorted(name) == sorted(text)) if close else ""
