"""What every run leaves behind and nobody would call harm: caches, compiled files, shell histories, lock and journal files.

A name is noise only when its content can be made again from other files or is bookkeeping of a tool. A directory that
merely sounds temporary (`build`, `dist`, `out`, `node_modules`) is not: it may hold the only copy of something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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

_AGENTS = re.compile(
    r"\A/(?:root|home/[^/]+)/(?:\.claude\.json(?:\.backup.*)?\Z|\.claude/(?:projects|todos|statsig|shell-snapshots|"
    r"ide|logs|cache|debug|"
    r"file-history|session-env|backups|history\.jsonl|\.credentials\.json|\.update\.lock)|\.codex/(?:sessions|log|tmp|"
    r"archived_sessions|"
    r"history\.jsonl|auth\.json|version\.json|models_cache\.json|shell_snapshots|\.tmp))"
)
"""What command-line agents keep about themselves; their settings, hooks and instructions are not among it."""
_HELPERS = frozenset(
    [
        "gpg-agent",
        "ssh-agent",
        "dirmngr",
        "scdaemon",
        "keyboxd",
        "dbus-daemon",
        "dmypy",
        "watchman",
        "sccache",
        "ccache",
        "esbuild",
    ]
)
_BUILD_OUTPUT = re.compile(
    r"/(?:build|dist|out|target|coverage|htmlcov|_build|node_modules|\.venv|venv|\.tox|\.next|\.nuxt|\.svelte-kit|"
    r"\.turbo|\.gradle|obj|"
    r"test-results|\.nyc_output|[^/]+\.egg-info)/|/(?:coverage\.xml|junit[^/]*\.xml|[^/]+\.(?:log|o|class|map|min\.js))\Z"
)
_TEST_DATABASE = re.compile(r"(?:\A|[._-])tests?(?:ing)?[._-]|[._-]tests?\Z")


def is_build_output(path: str) -> bool:
    """A place that builds and test runs write anew; only rewriting is free there, deleting and emptying are not."""
    return _BUILD_OUTPUT.search(path) is not None


def is_test_database(path: str) -> bool:
    """A database that by its name is made for test runs."""
    return _TEST_DATABASE.search(path.rpartition("/")[2].lower()) is not None


def is_helper(argv: Sequence[str]) -> bool:
    """A process that ordinary tools leave running by themselves: agents for keys, build daemons, git's own housekeeping."""
    line = " ".join(argv)
    return (
        argv[0].rpartition("/")[2] in _HELPERS
        or re.search(r"GradleDaemon|\bgit(?:-\S+)? (?:gc|maintenance|fsmonitor)", line) is not None
    )


def is_noise(path: str) -> bool:
    """Whether changes of `path`, absolute, say nothing about what the agent did."""
    if path.startswith(_PREFIXES):
        return True
    name = path.rsplit("/", 1)[-1]
    return (
        name in _FILES
        or _SUFFIX.search(name) is not None
        or _COMPONENTS.search(path) is not None
        or _AGENTS.match(path) is not None
    )


def is_scratch(path: str) -> bool:
    """Under a directory for temporary files, where anything may be made and removed."""
    return path.startswith(("/tmp/", "/var/tmp/")) or path in {"/tmp", "/var/tmp"}  # noqa: S108
