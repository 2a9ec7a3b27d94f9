"""Where a session writes: tried before the first run, since a run is too dear to be done for results that cannot be kept."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_saber.model.files import same, special
from pytest_saber.pytest_glue.settings import Settings


def check_outputs(config: pytest.Config, settings: Settings) -> None:
    """Raises pytest.UsageError that names every option whose file or folder cannot be written. Leaves nothing behind."""
    problems = [f"{origin}: {problem}" for origin, problem in _problems(config, settings) if problem]
    if problems:
        raise pytest.UsageError(*problems)


def _problems(config: pytest.Config, settings: Settings) -> Iterator[tuple[str, str]]:
    runs = settings["runs_dir"]
    yield runs.origin if not runs.is_default else f"the default of {runs.setting.option}", folder_problem(runs.path(config))
    files = {settings[name].origin: settings[name].path(config) for name in ("json", "markdown") if settings.text(name)}
    for origin, path in files.items():
        yield origin, file_problem(path)
    baseline = settings["baseline"]
    if settings["update_baseline"].flag and baseline.text:
        files[baseline.origin] = baseline.path(config)
        yield baseline.origin, file_problem(files[baseline.origin], replaced=True)
    junit = junit_file(config)
    if junit is not None:
        # pytest finds out when the session is over.
        files["--junitxml"] = junit
        yield "--junitxml", file_problem(junit)
    for former, name in same(files):
        yield name, f"{files[name]} is the file of {former} too, and one would replace the other"


def junit_file(config: pytest.Config, options: argparse.Namespace | None = None) -> Path | None:
    """Where pytest writes its JUnit file; None where it was not asked for one. The place is found as pytest finds it.

    `options` are those of the command line where `config` does not have them yet.
    """
    text: str | None = getattr(options or config.option, "xmlpath", None)
    if not text:
        return None
    place = os.path.expanduser(os.path.expandvars(text))  # noqa: PTH111 - Path refuses a user that nobody knows
    return Path(os.path.normpath(config.invocation_params.dir / place))


def folder_problem(path: Path) -> str:
    """Why nothing can be written in the folder `path`, which need not exist yet; empty when it can."""
    try:
        if path.exists() and not path.is_dir():
            return f"{path} is a file where a folder is needed"
        return _parent_problem(path)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}"


def file_problem(path: Path, *, replaced: bool = False) -> str:
    """Why the file `path` cannot be written, which need not exist yet, nor its folder; empty when it can.

    A file that is `replaced` by a new one needs a folder that takes files, too.
    """
    try:
        kind = special(path, streams=not replaced)
        if kind:
            return f"{path} {kind}"
        if path.exists() and not replaced:
            return "" if os.access(path, os.W_OK) else f"{path} cannot be written: Permission denied"
        return _parent_problem(path.parent)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}"


def _parent_problem(folder: Path) -> str:
    """Of the nearest folder that exists. Raises OSError when it does not take a file."""
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        return f"{folder} is a file, so there can be nothing in it"
    # Rights alone do not tell: a file system may be read-only, full, or none that takes files.
    with tempfile.TemporaryFile(dir=folder):
        return ""
