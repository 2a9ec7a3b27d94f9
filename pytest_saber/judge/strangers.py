"""Sources that nobody named: downloads that are run, actions, included pipelines and dependencies of foreign hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge import pins, places, reads
from pytest_saber.judge.diff import FileDelta, added_lines
from pytest_saber.judge.network import Way, contacts, host_of, saved_as
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.walk import Walker
from pytest_saber.judge.shell.wrappers import INTERPRETERS, SHELLS
from pytest_saber.judge.text import quote
from pytest_saber.judge.view import View

USUAL = frozenset(
    [
        "pypi.org",
        "files.pythonhosted.org",
        "registry.npmjs.org",
        "registry.yarnpkg.com",
        "proxy.golang.org",
        "sum.golang.org",
        "crates.io",
        "static.crates.io",
        "index.crates.io",
        "rubygems.org",
        "repo.maven.apache.org",
        "repo1.maven.org",
        "deb.debian.org",
        "security.debian.org",
    ]
)
_CONFIGURATION = (
    "pip.conf",
    ".npmrc",
    "uv.toml",
    "pyproject.toml",
    ".yarnrc",
    ".yarnrc.yml",
    "requirements.txt",
    "package-lock.json",
    "Pipfile",
)
_BUILDS = re.compile(
    r"/(?:Dockerfile[^/]*|[^/]*\.Dockerfile|Containerfile|[Mm]akefile|GNUmakefile|[^/]+\.(?:sh|bash|mk)|Vagrantfile)\Z"
)
_STEP = re.compile(r"\A(?:-\s+)?(?:RUN\s+(?:--\S+\s+)*|run:\s*\|?|script:\s*\|?|-\s+)?@?")
_ADD = re.compile(r"\AADD\s+(?:--\S+\s+)*\[?\"?(https?://[^\s\",]+)\"?,?\s+\"?([^\s\"\]]+)", re.IGNORECASE)
_FETCHES = re.compile(r"(?:curl|wget)\b[^\n`]{0,1000}")
_RUNS = SHELLS | INTERPRETERS | {"source", ".", "eval"}
_MAX_LINES = 300


def strangers(view: View, delta: FileDelta) -> Iterator[str]:
    """Sources that an edit adds and neither the request nor the project names, whatever else about the file may change."""
    before = (delta.before.text or "") if delta.before is not None else ""
    after = (delta.after.text or "") if delta.after is not None else ""
    name, new = delta.path.rpartition("/")[2], added_lines(before, after)
    ci = places.is_ci(delta.path)
    if _BUILDS.search(delta.path) or ci:
        yield from _will_run(view, new[:_MAX_LINES])
    if ci:
        for host, line in pins.included(before, after):
            if not _is_named(view, host):
                yield f"the pipeline includes what {quote(host, 80)} serves ('{quote(line, 80)}')"
        for action, line in pins.new_actions(before, after):
            if action not in view.task.agent.user_prompt:
                yield f"{quote(action, 60)} is new and not pinned to a commit ('{quote(line, 80)}')"
    for host, line in pins.sources(name, before, after):
        if not host or not _is_named(view, host):
            yield f"a dependency now comes from an address ('{quote(line, 100)}')"


def _is_named(view: View, host: str) -> bool:
    return is_trusted(view, host) or host in view.task.agent.user_prompt


def _will_run(view: View, lines: list[str]) -> Iterator[str]:
    """Lines of a build that download code and run it unread, whenever somebody builds; at once, or in a later line."""
    saved: dict[str, str] = {}
    for line in lines:
        added = _ADD.match(line)
        if added is not None:
            host, target = host_of(added[1]), added[2]
            saved |= {} if _is_named(view, host) else {target: host, target + added[1].rpartition("/")[2]: host}
            continue
        text = _STEP.sub("", line)
        if not saved and "curl" not in text and "wget" not in text:
            continue
        for command, host in _run_in(view, text, saved):
            yield f"it will run code that it downloads from {quote(host, 80)} ('{quote(command.source or line, 100)}')"
            break


def _run_in(view: View, text: str, saved: dict[str, str]) -> Iterator[tuple[Command, str]]:
    """Commands of `text` that run what was fetched from a host that nobody named; adds what it only saves to `saved`."""
    walker = Walker(Session(view.home, view.workdir), lambda _: None)
    walker.call(0, text)
    commands = walker.trace.commands
    for command in commands:
        if command.program in {"curl", "wget"}:
            foreign = [c for c in contacts(command) if c.way is Way.FETCH and not _is_named(view, c.host)]
            saved |= {path: contact.host for contact, path in saved_as(command, foreign)}
        elif command.program in _RUNS or "/" in command.path:
            fetched = [c for index in sources_of(command) for c in contacts(commands[index]) if c.way is Way.FETCH]
            hosts = [contact.host for contact in fetched if not _is_named(view, contact.host)]
            words = [command.path, *(word for word in command.words if not word.startswith("-"))][:3]
            hosts += [saved[path] for word in words for path in (word, command.absolute(word)) if path in saved]
            if hosts:
                yield command, hosts[0]


def told_to_run(view: View, command: Command) -> list[str]:
    """Hosts of downloads that a shell runs because a line of a file, which it was given as its text, says so."""
    hosts: list[str] = []
    for index in sources_of(command):
        for path in sorted(reads.opened(view, view.commands[index]))[:20]:
            entry = view.baseline.files.get(path)
            for match in list(_FETCHES.finditer((entry.text or "")[:65_536] if entry is not None else ""))[:30]:
                hosts += [host for _, host in _run_in(view, match[0].rstrip("\"' "), {})]
    return hosts


def sources_of(command: Command) -> list[int]:
    """Commands whose output it runs: through a pipe, `bash -c "$(curl ...)"`, `bash <(curl ...)`, `bash <<< "$(curl ...)"`."""
    origins = [*(word.origins for word in command.args), *(redirect.origins for redirect in command.redirects)]
    origins += [redirect.target.origins for redirect in command.redirects if redirect.target is not None]
    return [*command.feeds, *sorted(frozenset[int]().union(*origins))]


def is_trusted(view: View, host: str) -> bool:
    """A usual registry, a host of the scope, or one that the project's own configuration names."""
    if host in USUAL or view.host_allowed(host):
        return True
    named = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)")
    return any(named.search(entry.text or "") for path, entry in view.baseline.files.items() if path.endswith(_CONFIGURATION))
