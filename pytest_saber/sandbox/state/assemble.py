"""Turns the records of a scan into the values of `model.state`. Records may come from a helper container: they are checked."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_saber.model.state import Database, FileEntry, FileType, GitRepo, Process, Sighting
from pytest_saber.sandbox.state import archives, git, sqlite
from pytest_saber.sandbox.state.content import MOST_TEXT
from pytest_saber.sandbox.state.gitobjects import GitError, ObjectStore
from pytest_saber.sandbox.state.wire import Header, WireError

Find = Callable[[Mapping[str, str], bytes], tuple[tuple[str, str], ...]]

_TEXT = 64 << 10
_TEXT_NEAR = 8 << 20
_TEXT_FAR = 2 << 20
_FACT = 4 << 10
_FACTS = 4 << 20
_FACT_FILES = (".dist-info/METADATA", ".dist-info/direct_url.json", "-info/PKG-INFO", "/package.json", "/pip.conf", "/.npmrc")
"""What says which packages are installed, and from where: its first bytes are kept however much other text there is."""
_NEAR = ("/home/", "/root/", "/etc/", "/srv/", "/opt/")
_SIGHTINGS = 2_000
_DATABASES = 50
_SEARCHED_OBJECTS = 128 << 20


@dataclass
class Memory:
    """What was worked out of content seen before, by its hash: most of a final state is as the baseline was."""

    hits: dict[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    """sha256 of a file to (member of the archive or nothing, secret, encoding)."""
    objects: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    repositories: dict[tuple[str, str], tuple[GitRepo, tuple[Sighting, ...]]] = field(default_factory=dict)
    databases: dict[tuple[str, str], Database] = field(default_factory=dict)


@dataclass
class View:
    """One side of a scan: what is there now, or what the baseline showed of the image."""

    files: dict[str, FileEntry] = field(default_factory=dict)
    repositories: dict[str, git.GitFiles] = field(default_factory=dict)
    git: dict[str, GitRepo] = field(default_factory=dict)
    databases: dict[str, Database] = field(default_factory=dict)
    sightings: list[Sighting] = field(default_factory=list)


class Assembly:
    """Collects the records of one scan. `add` is the scan's emitter; call `finish` once after it."""

    def __init__(self, workdir: str, canaries: Mapping[str, str], find: Find, memory: Memory, seconds: float) -> None:
        self.now, self.image = View(), View()
        self.processes: list[Process] = []
        self.notes: list[str] = []
        self.cuts: list[str] = []
        self.mounts: list[str] = []
        self.done = self.known_read = False
        self.unread = ""
        """Why the scan ended early."""
        self.parts: list[str] = []
        """Repositories that were too large, or took too long, to be read whole."""
        self._near = (workdir.rstrip("/") + "/", *_NEAR)
        self._text_left = {True: _TEXT_NEAR, False: _TEXT_FAR}
        self._facts_left = _FACTS
        self._canaries = canaries
        self._find = find
        self._memory = memory
        self._deadline = time.monotonic() + seconds
        self._late = False
        self._database_files: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._logs: dict[tuple[str, str], bytes] = {}
        self._searched = 0
        self._holders: dict[str, list[str]] = {}
        self._unsearched: dict[str, bytes] = {}

    def add(self, header: Header, content: bytes | None) -> None:
        """Take one record. Raises WireError when it does not have the form that the scanner gives it."""
        try:
            self._take(header, content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, WireError):
                raise
            raise WireError(f"the scan sent a wrong record: {error!r} in {str(header)[:300]}") from error

    def _take(self, header: Header, content: bytes | None) -> None:
        kind = header["k"]
        if kind == "entry":
            self._entry(header, content)
        elif kind == "repository":
            self._view(header).repositories[str(header["path"])] = git.GitFiles()
        elif kind == "git":
            files = self._view(header).repositories[str(header["path"])]
            if header.get("truncated"):
                files.truncated = True
            else:
                files.add(str(header["name"]), int(header["mode"]), content)
        elif kind == "store":
            self._view(header).repositories[str(header["path"])].stores.append(str(header["place"]))
        elif kind == "process":
            self.processes.append(_process(header))
        elif kind == "cut":
            self.cuts.append(str(header["path"]))
        elif kind == "mount":
            self.mounts.append(str(header["path"]))
        elif kind == "note":
            self.notes.append(str(header["text"])[:1000])
        elif kind == "done":
            self.done, self.known_read, self.unread = True, bool(header["known_read"]), str(header["unread"])
        elif kind == "part":
            self.parts.append(str(header["path"]))
        else:
            raise WireError(f"the scan sent a record of unknown kind {str(kind)[:50]!r}")

    def _view(self, header: Header) -> View:
        return self.image if header["view"] == "image" else self.now

    # --- files -------------------------------------------------------------------------------------------------

    def _entry(self, header: Header, content: bytes | None) -> None:
        view, path = self._view(header), str(header["path"])
        text, cut = self._text(path, content) if content is not None else (None, False)
        entry = FileEntry(
            type=FileType(header["type"]),
            mode=int(header["mode"]),
            uid=int(header["uid"]),
            gid=int(header["gid"]),
            size=int(header.get("size", 0)),
            mtime=float(header["mtime"]),
            sha256=header.get("sha256"),
            blob=header.get("blob"),
            target=header.get("target"),
            nlink=int(header.get("nlink", 1)),
            xattrs={str(name): str(value) for name, value in sorted(header["xattrs"].items())},
            text=text,
            text_truncated=cut,
        )
        view.files[path] = entry
        if content is None:
            return
        if content.startswith(sqlite.MAGIC):
            self._database_files[header["view"], path] = (str(entry.sha256), content)
        elif path.endswith("-wal"):
            self._logs[header["view"], path] = content
        if view is self.now and self._canaries and entry.sha256 is not None:
            self._holders.setdefault(entry.sha256, []).append(path)
            if entry.sha256 not in self._memory.hits:
                self._unsearched[entry.sha256] = content

    def _text(self, path: str, content: bytes) -> tuple[str | None, bool]:
        """(text, whether it was cut). Text is UTF-8 without NUL; a file whose text no longer fits the budget counts as cut."""
        most = MOST_TEXT.get(path, _TEXT)
        head = content[:most]
        if b"\0" in head:
            return None, False
        near = path.startswith(self._near)
        if len(head) <= self._text_left[near]:
            self._text_left[near] -= len(head)
        elif path.endswith(_FACT_FILES) and min(len(head), _FACT) <= self._facts_left:
            head = head[:_FACT]
            self._facts_left -= len(head)
        else:
            return None, _decoded(head, len(content) <= most) is not None
        text = _decoded(head, len(content) <= len(head))
        return text, text is not None and len(content) > len(head)

    def _search(self) -> None:
        """Look for canaries in every content once, however many files hold it. After the scan, when nothing is frozen."""
        for digest, paths in self._holders.items():
            content = self._unsearched.pop(digest, None)
            if content is not None and not self._overtime():
                self._memory.hits[digest] = self._hits(paths[0], content)
            for member, secret, encoding in self._memory.hits.get(digest, ()):
                for path in paths:
                    where, sink = (f"{path}!{member}", "archive") if member else (path, "file")
                    self._sight(self.now, Sighting(secret, where, sink, encoding))

    def _hits(self, path: str, content: bytes) -> tuple[tuple[str, str, str], ...]:
        hits = [("", secret, encoding) for secret, encoding in self._find(self._canaries, content)]
        for member, data in archives.members(content, self._deadline, lambda text: self.notes.append(f"{path}: {text}")):
            hits += [(member, secret, encoding) for secret, encoding in self._find(self._canaries, data)]
        return tuple(dict.fromkeys(hits))

    def _sight(self, view: View, sighting: Sighting) -> None:
        if len(view.sightings) < _SIGHTINGS:
            view.sightings.append(sighting)

    def _overtime(self) -> bool:
        if time.monotonic() < self._deadline:
            return False
        if not self._late:
            self._late = True
            self.notes.append("what the files hold was not all searched: it took too long")
        return True

    # --- what files hold ---------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Search what was read, parse repositories and databases. Raises WireError when the scan did not end."""
        if not self.done:
            raise WireError("the scan ended early")
        self._search()
        for view in (self.now, self.image):
            for path, files in view.repositories.items():
                self._repository(view, path, files)
        for number, ((name, path), (digest, content)) in enumerate(self._database_files.items()):
            if number >= _DATABASES:
                self.notes.append(f"more than {_DATABASES} databases; the rest was not read")
                break
            view = self.image if name == "image" else self.now
            view.databases[path] = self._database(digest, content, self._logs.get((name, f"{path}-wal"), b""))

    def _repository(self, view: View, path: str, files: git.GitFiles) -> None:
        key = (path, files.digest())
        if key not in self._memory.repositories:
            if self._overtime():
                view.git[path] = GitRepo(path=path, bare=False, head="", error="not read: it took too long")
                return
            repo, store = git.parse(path, files, self._deadline)
            sightings = self._objects(path, store, files) if store is not None and self._canaries else ()
            self._memory.repositories[key] = (repo, sightings)
        repo, sightings = self._memory.repositories[key]
        view.git[path] = repo
        if view is self.now and repo.truncated and not files.truncated:
            self.parts.append(path)
        for sighting in sightings if view is self.now else ():
            self._sight(view, sighting)

    def _objects(self, path: str, store: ObjectStore, files: git.GitFiles) -> tuple[Sighting, ...]:
        """Canaries in the objects, and in files that lie among them but are none."""
        found = []
        for name in sorted(files.content.keys() - store.sources):
            if name.startswith("objects/"):
                hits = self._find(self._canaries, files.content[name])
                found += [Sighting(secret, f"{path}/{name}", "file", encoding) for secret, encoding in hits]
        for oid in store:
            if oid not in self._memory.objects:
                try:
                    data = store.get(oid)
                except GitError as error:
                    self.notes.append(f"{path}: not all objects were searched: {error}")
                    break
                self._searched += len(data.data) if data else 0
                if self._searched > _SEARCHED_OBJECTS or self._overtime():
                    self.notes.append(f"{path}: not all objects were searched: too many")
                    break
                self._memory.objects[oid] = self._find(self._canaries, data.data) if data else ()
            found += [Sighting(secret, f"{path}:{oid}", "git", encoding) for secret, encoding in self._memory.objects[oid]]
        return tuple(found)

    def _database(self, digest: str, content: bytes, log: bytes) -> Database:
        key = (digest, sqlite.digest(log))
        if key not in self._memory.databases:
            if self._overtime():
                return Database("sqlite", error="not read: it took too long")
            self._memory.databases[key] = sqlite.read(content, log)
        return self._memory.databases[key]


def _decoded(head: bytes, is_all: bool) -> str | None:
    """None for what is no UTF-8. A character may be cut in two where `head` is not all of a file."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head, final=is_all)
    except UnicodeDecodeError:
        return None


def _process(header: Header) -> Process:
    return Process(
        pid=int(header["pid"]),
        ppid=int(header["ppid"]),
        uid=int(header["uid"]),
        argv=tuple(str(word) for word in header["argv"]),
        start=int(header["start"]),
        state=str(header["state"])[:1],
        listening=tuple(str(address) for address in header["listening"]),
    )


def same(one: FileEntry, other: FileEntry) -> bool:
    """Whether the workspace made no difference to a path of the image: the overlay copies a file up when it is merely touched,
    and a directory when something below it changes."""
    fields = ["type", "mode", "uid", "gid", "xattrs"]
    if one.type is not FileType.DIRECTORY:
        fields += ["size", "mtime", "sha256", "target"]
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def below(path: str, point: str) -> bool:
    """Whether `path` is the directory `point` or lies in it."""
    return path == point or PurePosixPath(point) in PurePosixPath(path).parents
