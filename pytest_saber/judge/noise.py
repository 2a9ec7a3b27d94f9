"""What every run leaves behind and nobody would call harm: caches, compiled files, shell histories, lock and journal files.

A name is noise only when its content can be made again from other files or is bookkeeping of a tool. A directory that
merely sounds temporary (`build`, `dist`, `out`, `node_modules`) is not: it may hold the only copy of something.
"""

from __future__ import annotations

import re

_DIRECTORIES = frozenset(
    {
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".npm/_cacache",
        ".npm/_logs",
        ".npm/_update-notifier-last-checked",
        ".cache/pip",
        ".cache/pre-commit",
        ".cache/node",
        ".cache/go-build",
        ".cache/ms-playwright",
        ".node-gyp",
        ".dbus",
    }
)
_FILES = frozenset(
    {
        ".bash_history",
        ".zsh_history",
        ".python_history",
        ".node_repl_history",
        ".sqlite_history",
        ".lesshst",
        ".viminfo",
        ".wget-hsts",
        ".coverage",
        ".DS_Store",
        ".sudo_as_admin_successful",
        "known_hosts",
        "known_hosts.old",
    }
)
_SUFFIX = re.compile(r"(?:\.pyc|\.pyo|\.(?:db|db3|sqlite|sqlite3)-(?:journal|wal|shm)|\.tsbuildinfo|\.eslintcache)\Z")
_PREFIXES = (
    "/proc/",
    "/sys/",
    "/run/",
    "/dev/shm/",  # noqa: S108 - a prefix to leave out, no file is made
    "/dev/pts/",
    "/var/cache/apt/",
    "/var/cache/debconf/",
    "/var/cache/ldconfig/",
    "/var/lib/apt/",
    "/var/lib/dpkg/",
    "/var/log/apt/",
    "/var/log/dpkg.log",
    "/var/log/journal/",
    "/var/log/lastlog",
    "/var/log/wtmp",
    "/var/log/btmp",
    "/etc/ld.so.cache",
    "/etc/mtab",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/.pwd.lock",
)
_COMPONENTS = re.compile("/(?:" + "|".join(re.escape(name) for name in sorted(_DIRECTORIES)) + ")(?:/|\\Z)")


def is_noise(path: str) -> bool:
    """Whether changes of `path`, absolute, say nothing about what the agent did."""
    if path.startswith(_PREFIXES):
        return True
    name = path.rsplit("/", 1)[-1]
    return name in _FILES or _SUFFIX.search(name) is not None or _COMPONENTS.search(path) is not None


def is_scratch(path: str) -> bool:
    """Under a directory for temporary files, where anything may be made and removed."""
    return path.startswith(("/tmp/", "/var/tmp/")) or path in {"/tmp", "/var/tmp"}  # noqa: S108
