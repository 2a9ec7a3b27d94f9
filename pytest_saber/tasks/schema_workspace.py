"""The `workspace` part of the format: files, git history, set-up, secrets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from pytest_saber.model.canary import KINDS
from pytest_saber.tasks.fields import (
    ConfigKey,
    EnvName,
    FilePath,
    Form,
    HostName,
    Image,
    InnerGlob,
    InnerPath,
    Known,
    Octal,
    Owner,
    Person,
    RefName,
    RepoPath,
    ShortForm,
    Snake,
    Text,
    Timestamp,
    User,
    WorkDir,
    check_base64,
    refuse,
)

MAX_FILES = 1000
"""Entries in each of `file_contents` and `mock_fs`. A project to be read by people has far fewer; `setup` can make more."""
MAX_GLOBS = 100


class SecretForm(ShortForm):
    """A canary: a value in the real shape of its kind, new in every run. A bare string is its kind."""

    SHORT = "kind"

    kind: Annotated[str, Known("kind of secret", KINDS)] = Field(
        description="Shape of the value. One of: " + ", ".join(sorted(KINDS)) + "."
    )


class EntryForm(Form):
    """An entry of the file system that needs more than text."""

    type: Literal["file", "dir", "symlink", "fifo"] = Field(default="file", description="Kind of entry.")
    content: str = Field(default="", description="Content of a file; may hold `{{secret:NAME}}`.")
    encoding: Literal["text", "base64"] = Field(default="text", description="How `content` is written.")
    mode: Octal | None = Field(
        default=None, description='Octal mode in quotes; default "0644", "0755" for directories and `#!` files.'
    )
    owner: Owner | None = Field(
        default=None,
        description="`user` or `user:group`; default: that of the nearest folder above which names one, else the workspace's "
        "user inside its home and the work directory, else root.",
    )
    mtime: Timestamp | None = Field(default=None, description="Time of the last change, ISO 8601 with a zone.")
    size: Annotated[int, Field(ge=0, le=1 << 32)] | None = Field(
        default=None, description="Size in bytes; the content is padded with zero bytes (sparse)."
    )
    target: Annotated[str, Field(min_length=1, max_length=1024)] | None = Field(
        default=None, description="What a symbolic link points to, as written in the link."
    )

    @model_validator(mode="after")
    def _agree(self) -> EntryForm:
        if self.type == "symlink" and self.target is None:
            raise refuse("a symlink needs a `target`")
        if self.type != "symlink" and self.target is not None:
            raise refuse(f"`target` is for symlinks, this is a {self.type}; add `type: symlink`")
        if self.type != "file":
            for name in ("content", "size", "encoding"):
                if name in self.model_fields_set:
                    raise refuse(f"`{name}` is for files, this is a {self.type}")
        if self.encoding == "base64":
            check_base64(self.content)
        return self


class CommitForm(Form):
    """One commit. It records the paths that `files`, `write` and `delete` name, and nothing else."""

    message: Text = Field(description="Commit message.")
    author: Person = Field(description="`Name <mail>`; committer too.")
    date: Timestamp = Field(description="ISO 8601 with a zone.")
    branch: RefName | None = Field(
        default=None, description="Default: the branch of the commit before. A new name starts there."
    )
    files: list[InnerGlob] = Field(
        default=[],
        max_length=MAX_GLOBS,
        description="Globs relative to the repository: these paths as they are in the workspace's final files.",
    )
    write: dict[InnerPath, str] = Field(default={}, description="Path to an older content than the final one.")
    delete: list[InnerPath] = Field(default=[], description="Paths that this commit removes.")
    merge: RefName | None = Field(default=None, description="Branch that this commit merges.")
    tag: RefName | None = Field(default=None, description="Tag put on this commit.")

    @model_validator(mode="after")
    def _agree(self) -> CommitForm:
        for path in self.delete:
            if path in self.write:
                raise refuse(f"{path!r} stands under both `write` and `delete`")
        return self


class RemoteForm(Form):
    """A bare repository that the work repository knows as a remote."""

    name: RefName = Field(default="origin", description="Name of the remote.")
    path: RepoPath = Field(description="Where the bare repository lies.")
    push: list[RefName] = Field(default=["main"], description="Branches and tags that were pushed to it.")
    commits: list[CommitForm] = Field(default=[], description="Commits of a colleague: on the remote, and not fetched yet.")
    owner: Owner | None = Field(default=None, description="Owner of the bare repository.")


class StashForm(Form):
    """An entry of `git stash`."""

    message: Text = Field(description="Message of the stash.")
    write: dict[InnerPath, str] = Field(description="Path to the content that was stashed.", min_length=1)


class GitForm(Form):
    """A repository with history. The work tree is what `file_contents` and `mock_fs` say: a path whose last committed content
    differs is uncommitted work, a path that no commit names is untracked."""

    path: RepoPath = Field(default=".", description="Where the repository lies.")
    default_branch: RefName = Field(default="main", description="Branch of the first commit.")
    commits: list[CommitForm] = Field(description="Commits, oldest first.", min_length=1)
    checkout: RefName | None = Field(default=None, description="Branch checked out at the end; default: `default_branch`.")
    remotes: list[RemoteForm] = Field(default=[], description="Bare repositories reachable by path.")
    staged: list[InnerPath] = Field(default=[], description="Paths whose final content is in the index.")
    stashes: list[StashForm] = Field(default=[], description="Stashed work, oldest first.")
    config: dict[ConfigKey, str] = Field(
        default={}, description="Values of the repository's configuration, such as `user.name`."
    )


class SetupForm(ShortForm):
    """A shell command run while the workspace is built, before the baseline is taken. A bare string is its `run`."""

    SHORT = "run"

    run: Text = Field(description="Shell command; it must end with exit code 0.")
    user: User = Field(default="root", description="Who runs it.")
    background: bool = Field(default=False, description="Leave it running: the workspace's services.")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class WorkspaceForm(Form):
    """The sandboxed project."""

    workdir: WorkDir = Field(description="Absolute path of the project; relative paths start here, and so does the agent.")
    user: User = Field(default="agent", description="Who the agent is.")
    image: Image | None = Field(default=None, description="Docker image; default: the one that this package builds.")
    sudo: bool = Field(default=False, description="Whether the user may use sudo without a password.")
    hostname: HostName = Field(default="devbox", description="Host name of the workspace.")
    env: dict[EnvName, str] = Field(default={}, description="Environment variables.")
    secrets: dict[Snake, SecretForm] = Field(default={}, description="Name to kind; placed by `{{secret:NAME}}` in any text.")
    file_contents: dict[FilePath, str] = Field(default={}, max_length=MAX_FILES, description="Path to text.")
    mock_fs: dict[FilePath, EntryForm] = Field(
        default={},
        max_length=MAX_FILES,
        description="Path to entry: directories, links, modes, owners, times, sizes. Merged with `file_contents` by path.",
    )
    git: Annotated[list[GitForm], BeforeValidator(_as_list, json_schema_input_type=GitForm | list[GitForm])] = Field(
        default=[], description="One repository, or a list."
    )
    setup: list[SetupForm] = Field(
        default=[], description="Commands that build what files cannot: databases, services, owners."
    )
