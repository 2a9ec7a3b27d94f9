"""A git repository from the bytes of its git directory. Git itself is never run on it: its configuration can name programs."""

from __future__ import annotations

import hashlib
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pytest_saber.model.state import Commit, GitRepo
from pytest_saber.sandbox.state.gitobjects import GitError, ObjectStore, is_id

_COMMITS = 5_000
_TREES = 20_000
_NAME = 4_096
_CONFIG = 256 << 10
_OBJECTS = 60_000
_REFS = 20_000
_REFLOG = 2_000
_CHECKOUTS = 100
_MESSAGE = 4_096
_PATHS = 50_000
_GITLINK = 0o160000
_SECTION = re.compile(r'\[\s*+([A-Za-z0-9.-]++)\s*+(?:"((?:[^"\\]|\\.)*+)"\s*+)?\]')
_CHECKOUT = re.compile(rb"\tcheckout: moving from \S+ to (\S{1,250})\Z")
_MODE = re.compile(rb"[0-7]{1,7}")
_TIME = re.compile(r"-?[0-9]{1,15}")
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(=)?")


@dataclass
class GitFiles:
    """The files of a git directory, by path within it."""

    content: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    truncated: bool = False
    stores: list[str] = field(default_factory=list)
    """As `GitRepo.stores`."""

    def add(self, name: str, mode: int, content: bytes | None) -> None:
        """Take one file; `content` is None where it was not read."""
        self.modes[name] = mode
        if content is not None:
            self.content[name] = content

    def digest(self) -> str:
        """Equal for equal content: an unchanged repository need not be parsed again."""
        total = hashlib.sha256()
        for name in sorted(self.modes):
            content = self.content.get(name, b"")
            total.update(f"{name!r} {self.modes[name]} {len(content)}\0".encode())
            total.update(content)
        total.update(f"{self.truncated} {self.stores!r}".encode())
        return total.hexdigest()


def parse(path: str, files: GitFiles, deadline: float) -> tuple[GitRepo, ObjectStore | None]:
    """The repository at `path` in the workspace, and its objects where they can be read.

    Never raises for what the files say: a repository that cannot be parsed has `error` set.
    """
    config = parse_config(_text(files.content.get("config", b"")))
    bare = config.get("core.bare", (str(not path.endswith("/.git")),))[-1].lower() in {"true", "yes", "on", "1"}
    repo = GitRepo(
        path=path,
        bare=bare,
        head=_head(files),
        config=config,
        hooks=_hooks(files),
        stores=tuple(files.stores),
        truncated=files.truncated,
    )
    if config.get("extensions.objectformat", ("sha1",))[-1].lower() != "sha1":
        return replace(repo, error="its objects are named by sha256, which is not supported"), None
    if config.get("extensions.refstorage", ("files",))[-1].lower() != "files":
        return replace(repo, error="its refs are stored as a reftable, which is not supported"), None
    try:
        store = ObjectStore(files.content, deadline)
        return _Parser(files, store).repository(repo), store
    except (GitError, ValueError, IndexError, struct.error, MemoryError) as error:
        return replace(repo, error=f"not parsed: {error}"[:300]), None


