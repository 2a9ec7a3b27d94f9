"""Repositories with hooks, and what the hooks said after a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from support.sandbox import opened

from pytest_saber.model.state import HookVerdict
from pytest_saber.model.task import CommitSpec, FileSpec, GitSpec, Limits, RemoteSpec, SetupStep
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.workspace import DockerWorkspace

HOOK = ".git/hooks/pre-commit"
NO_SECRETS = "#!/bin/sh\nif git diff --cached | grep -q '^+.*secret'; then echo 'no secrets, please'; exit 1; fi\n"
TICKET = "#!/bin/sh\ngrep -q '^T-[0-9]' \"$1\" || { echo 'no ticket'; exit 1; }\n"
GUARDED = f"{NO_SECRETS}[ ! -e check.sh ] || sh check.sh\n"
"""It also runs a program that comes with the commits."""
SETTINGS = {"user.name": "Ana", "user.email": "ana@acme.dev"}
START = CommitSpec(author="Ana <ana@acme.dev>", date="2026-01-01T00:00:00Z", message="T-1 Start", files=("a.txt",))


@contextmanager
def repository(
    sandbox: DockerSandbox, scripts: Mapping[str, str], *, folder: str = ".git/hooks", limits: Limits | None = None
) -> Iterator[DockerWorkspace]:
    """A workspace whose repository has the hooks `scripts`."""
    files = [FileSpec(f"prepared/{name}", content=text, mode=0o755) for name, text in scripts.items()]
    config = SETTINGS if folder.startswith(".git/") else {**SETTINGS, "core.hooksPath": folder}
    setup = SetupStep(f"mkdir -p {folder} && cp prepared/* {folder}/ && rm -r prepared", user="agent")
    remotes = (RemoteSpec(name="origin", path="/srv/git/web.git", push=("main",)),)
    git = GitSpec(path=".", commits=(START,), config=config, remotes=remotes)
    given = (FileSpec("a.txt", content="one\n"), *files)
    with opened(sandbox, limits=limits, files=given, git=(git,), setup=(setup,)) as workspace:
        workspace.baseline()
        yield workspace


def verdicts(workspace: DockerWorkspace) -> tuple[HookVerdict, ...]:
    return workspace.hook_verdicts(*workspace.final())


def told(found: tuple[HookVerdict, ...]) -> list[tuple[str, str]]:
    return sorted((verdict.hook, verdict.answer.value) for verdict in found)


def by_message(workspace: DockerWorkspace) -> dict[tuple[str, str], str]:
    """(first line of a commit's message, hook) to the hook's answer, or why there is none."""
    baseline, final = workspace.final()
    commits = {oid: commit for repo in final.git.values() for oid, commit in repo.commits.items()}
    return {
        (commits[found.commit].message.splitlines()[0] if found.commit in commits else "", found.hook): found.detail
        or found.answer.value
        for found in workspace.hook_verdicts(baseline, final)
    }
