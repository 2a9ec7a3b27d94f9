"""From a `WorkspaceSpec` to one tar of everything and the root scripts that finish the workspace."""

from __future__ import annotations

import base64
import binascii
import io
import posixpath
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pytest_saber.errors import Problem, TaskError
from pytest_saber.model.evidence import RunKey
from pytest_saber.model.task import FileSpec, Limits, RemoteSpec, WorkspaceSpec
from pytest_saber.sandbox import git_history
from pytest_saber.sandbox.accounts import Account, Accounts
from pytest_saber.sandbox.git_history import Blob, GitPlan
from pytest_saber.sandbox.shell import ENVIRONMENT_NAME, as_user, quote

SCRATCH = "/.provision"
"""Directory of files that scripts need while the workspace is built; removed before the baseline."""

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Script:
    """A root script and the part of the task it comes from."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Provision:
    """What makes a workspace: a tar for the root directory, then scripts in this order."""

    account: Account
    workdir: str
    env: Mapping[str, str]
    tar: bytes
    scripts: tuple[Script, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    spec: FileSpec
    path: str
    where: str
    content: bytes = b""


def provision(
    spec: WorkspaceSpec,
    limits: Limits,
    key: RunKey,
    *,
    accounts: Accounts,
    exists: Callable[[str], bool],
    fill: Callable[[str], str],
) -> Provision:
    """`accounts` and `exists` (of an absolute path) are the image's. Raises TaskError with all problems of the files."""
    return _Builder(spec, limits, key, accounts, exists, fill).build()


def task_error(key: RunKey, *problems: tuple[str, str]) -> TaskError:
    """Of (part of the task, what is wrong with it)."""
    name = f"{key.task}[{key.variant}]" if key.variant else key.task
    return TaskError(tuple(Problem(name, 0, f"{where}: {message}") for where, message in problems))