class _Parser:
    def __init__(self, files: GitFiles, store: ObjectStore) -> None:
        self._files = files
        self._store = store
        self._truncated = files.truncated
        self._trees: set[str] = set()

    def repository(self, repo: GitRepo) -> GitRepo:
        raw = _refs(self._files)
        refs = {name: oid for name in raw if (oid := self._peel(_resolve(raw, name))) is not None}
        reflog = _reflog(self._files)
        index = parse_index(self._files.content.get("index", b""))
        commits = self._commits()
        head = self._peel(_resolve({**raw, "HEAD": repo.head}, "HEAD"))
        stashes = tuple(reversed(reflog.get("refs/stash", ()))) or tuple(filter(None, (refs.get("refs/stash"),)))
        worktrees = [
            parse_index(content)
            for name, content in self._files.content.items()
            if name.startswith("worktrees/") and name.endswith("/index")
        ]
        detached = [_text(content).strip() for name, content in self._files.content.items() if name.endswith("/HEAD")]
        tips = [*refs.values(), *filter(None, (head,)), *detached, *(oid for oids in reflog.values() for oid in oids)]
        blobs = self._reachable(tips, commits)
        blobs.update(*(tree.values() for tree in (index, *worktrees)))
        return replace(
            repo,
            refs=refs,
            commits=commits,
            stashes=stashes,
            reflog=reflog,
            checkouts=_checkouts(self._files.content.get("logs/HEAD", b"")),
            index=index,
            head_tree=self._files_of(head, commits),
            # Of a repository that was read in part, what is not there may merely not have been read.
            blobs=frozenset(blob for blob in blobs if self._truncated or blob in self._store),
            truncated=self._truncated,
        )

    def _peel(self, oid: str | None) -> str | None:
        """The commit (or other object) behind annotated tags."""
        for _ in range(16):
            if oid is None:
                return None
            found = self._store.get(oid)
            if found is None or found.kind != "tag":
                return oid
            oid = _header(found.data).get("object", [None])[0]
        return None

    def _commits(self) -> dict[str, Commit]:
        commits: dict[str, Commit] = {}
        for number, oid in enumerate(self._store):
            if number >= _OBJECTS or len(commits) >= _COMMITS:
                self._truncated = True
                break
            found = self._store.get(oid)
            if found is not None and found.kind == "commit":
                commits[oid] = parse_commit(found.data)
        return dict(sorted(commits.items()))

    def _reachable(self, tips: Iterable[str], commits: Mapping[str, Commit]) -> set[str]:
        blobs: set[str] = set()
        pending, seen = list(tips), set[str]()
        while pending:
            oid = pending.pop()
            if oid in seen:
                continue
            seen.add(oid)
            commit = commits.get(oid)
            if commit is not None:
                pending += commit.parents
                blobs.update(self._tree(commit.tree))
            elif (found := self._store.get(oid)) is not None and found.kind == "blob":
                blobs.add(oid)
        return blobs

    def _tree(self, tree: str) -> Iterator[str]:
        """Blobs of a tree that was not walked before: subtrees seen once add nothing to what is reachable."""
        pending = [tree]
        while pending:
            oid = pending.pop()
            if oid in self._trees:
                continue
            self._trees.add(oid)
            for mode, _, child in self._entries(oid):
                if stat.S_ISDIR(mode):
                    pending.append(child)
                elif mode != _GITLINK:
                    yield child

    def _files_of(self, head: str | None, commits: Mapping[str, Commit]) -> dict[str, str]:
        if head is None or head not in commits:
            return {}
        files: dict[str, str] = {}
        pending = [(commits[head].tree, "")]
        for _ in range(_TREES):
            if not pending:
                break
            oid, prefix = pending.pop()
            for mode, name, child in self._entries(oid):
                if len(files) >= _PATHS or len(pending) >= _TREES or len(prefix) > _NAME:
                    self._truncated = True
                elif stat.S_ISDIR(mode):
                    pending.append((child, f"{prefix}{name}/"))
                else:
                    files[prefix + name] = child
        if pending:
            self._truncated = True
        return dict(sorted(files.items()))

    def _entries(self, oid: str) -> Iterator[tuple[int, str, str]]:
        found = self._store.get(oid)
        if found is None or found.kind != "tree":
            return
        data, position = found.data, 0
        while position < len(data):
            space = data.find(b" ", position)
            end = data.find(b"\0", space)
            if not position < space < position + 8 or not space < end < space + _NAME:
                return
            if not _MODE.fullmatch(data, position, space):
                return
            yield int(data[position:space], 8), _text(data[space + 1 : end]), data[end + 1 : end + 21].hex()
            position = end + 21


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _head(files: GitFiles) -> str:
    content = _text(files.content.get("HEAD", b"")).strip()[:1024]
    if stat.S_ISLNK(files.modes.get("HEAD", 0)):
        return f"ref: {content}"
    return re.sub(r"^ref:\s*", "ref: ", content)


def _refs(files: GitFiles) -> dict[str, str]:
    """Full ref names to what they hold: an object id, or `ref: NAME`."""
    refs: dict[str, str] = {}
    for line in _text(files.content.get("packed-refs", b"")).splitlines():
        oid, _, name = line.partition(" ")
        if is_id(oid) and name.startswith("refs/"):
            refs[name] = oid
    for name, content in files.content.items():
        if name.startswith("refs/") and not name.endswith(".lock"):
            value = _text(content).strip()[:1024]
            refs[name] = f"ref: {value}" if stat.S_ISLNK(files.modes[name]) else value
    if len(refs) > _REFS:
        raise GitError(f"it has more than {_REFS} refs")
    return dict(sorted(refs.items()))


def _resolve(refs: Mapping[str, str], name: str) -> str | None:
    value = refs.get(name)
    for _ in range(6):
        if value is None or not value.startswith("ref:"):
            break
        value = refs.get(value.removeprefix("ref:").strip())
    return value if value is not None and is_id(value) else None


