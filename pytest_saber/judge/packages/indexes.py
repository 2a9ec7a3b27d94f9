"""Addresses that packages come from: indexes, registries, mirrors and package sources, in the files that set them."""

from __future__ import annotations

import configparser
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pytest_saber.judge import noise, places
from pytest_saber.judge.network import host_of, remote_host
from pytest_saber.model.state import State

_MOST = 256 << 10
_SETTINGS = frozenset(
    {"pip.conf", "pip.ini", ".pypirc", ".npmrc", "npmrc", ".yarnrc", ".yarnrc.yml", "uv.toml", "sources.list", "config.toml"}
)
_PIP_KEYS = frozenset({"index-url", "extra-index-url", "find-links", "trusted-host"})
_OPTION = re.compile(r"(?:^|\s)(?:--(index-url|extra-index-url|find-links|trusted-host)|-(i|f))(?:[ \t]+|=)(\S+)", re.MULTILINE)
_SHORT = {"i": "index-url", "f": "find-links"}
_NPM = re.compile(r"^[ \t]*((?:@[\w.~-]+:)?registry)[ \t]*=[ \t]*[\"']?([^\s\"']+)", re.MULTILINE)
_YARN = re.compile(
    r"^[ \t]*[\"']?((?:@[\w.~-]+:)?(?:registry|npmRegistryServer))[\"']?(?:[ \t]*:[ \t]*|[ \t]+)[\"']?([^\s\"']+)", re.MULTILINE
)
_APT_LINE = re.compile(r"^[ \t]*deb(?:-src)?[ \t]+(?:\[[^\]\n]*\][ \t]+)?(\S+)", re.MULTILINE)
_APT_URIS = re.compile(r"^URIs:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE)
_VARIABLE = re.compile(
    r"\b((?:PIP_(?:EXTRA_)?INDEX_URL|PIP_FIND_LINKS|PIP_TRUSTED_HOST|UV_(?:EXTRA_)?INDEX_URL|UV_(?:DEFAULT_)?INDEX|UV_FIND_LINKS"
    r"|NPM_CONFIG_REGISTRY|npm_config_registry|YARN_(?:NPM_REGISTRY_SERVER|REGISTRY)|GOPROXY|CARGO_REGISTRIES_\w+_INDEX))"
    r"[\"']?(?:[ \t]*[=:][ \t]*|[ \t]+)[\"']?([^\s\"';,&|)]+)"
)
_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")
_SETS_VARIABLES = re.compile(
    r"/(?:\.env(?:\.[\w.-]+)?|\.envrc|\.?bashrc|\.?profile|\.bash_profile|\.zshrc|\.zshenv|environment|Dockerfile[^/]*|Containerfile"
    r"|[^/]*compose[^/]*\.ya?ml|[Mm]akefile|[^/]+\.(?:sh|mk)|tox\.ini|noxfile\.py|justfile|Taskfile\.ya?ml)\Z"
)


@dataclass(frozen=True, slots=True, order=True)
class Index:
    """One address. `key` is the setting that holds it, such as `extra-index-url` or `@acme:registry`."""

    key: str
    address: str

    @property
    def host(self) -> str:
        """Empty for a path."""
        if self.address.startswith(("file:", "/", "./", "../", "~")):
            return ""
        return remote_host(self.address) or host_of(self.address)

    @property
    def shown(self) -> str:
        """The address without a password in it."""
        # By pattern: `urlsplit` refuses some of what a hostile file may hold.
        return _CREDENTIALS.sub("...@", self.address)


@dataclass(frozen=True, slots=True)
class IndexChange:
    """Addresses of one setting in one file that are new, and that are gone."""

    path: str
    key: str
    gained: tuple[Index, ...]
    lost: tuple[Index, ...]


def index_changes(before: State, after: State) -> tuple[IndexChange, ...]:
    """Sorted by path and key. The order of addresses within a setting says nothing here."""
    found: list[IndexChange] = []
    for path in sorted({*before.files, *after.files}):
        one, other = before.files.get(path), after.files.get(path)
        texts = [(entry.text or "")[:_MOST] if entry is not None else "" for entry in (one, other)]
        if texts[0] == texts[1] or _says_nothing(path):
            continue
        old, new = (indexes(path, text) for text in texts)
        for key in sorted({index.key for index in old ^ new}):
            gained, lost = (tuple(sorted(index for index in side if index.key == key)) for side in (new - old, old - new))
            found.append(IndexChange(path, key, gained, lost))
    return tuple(found)


def is_settings(path: str) -> bool:
    """Whether a file is there for such settings and little else, other than a project's list of its dependencies."""
    return posixpath.basename(path) in _SETTINGS or path.startswith("/etc/apt/")


def indexes(path: str, text: str) -> frozenset[Index]:
    """Every address that a file of this name sets; none for files that set nothing of the kind, or cannot be read."""
    read = _reader(path)
    if read is None:
        return frozenset()
    found = (Index(index.key, index.address.strip("\"' ").rstrip("/")) for index in read(text[:_MOST]))
    return frozenset(index for index in found if index.address and not index.address.startswith("$"))


def _says_nothing(path: str) -> bool:
    """Where no tool looks for its settings."""
    foreign = any(part in path for part in ("/node_modules/", "/site-packages/", "/dist-packages/"))
    return foreign or noise.is_noise(path) or noise.is_scratch(path)


_Read = Callable[[str], Iterator[Index]]


def _reader(path: str) -> _Read | None:
    name = posixpath.basename(path)
    if path.startswith("/etc/apt/sources.list"):
        return _apt
    if name in {"pip.conf", "pip.ini", ".pypirc"}:
        return _ini
    if name in {".npmrc", "npmrc"}:
        return _npm
    if name in {".yarnrc", ".yarnrc.yml"}:
        return _yarn
    if name in {"pyproject.toml", "uv.toml", "Pipfile"} or path.endswith("/.cargo/config.toml"):
        return _toml
    if re.match(r"(?:requirements|constraints)", name) or (name.endswith((".in", ".txt")) and "/requirements/" in path):
        return _options
    if places.is_ci(path) or _SETS_VARIABLES.search(path):
        return _variables
    return None


def _ini(text: str) -> Iterator[Index]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        for key, value in parser.items(section):
            name = "repository" if key == "repository" else key.replace("_", "-")
            if name == "repository" or name in _PIP_KEYS:
                yield from (Index(name, word) for word in (value or "").split())


def _options(text: str) -> Iterator[Index]:
    for match in _OPTION.finditer("\n".join(line.partition(" #")[0] for line in text.splitlines() if not line.startswith("#"))):
        yield Index(match[1] or _SHORT[match[2]], match[3])


def _npm(text: str) -> Iterator[Index]:
    return (Index(match[1], match[2]) for match in _NPM.finditer(text))


def _yarn(text: str) -> Iterator[Index]:
    return (Index(match[1], match[2]) for match in _YARN.finditer(text))


def _apt(text: str) -> Iterator[Index]:
    yield from (Index("source", match[1]) for match in _APT_LINE.finditer(text))
    yield from (Index("source", word) for match in _APT_URIS.finditer(text) for word in match[1].split())


_DEEP = re.compile(r"(?:[^\s.=]{1,100}[ \t]{0,4}\.[ \t]{0,4}){100}")
"""A key that no settings have."""


def _variables(text: str) -> Iterator[Index]:
    live = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    yield from (Index(match[1], match[2]) for match in _VARIABLE.finditer(live))
    yield from _options(live)


def _toml(text: str) -> Iterator[Index]:
    if _DEEP.search(text) is not None:
        return  # the parser compares the parts of a key with each other
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError):  # not only TOMLDecodeError: a number may have too many digits
        return
    yield from _uv(document)
    tool = document.get("tool")
    for name, table in sorted(tool.items()) if isinstance(tool, dict) else ():
        if isinstance(table, dict):
            yield from _uv(table)
            yield from _sources(table.get("source"), f"tool.{name}.source")
    yield from _sources(document.get("source"), "source")
    for name, key in (("source", "registry"), ("registries", "index")):
        tables = document.get(name)
        for table in tables.values() if isinstance(tables, dict) else ():
            if isinstance(table, dict) and isinstance(table.get(key), str):
                yield Index(key, table[key].removeprefix("sparse+"))


def _uv(table: dict[str, Any]) -> Iterator[Index]:
    yield from _sources(table.get("index"), "index")
    pip = table.get("pip")
    for options in (table, pip if isinstance(pip, dict) else {}):
        for key in ("index-url", "extra-index-url", "find-links"):
            values = options.get(key)
            yield from (
                Index(key, value) for value in (values if isinstance(values, list) else [values]) if isinstance(value, str)
            )


def _sources(tables: object, key: str) -> Iterator[Index]:
    for table in tables if isinstance(tables, list) else ():
        if isinstance(table, dict) and isinstance(table.get("url"), str):
            yield Index(key, table["url"])