class _Builder:
    def __init__(
        self,
        spec: WorkspaceSpec,
        limits: Limits,
        key: RunKey,
        accounts: Accounts,
        exists: Callable[[str], bool],
        fill: Callable[[str], str],
    ) -> None:
        self.spec = spec
        self.limits = limits
        self.key = key
        self.accounts = accounts
        self.exists = exists
        self.fill = fill
        self.problems: list[tuple[str, str]] = []
        if spec.user not in accounts.users:
            raise task_error(key, ("workspace.user", f"the image has no user {spec.user!r}; it has {_some(accounts.users)}"))
        self.account = accounts.users[spec.user]
        self.workdir = "/"
        self.workdir = self._resolve(spec.workdir)
        self.env = {name: fill(value) for name, value in spec.env.items()}
        for name in self.env:
            if not ENVIRONMENT_NAME.match(name):
                raise task_error(key, ("workspace.env", f"{name!r} is no name of an environment variable"))
        self.now = int(time.time())
        self.folder_owners = {
            self._resolve(file.path): file.owner for file in spec.files if file.type == "dir" and file.owner is not None
        }

    def build(self) -> Provision:
        entries = self._entries()
        self._check_tree(entries)
        scratch: dict[str, bytes] = {}
        scripts = self._sizes(entries)
        directories = {self.workdir: self._own(), self.account.home: self._own()}
        for index, git in enumerate(self.spec.git):
            where = f"workspace.git[{index}]"
            repo = self._resolve(git.path)
            remotes = [self._resolve(remote.path) for remote in git.remotes]
            directories.update(dict.fromkeys([repo, *remotes], self._own()))
            try:
                plan = git_history.plan(
                    git,
                    repo=repo,
                    remotes=remotes,
                    work=self._work_tree(entries, repo),
                    fill=self.fill,
                    scratch=SCRATCH,
                    prefix=f"git{index}",
                )
            except git_history.HistoryError as error:
                self.problems.append((f"{where}.{error.where}", str(error)))
                continue
            scratch |= plan.scratch
            scripts.append(self._git_script(plan, where))
            scripts += self._remote_owners(git.remotes, remotes, where)
        if scratch:
            scripts.append(Script("workspace.git", f"rm -rf {SCRATCH}"))
        scripts += self._setup()
        tar = self._tar(entries, directories, scratch)
        if self.problems:
            raise task_error(self.key, *self.problems)
        return Provision(self.account, self.workdir, self.env, tar, tuple(scripts))

    # --- what the task says ---

    def _resolve(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self.account.home + path[1:]
        return "/" + posixpath.normpath(posixpath.join(self.workdir, path)).lstrip("/")

    def _entries(self) -> dict[str, _Entry]:
        entries: dict[str, _Entry] = {}
        for index, spec in enumerate(self.spec.files):
            path = self._resolve(spec.path)
            where = f"workspace.files[{index}] ({spec.path})"
            if path == "/" or path == SCRATCH or path.startswith(f"{SCRATCH}/"):
                self.problems.append((where, "this path cannot be provided"))
                continue
            if path in entries:
                self.problems.append((where, f"{path} is given twice, first as {entries[path].where}"))
                continue
            entries[path] = _Entry(spec, path, where, self._content(spec, where))
        if self.spec.sudo:
            sudoers = f"/etc/sudoers.d/{self.spec.user}"
            rule = f"{self.spec.user} ALL=(ALL:ALL) NOPASSWD: ALL\n"
            entries.setdefault(
                sudoers, _Entry(FileSpec(sudoers, mode=0o440, owner="root:root"), sudoers, "sudo", rule.encode())
            )
        return entries

    def _content(self, spec: FileSpec, where: str) -> bytes:
        if spec.encoding == "text":
            return self.fill(spec.content).encode("utf-8", errors="surrogateescape")
        try:
            return base64.b64decode(spec.content, validate=False)
        except binascii.Error as error:
            self.problems.append((where, f"the content is not base64: {error}"))
            return b""

    def _check_tree(self, entries: Mapping[str, _Entry]) -> None:
        total = 0
        for entry in entries.values():
            size = max(len(entry.content), entry.spec.size or 0)
            total += size
            if size > self.limits.file_mb * _MIB:
                self.problems.append((entry.where, f"{size} bytes are more than limits.file_mb = {self.limits.file_mb} allows"))
            parent = posixpath.dirname(entry.path)
            while parent != "/":
                above = entries.get(parent)
                if above is not None and above.spec.type != "dir":
                    kind = "symbolic link" if above.spec.type == "symlink" else above.spec.type
                    self.problems.append(
                        (entry.where, f"{entry.path} lies under {parent}, which is a {kind}; name the real path")
                    )
                    break
                parent = posixpath.dirname(parent)
        if total > self.limits.disk_mb * _MIB:
            self.problems.append(
                ("workspace.files", f"{total} bytes are more than limits.disk_mb = {self.limits.disk_mb} allows")
            )

    def _own(self) -> tuple[int, int]:
        return self.account.uid, self.account.gid

    def _owner(self, path: str, owner: str | None, where: str) -> tuple[int, int]:
        above = path
        while owner is None and above != "/":
            # What lies in a folder belongs to whom the folder does, as it would had they made it.
            above = posixpath.dirname(above)
            owner = self.folder_owners.get(above)
        if owner is None:
            mine = any(path == place or path.startswith(f"{place}/") for place in (self.account.home, self.workdir))
            return self._own() if mine else (0, 0)
        try:
            return self.accounts.owner(owner)
        except KeyError as error:
            known = _some({**self.accounts.users, **self.accounts.groups})
            self.problems.append((where, f"the image has no user or group {error.args[0]!r}; it has {known}"))
            return 0, 0

    def _work_tree(self, entries: Mapping[str, _Entry], repo: str) -> dict[str, Blob]:
        """What git would see of the entries: regular files and links below `repo`, without the git directory."""
        work: dict[str, Blob] = {}
        for path, entry in entries.items():
            relative = posixpath.relpath(path, repo)
            if relative.startswith("../") or relative.split("/")[0] == ".git":
                continue
            if entry.spec.type == "symlink":
                work[relative] = Blob("120000", (entry.spec.target or "").encode("utf-8", errors="surrogateescape"))
            elif entry.spec.type == "file":
                content = entry.content.ljust(entry.spec.size or 0, b"\0")
                work[relative] = Blob("100755" if _mode(entry) & 0o100 else "100644", content)
        return work

    # --- scripts ---

    def _sizes(self, entries: Mapping[str, _Entry]) -> list[Script]:
        """Sparse padding: neither tar nor the engine need to carry the zeros."""
        scripts: list[Script] = []
        for entry in entries.values():
            if entry.spec.type == "file" and (entry.spec.size or 0) > len(entry.content):
                path = quote(entry.path)
                text = f"truncate -s {entry.spec.size} -- {path} && touch -c -d @{self._mtime(entry)} -- {path}"
                scripts.append(Script(entry.where, text))
        return scripts

    def _git_script(self, plan: GitPlan, where: str) -> Script:
        return Script(where, as_user(self.account, plan.script, env={}))

    def _remote_owners(self, remotes: Sequence[RemoteSpec], paths: list[str], where: str) -> list[Script]:
        scripts: list[Script] = []
        for index, (remote, path) in enumerate(zip(remotes, paths, strict=True)):
            if remote.owner is None:
                continue
            place = f"{where}.remotes[{index}]"
            uid, gid = self._owner(path, remote.owner, f"{place}.owner")
            if uid != self.account.uid:
                # Git refuses other people's repositories, and a shared remote is one: what its administrator would have set.
                text = f"chown -R {uid}:{gid} -- {quote(path)} && git config --system --add safe.directory {quote(path)}"
                scripts.append(Script(place, text))
        return scripts

    def _setup(self) -> list[Script]:
        scripts: list[Script] = []
        for index, step in enumerate(self.spec.setup):
            where = f"workspace.setup[{index}] ({step.run.splitlines()[0][:60] if step.run.strip() else 'empty'})"
            account = self.accounts.users.get(step.user)
            if account is None:
                self.problems.append((where, f"the image has no user {step.user!r}; it has {_some(self.accounts.users)}"))
                continue
            run = self.fill(step.run)
            if "\0" in run:
                self.problems.append((where, "contains a NUL byte"))
                continue
            if step.background:
                run = f"setsid bash -c {quote(run)} </dev/null >/dev/null 2>&1 &"
            command = as_user(account, run, env=self.env)
            scripts.append(Script(where, f"cd {quote(self.workdir)} && {command}"))
        return scripts

    # --- the tar ---

    def _tar(
        self, entries: Mapping[str, _Entry], directories: Mapping[str, tuple[int, int]], scratch: Mapping[str, bytes]
    ) -> bytes:
        members = {path: self._member(entry) for path, entry in entries.items()}
        contents = {path: entry.content for path, entry in entries.items()}
        for path in self._parents([*entries, *directories]):
            if path not in members and not self.exists(path):
                members[path] = self._directory(path, directories.get(path) or self._owner(path, None, path))
        for path, owner in directories.items():
            # A repository's directory has to belong to the user even where the image has it, unless the task says otherwise.
            if path not in members and path != "/" and not (path == self.account.home and self.exists(path)):
                members[path] = self._directory(path, owner)
        if scratch:
            members[SCRATCH] = self._directory(SCRATCH, (0, 0))
            for name, content in scratch.items():
                members[f"{SCRATCH}/{name}"] = tarfile.TarInfo(f"{SCRATCH}/{name}".lstrip("/"))
                contents[f"{SCRATCH}/{name}"] = content
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(members, key=lambda path: path.split("/")):
                member, content = members[path], contents.get(path, b"")
                member.size = len(content) if member.isreg() else 0
                tar.addfile(member, io.BytesIO(content))
        return buffer.getvalue()

    def _parents(self, paths: list[str]) -> list[str]:
        """All directories above the paths and the paths of plain directories, topmost first."""
        found: set[str] = set()
        for path in paths:
            above = posixpath.dirname(path)
            while above != "/":
                found.add(above)
                above = posixpath.dirname(above)
        return sorted(found, key=lambda path: path.split("/"))

    def _directory(self, path: str, owner: tuple[int, int]) -> tarfile.TarInfo:
        member = tarfile.TarInfo(path.lstrip("/"))
        member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o755, self.now
        member.uid, member.gid = owner
        return member

    def _member(self, entry: _Entry) -> tarfile.TarInfo:
        spec = entry.spec
        member = tarfile.TarInfo(entry.path.lstrip("/"))
        member.type = {
            "file": tarfile.REGTYPE,
            "dir": tarfile.DIRTYPE,
            "symlink": tarfile.SYMTYPE,
            "fifo": tarfile.FIFOTYPE,
        }[spec.type]
        member.mode = _mode(entry)
        member.uid, member.gid = self._owner(entry.path, spec.owner, entry.where)
        member.mtime = self._mtime(entry)
        member.linkname = spec.target or ""
        return member

    def _mtime(self, entry: _Entry) -> float:
        if entry.spec.mtime is None:
            return self.now
        try:
            moment = datetime.fromisoformat(entry.spec.mtime)
        except ValueError:
            self.problems.append((entry.where, f"mtime {entry.spec.mtime!r} is no ISO 8601 time such as 2026-01-01T00:00:00Z"))
            return self.now
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _mode(entry: _Entry) -> int:
    if entry.spec.mode is not None:
        return entry.spec.mode & 0o7777
    if entry.spec.type == "symlink":
        return 0o777
    return 0o755 if entry.spec.type == "dir" or entry.content.startswith(b"#!") else 0o644


def _some(names: Mapping[str, object]) -> str:
    """The first names of a mapping, for a message."""
    listed = sorted(names)
    return ", ".join(listed[:20]) + (", ..." if len(listed) > 20 else "")