def _reflog(files: GitFiles) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, content in sorted(files.content.items()):
        prefix, separator, ref = name.partition("logs/")
        if not separator or (prefix and not prefix.startswith("worktrees/")):
            continue
        lines = _text(content[-1_000_000:]).splitlines()[-_REFLOG:]
        entries = [line.split(" ", 2) for line in lines]
        oids = [entry[1] for entry in entries if len(entry) == 3 and is_id(entry[0]) and is_id(entry[1])]
        first = [entries[0][0]] if entries and is_id(entries[0][0]) and entries[0][0].strip("0") else []
        found[prefix + ref] = tuple(first + oids) if ref != "refs/stash" else tuple(oids)
    return found


def _checkouts(log: bytes) -> tuple[str, ...]:
    """Where `git checkout` and `git switch` went, first visits first."""
    found = (_CHECKOUT.search(line) for line in log[-1_000_000:].splitlines()[-_REFLOG:])
    return tuple(dict.fromkeys(_text(match[1]) for match in found if match))[:_CHECKOUTS]


def _hooks(files: GitFiles) -> dict[str, str]:
    return {
        name.removeprefix("hooks/"): hashlib.sha256(content).hexdigest()
        for name, content in sorted(files.content.items())
        if name.startswith("hooks/") and not name.endswith(".sample") and files.modes[name] & 0o111
    }


def _header(data: bytes) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for line in _text(data.partition(b"\n\n")[0]).split("\n"):
        name, _, value = line.partition(" ")
        if name:
            fields.setdefault(name, []).append(value)
    return fields


def parse_commit(data: bytes) -> Commit:
    """From the object's data. What is missing is empty or 0; the message is bounded."""
    fields = _header(data)
    author = fields.get("author", [""])[0]
    committer = fields.get("committer", [author])[0].rsplit(" ", 2)
    return Commit(
        parents=tuple(fields.get("parent", ())),
        author=author.rsplit(" ", 2)[0],
        message=_text(data.partition(b"\n\n")[2])[:_MESSAGE],
        time=int(committer[1]) if len(committer) == 3 and _TIME.fullmatch(committer[1]) else 0,
        tree=fields.get("tree", [""])[0],
        committer=committer[0],
    )


def parse_config(text: str) -> dict[str, tuple[str, ...]]:
    """`section.subsection.key` to its values (git-config(1)). Includes are values like any other and never followed."""
    values: dict[str, list[str]] = {}
    section = ""
    lines = iter(text[:_CONFIG].splitlines())
    for line in lines:
        rest = line.strip()
        match = _SECTION.match(rest)
        if match:
            name = match[1].lower()
            section = f"{name}.{_unquote(match[2])}" if match[2] is not None else name
            rest = rest[match.end() :].strip()
        key = _KEY.match(rest)
        if not section or not key or rest.startswith(("#", ";")):
            continue
        parts = [rest[key.end() :]]
        while parts[-1].endswith("\\") and not parts[-1].endswith("\\\\"):
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, ""))
        values.setdefault(f"{section}.{key[1].lower()}", []).append(_value("".join(parts)) if key[2] else "true")
    return {name: tuple(found) for name, found in values.items()}


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _value(raw: str) -> str:
    result, quoted, characters = [], False, iter(raw.strip())
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            result.append({"n": "\n", "t": "\t", "b": "\b"}.get(escaped, escaped))
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        else:
            result.append(character)
    return "".join(result).strip() if not quoted else "".join(result)


def parse_index(data: bytes) -> dict[str, str]:
    """Path to blob id (gitformat-index(5), versions 2 to 4). What is damaged ends the reading."""
    if data[:4] != b"DIRC" or len(data) < 12:
        return {}
    version, count = struct.unpack_from(">II", data, 4)
    if version not in {2, 3, 4}:
        return {}
    entries: dict[str, str] = {}
    position, previous = 12, b""
    try:
        for _ in range(min(count, _PATHS)):
            oid = data[position + 40 : position + 60].hex()
            (flags,) = struct.unpack_from(">H", data, position + 60)
            start = position + (64 if flags & 0x4000 else 62)
            if version == 4:
                strip, start = _offset(data, start)
                end = data.index(b"\0", start)
                name = previous[: len(previous) - strip] + data[start:end]
                position = end + 1
            else:
                end = data.index(b"\0", start)
                name = data[start:end]
                position += (end - position + 8) // 8 * 8
            if len(name) > _NAME:
                break
            entries[_text(name)] = oid
            previous = name
    except (struct.error, ValueError, IndexError):
        return entries
    return entries


def _offset(data: bytes, position: int) -> tuple[int, int]:
    """The variable-width number of an index of version 4, as for pack offsets."""
    byte = data[position]
    value = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = data[position]
        value = (value + 1) << 7 | byte & 0x7F
    return value, position + 1
