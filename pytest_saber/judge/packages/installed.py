"""Installed distributions: Python's by their metadata in each environment, npm's by `node_modules`, dpkg's by its status."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_saber.judge import noise
from pytest_saber.model.state import FileEntry, FileType, State

DPKG = "/var/lib/dpkg/status"
_HEAD = 8_192
_JSON = 1 << 20
_PYTHON = re.compile(
    r"(?P<place>.{0,4000})/(?P<stem>[^/]{1,250})\.(?P<kind>dist-info/METADATA|egg-info/PKG-INFO|egg-info|egg-link)\Z"
)
_SITE = re.compile(r"/(?:site|dist)-packages\Z")
_STEM = re.compile(r"(?P<name>.+?)-(?P<version>\d[^-]*)(?:-py\d.*)?\Z")
_FIELD = {name: re.compile(rf"^{name}:[ \t]*(\S+)", re.MULTILINE) for name in ("Name", "Version")}
_NPM = re.compile(r"(?P<name>@[^/]{1,200}/[^/]{1,200}|[^/@.][^/]{0,200})(?P<file>/package\.json)?\Z")
_STANZA = {name: re.compile(rf"^{name}: (.+)$", re.MULTILINE) for name in ("Package", "Version", "Status")}


@dataclass(frozen=True, slots=True)
class Installed:
    """`place` is the environment: the folder that holds it, or dpkg's status file. `version` is empty where it is not told."""

    place: str
    name: str
    version: str
    path: str
    """Of what tells it."""
    source: str = ""
    """Where pip says that it came from, for what came from no index (`direct_url.json`)."""


@dataclass(frozen=True, slots=True)
class PackageChange:
    """A distribution that was installed, removed, or replaced by another version."""

    before: Installed | None
    after: Installed | None

    @property
    def package(self) -> Installed:
        """As it is now, or was."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - one of both is given
        return found

    @property
    def words(self) -> str:
        """What happened to it, to follow its name."""
        if self.before is None:
            return f"{self.package.version} was installed".lstrip()
        if self.after is None:
            return f"{self.package.version} was removed".lstrip()
        return f"was changed from {self.before.version or 'an unknown version'} to {self.after.version or 'an unknown version'}"


def installed(state: State) -> dict[tuple[str, str], Installed]:
    """By (place, name). Names of Python's are normalised as indexes do; of `node_modules` only what lies on top counts."""
    found: dict[tuple[str, str], Installed] = {}
    for path, entry in state.files.items():
        for package in _at(state, path, entry):
            found.setdefault((package.place, package.name), package)
    return found


def package_changes(before: State, after: State) -> tuple[PackageChange, ...]:
    """Sorted by place and name."""
    old, new = installed(before), installed(after)
    return tuple(
        PackageChange(old.get(key), new.get(key))
        for key in sorted({*old, *new})
        if key not in old or key not in new or old[key].version != new[key].version
    )


def normalised(name: str) -> str:
    """A Python distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _at(state: State, path: str, entry: FileEntry) -> Iterator[Installed]:
    if path == DPKG:
        yield from _dpkg(entry)
    elif "/node_modules/" in path:
        yield from _npm(path, entry)
    elif path.endswith(("-info/METADATA", "-info/PKG-INFO", ".egg-info", ".egg-link")) and entry.type is FileType.FILE:
        yield from _python(state, path, entry)


def _python(state: State, path: str, entry: FileEntry) -> Iterator[Installed]:
    match = _PYTHON.match(path)
    if match is None:
        return
    place, stem, kind = match["place"] or "/", match["stem"], match["kind"]
    if _SITE.search(place) is None and (not kind.startswith("dist-info") or noise.is_scratch(path) or "/build/" in path):
        # What builds and checkouts hold is not installed; what `pip install --target` makes is.
        return
    said = _STEM.match(stem)
    head = (entry.text or "")[:_HEAD].partition("\n\n")[0] if kind != "egg-link" else ""
    name, version = (
        field[1] if (field := _FIELD[key].search(head)) else (said[key.lower()] if said else fallback)
        for key, fallback in (("Name", stem), ("Version", ""))
    )
    address = state.files.get(posixpath.join(posixpath.dirname(path), "direct_url.json")) if "/METADATA" in path else None
    yield Installed(place, normalised(name), version, path, _source(address))


def _source(entry: FileEntry | None) -> str:
    """The address in a `direct_url.json` (PEP 610)."""
    url = _json(entry).get("url") if entry is not None else None
    return url if isinstance(url, str) else ""


def _npm(path: str, entry: FileEntry) -> Iterator[Installed]:
    place, _, rest = path.partition("/node_modules/")
    match = _NPM.match(rest)
    if match is None or (match["file"] is None) != (entry.type is FileType.SYMLINK):
        return
    version = "" if match["file"] is None else _json(entry).get("version")
    yield Installed(f"{place}/node_modules", match["name"], version if isinstance(version, str) else "", path)


def _json(entry: FileEntry) -> dict[str, object]:
    text = entry.text or ""
    if len(text) > _JSON:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _dpkg(entry: FileEntry) -> Iterator[Installed]:
    """Nothing where the file was not read whole: packages at its end would look removed."""
    if entry.text is None or entry.text_truncated:
        return
    for stanza in entry.text.split("\n\n"):
        fields = {name: match[1] for name, pattern in _STANZA.items() if (match := pattern.search(stanza))}
        if len(fields) == len(_STANZA) and fields["Status"].endswith(" installed"):
            yield Installed(DPKG, fields["Package"], fields["Version"], DPKG)
