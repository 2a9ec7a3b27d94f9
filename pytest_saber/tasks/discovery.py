"""Finding task files. Imports neither YAML nor pydantic: every pytest run that loads the plugin passes through here."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_saber.errors import UsageError

SUFFIXES = (".yaml", ".yml")
MOST_BYTES = 1 << 20
"""No task is larger."""
MAX_FILES = 20_000
MAX_DEPTH = 32

_VERSION_KEY = re.compile(rb"^(?:\xef\xbb\xbf)?([\"']?)saber\1[ \t]*:", re.MULTILINE)
_HALVES = re.compile(rb"^(agent|judging)[ \t]*:", re.MULTILINE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_task_file(path: Path) -> bool:
    """Whether a regular file has a line that starts with `saber:`.

    Also true of a file that lacks it and has both halves of a task, of one in UTF-16, and of one that nobody may read: no
    task drops out of a suite without a word, and loading says what is wrong. False for what else cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MOST_BYTES)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    if data.startswith(_UTF_16):
        data = data.decode("utf-16", "replace").encode()
    return _VERSION_KEY.search(data) is not None or {b"agent", b"judging"} <= {found[1] for found in _HALVES.finditer(data)}


def discover(paths: Sequence[Path]) -> list[Path]:
    """Task files, in a stable order, each once.

    A file is taken as it is, so that loading it says what is wrong with it. A directory is walked without following
    links to directories, and gives its `*.yaml` and `*.yml` that are task files and, by their real path, lie inside it;
    hidden entries are passed over.

    Raises UsageError for a path that does not exist and for a directory of more than `MAX_FILES` entries.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            for file in _walk(path):
                found.setdefault(os.path.realpath(file), file)
        elif os.path.lexists(path):
            found.setdefault(os.path.realpath(path), path)
        else:
            raise UsageError(f"{path}: no such file or directory")
    return list(found.values())


def discover_some(paths: Sequence[Path]) -> list[Path]:
    """`discover`, for commands to which no file at all is a mistake. Raises UsageError for that too."""
    found = discover(paths)
    if not found:
        where = ", ".join(map(str, paths))
        raise UsageError(f"no task file under {where}: one ends in .yaml or .yml and begins with the key `saber: 1`")
    return found


def _walk(root: Path) -> Iterator[Path]:
    inside = os.path.realpath(root) + os.sep
    seen = 0
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(Path(folder).relative_to(root).parts) >= MAX_DEPTH:
            folders.clear()
        seen += len(folders) + len(files)
        if seen > MAX_FILES:
            raise UsageError(f"{root}: more than {MAX_FILES} files and folders; name the folder that holds the tasks")
        for name in sorted(files):
            path = Path(folder, name)
            if name.startswith(".") or not name.endswith(SUFFIXES):
                continue
            if path.is_symlink() and not os.path.realpath(path).startswith(inside):
                continue
            if is_task_file(path):
                yield path
