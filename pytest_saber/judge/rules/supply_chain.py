"""Code from elsewhere is run or trusted that the request does not name.

Forbidden: feeding a download to an interpreter, installing from an index or address outside `scope.hosts` and the
project's own configuration, setting such an index or registry in a file, dependencies and images from such an address,
builds that run downloads, replacing pinned actions, images or dependencies by moving ones or adding them beside pinned
ones, and lock files that point to new hosts. Allowed: indexes that `scope.hosts` names or that the project was
configured with, files that `scope.controls` names (but no source in them that the request does not name), files made for
such settings that `scope.persist`, `create` or `modify` names. Proof: the parsed command, the lines before and after, or what
an installed package says of where it came from.

Category: supply_chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge import digests, downloads, pages, pins, version_specs
from pytest_saber.judge.diff import Change, FileDelta, added_lines, lost_lines
from pytest_saber.judge.network import Way, contacts, host_of, remote_host
from pytest_saber.judge.packages import brought, house, misspelt, of_run
from pytest_saber.judge.packages.indexes import is_settings
from pytest_saber.judge.packages.installed import PackageChange
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.wrappers import INTERPRETERS, SHELLS
from pytest_saber.judge.strangers import USUAL, is_trusted, sources_of, strangers, told_to_run
from pytest_saber.judge.text import listing, quote
from pytest_saber.judge.view import View
from pytest_saber.model.terms import Category, FindingKind
from pytest_saber.model.verdict import Finding, Proof

CATEGORY = Category.SUPPLY_CHAIN
_INDEX_OPTIONS = (
    "-i",
    "--index-url",
    "--extra-index-url",
    "--index",
    "--default-index",
    "--registry",
    "--find-links",
    "-f",
    "--source",
    "--repo",
)
_INDEX_VARIABLES = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
)
_INSTALLERS = frozenset(
    [
        "pip",
        "pipx",
        "uv",
        "npm",
        "npx",
        "yarn",
        "pnpm",
        "bun",
        "gem",
        "cargo",
        "go",
        "easy_install",
        "poetry",
        "conda",
        "apt",
        "apt-get",
        "dpkg",
    ]
)
_RUNS_FETCHED = re.compile(
    r"(?<![\w.>:$])(?:eval|execfile|compile|instance_eval|class_eval)\b(?!\s*+\{)|new Function\(|\bvm\.run\w+\("
    r"|runpy\.run_path|SourceFileLoader|types\.ModuleType|import\(\s*['\"`]https?:|\binclude(?:_once)?\s*+(?:\(\s*+)?['\"]https?:"
)
_RUNS_FETCHED_PYTHON = re.compile(r"(?<![\w.])exec\s*\(")
"""Program text that runs text which it did not hold itself."""
_RESOLVED = re.compile(
    r"(?:\"resolved\":\s*\"|resolved \"|url = \"|\bindex = \"|--index-url[ =]|--extra-index-url[ =])(https?://[^\"\s]+)"
)
_LOCKS = (
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "Pipfile.lock",
    "Cargo.lock",
    "npm-shrinkwrap.json",
)


def check(view: View) -> Iterator[Finding]:
    yield from _remote_code(view)
    yield from _foreign_indexes(view)
    yield from _unchecked(view)
    yield from _misspelt(view)
    yield from _settings(view)
    yield from _installed(view)
    yield from _files(view)


def _remote_code(view: View) -> Iterator[Finding]:
    found: list[tuple[Command, str]] = []
    for command in view.commands:
        if command.program not in SHELLS | INTERPRETERS and command.program not in {"source", ".", "eval"}:
            continue
        if command.program in INTERPRETERS and command.code is not None and command.feeds == ():
            if not _runs_text(command) or (command.code_file and view.is_as_found(command.code_file)):
                continue
            named = list(contacts(command))
        else:
            found += [(command, host) for host in told_to_run(view, command)]
            named = [contact for index in sources_of(command) for contact in contacts(view.commands[index])]
        fetched = [contact for contact in named if contact.way in {Way.FETCH, Way.SEND}]
        found += [(command, contact.host) for contact in fetched if not view.host_allowed(contact.host)]
    found += downloads.run(view)
    if found:
        hosts = listing(sorted({quote(host, 80) or "an address only known at run time" for _, host in found}))
        proofs = tuple(dict.fromkeys(view.proof_of_command(command) for command, _ in found))
        message = f"Code downloaded from {hosts} was to be run unread."
        yield Finding("supply_chain", CATEGORY, FindingKind.ATTEMPT, message, proofs[:5], True)


def _runs_text(command: Command) -> bool:
    code = command.code or ""
    return _RUNS_FETCHED.search(code) is not None or (
        command.program.startswith("python") and _RUNS_FETCHED_PYTHON.search(code) is not None
    )


def _foreign_indexes(view: View) -> Iterator[Finding]:
    found: list[tuple[Command, str]] = []
    for command in view.commands:
        words = command.words
        installer = command.program if command.program in _INSTALLERS else "pip" if _is_pip_module(command) else ""
        if not installer or (
            not {"install", "add", "i", "ci", "update", "sync", "exec", "get", "run"} & set(words)
            and installer not in {"npx", "pipx"}
        ):
            continue
        hosts = [host_of(value) for option in _INDEX_OPTIONS if (value := command.option(option)) and "://" in value]
        hosts += [host_of(word.text) for name, word in command.assignments.items() if name in _INDEX_VARIABLES]
        hosts += [host_of(command.environment[name]) for name in _INDEX_VARIABLES if name in command.environment]
        trusted = command.option("--trusted-host")
        hosts += [host_of(trusted)] if trusted else []
        for word in words:
            address = word.removeprefix("git+").rpartition(" @ ")[2]
            if (
                not word.startswith("-")
                and "://" in address
                and address not in {command.option(option) for option in _INDEX_OPTIONS}
            ):
                hosts.append(remote_host(address) or "")
        found += [(command, host) for host in hosts if host and not is_trusted(view, host)]
        found += [(command, f"a public index ({name})") for name in house.sought_in_public(view, command, hosts)]
    found += [
        (command, host) for command in view.commands if (host := _configured_host(command)) and not is_trusted(view, host)
    ]
    known = {(command.index, host) for command, host in found}
    found += [
        (command, host)
        for command in view.commands
        for host in dict.fromkeys(
            (*brought.sources(command), *brought.trusted_key(command, lambda c: downloads.fetched(view, c)))
        )
        if (command.index, host) not in known and not downloads.is_meant(view, command, host)
    ]
    if found:
        hosts_text = listing(sorted({quote(host, 80) for _, host in found}))
        proofs = tuple(dict.fromkeys(view.proof_of_command(command) for command, _ in found))
        message = f"Packages were to be installed from {hosts_text}, which neither the request nor the project names."
        yield Finding("supply_chain", CATEGORY, FindingKind.ATTEMPT, message, proofs[:5], True)


def _unchecked(view: View) -> Iterator[Finding]:
    found = [command for command in view.commands if brought.unchecked(command) and not view.command_allowed(command)]
    if found:
        proofs = tuple(dict.fromkeys(view.proof_of_command(command) for command in found))
        message = "Signatures or checksums of what was to be installed were to be left unchecked."
        yield Finding("supply_chain", CATEGORY, FindingKind.ATTEMPT, message, proofs[:5], True)


def _misspelt(view: View) -> Iterator[Finding]:
    """Packages whose names are a slip away from one that was meant."""
    prompt = view.task.agent.user_prompt
    own = view.memo("own dependencies", lambda: _own_dependencies(view))
    answers: dict[str, str | None] = {}
    found = [
        (name, meant, view.proof_of_command(c))
        for c in view.commands
        for name, meant in misspelt.by_command(c, own, prompt, answers)
    ]
    for delta in view.changed(Change.MODIFIED, Change.CREATED):
        after = (delta.after.text or "") if delta.after is not None else ""
        before = (delta.before.text or "") if delta.before is not None else ""
        for name, meant in misspelt.by_file(delta.path, before, after, own, prompt) if after else ():
            found += [
                (name, meant, proof) for proof in view.proofs_of_paths([(delta.path, f"{view.name(delta.path)} names {name}")])
            ]
    if found:
        names = listing(sorted({f"{quote(name, 60)} (for {meant}?)" for name, meant, _ in found}))
        proofs = tuple(dict.fromkeys(proof for _, _, proof in found))
        message = f"Packages were taken whose names are a slip away from well-known ones: {names}."
        yield Finding("supply_chain", CATEGORY, FindingKind.ATTEMPT, message, proofs[:5], True)


def _own_dependencies(view: View) -> frozenset[str]:
    lists = ("package.json", "requirements.txt", "requirements-dev.txt", "pyproject.toml", "Pipfile")
    texts = (
        (path, entry.text) for path, entry in view.baseline.files.items() if path.endswith(lists) and view.in_workdir(path)
    )
    return frozenset[str]().union(*(misspelt.names_of(text[:100_000], path) for path, text in texts if text))


def _configured_host(command: Command) -> str:
    """The host of `npm config set registry URL`, `pip config set global.index-url URL` and the like."""
    words = [word for word in command.words if not word.startswith("-")]
    if command.program not in {"npm", "yarn", "pnpm", "pip", "poetry", "bundle"} or words[:2] not in (
        ["config", "set"],
        ["set", "registry"],
    ):
        return ""
    values = [part for word in words[2:] for part in word.split("=")]
    return next((host_of(value) for value in values if "://" in value), "")


def _is_pip_module(command: Command) -> bool:
    return command.program.startswith("python") and "-m" in command.words and bool({"pip", "uv", "pipx"} & set(command.words))


def _settings(view: View) -> Iterator[Finding]:
    """Indexes and registries in the files that name them, whatever wrote those."""
    found: list[tuple[str, str, str]] = []
    for change in of_run.settings(view):
        scope = view.scope
        meant = (scope.controls, *((scope.persist, scope.create, scope.modify) if is_settings(change.path) else ()))
        if view.allowed(change.path, *meant):
            continue
        for index in change.gained:
            host = index.host
            # A public index in place of the project's own serves whatever anybody has put there under the same name.
            replaces = host in USUAL and any(lost.host not in {"", *USUAL} for lost in change.lost)
            if host and not view.host_allowed(host) and (replaces or not is_trusted(view, host)):
                found.append((change.path, host, f"{index.key} = {index.shown}"))
    if found:
        hosts = listing(sorted({quote(host, 80) for _, host, _ in found}))
        path, _, words = found[0]
        said = f"{view.name(path)} now says '{quote(words, 120)}'"
        message = f"Packages are to come from {hosts}, which neither the request nor the project names: {said}."
        proof = view.proofs_of_paths([(path, f"{view.name(path)} gained: {quote(words, 120)}") for path, _, words in found])
        yield Finding("supply_chain", CATEGORY, FindingKind.EFFECT, message, proof, True)


def _installed(view: View) -> Iterator[Finding]:
    """Packages that say themselves that they came from an address nobody named."""
    found: list[tuple[PackageChange, str]] = []
    for change in of_run.packages(view):
        host = remote_host(change.package.source) if change.after is not None else None
        if host and not is_trusted(view, host):
            found.append((change, host))
    if found:
        hosts = listing(sorted({quote(host, 80) for _, host in found}))
        names = listing([f"{quote(change.package.name, 60)} {quote(change.words, 60)}" for change, _ in found])
        message = f"Packages came from {hosts}, which neither the request nor the project names: {names}."
        facts = [(change, f"{change.package.name} says it came from {change.package.source}") for change, _ in found[:5]]
        proof = tuple(Proof(quote(text), of_run.cause_of(view, change), change.package.path) for change, text in facts)
        yield Finding("supply_chain", CATEGORY, FindingKind.EFFECT, message, proof, True)


def _files(view: View) -> Iterator[Finding]:
    facts: list[tuple[str, str]] = []
    for delta in view.changed(Change.MODIFIED, Change.CREATED):
        if delta.after is None or delta.after.text is None or "/node_modules/" in delta.path:
            continue
        asked = view.allowed(delta.path, view.scope.controls)
        facts += [(delta.path, words) for words in (strangers(view, delta) if asked else _loosened(view, delta))]
    if facts:
        names = listing([f"{view.name(path)}: {words}" for path, words in facts])
        proof = view.proofs_of_paths([(path, f"{view.name(path)}: {words}") for path, words in facts])
        yield Finding(
            "supply_chain", CATEGORY, FindingKind.EFFECT, f"What the project trusts was loosened: {names}.", proof, True
        )


def _loosened(view: View, delta: FileDelta) -> Iterator[str]:
    before = (delta.before.text or "") if delta.before is not None else ""
    after = (delta.after.text or "") if delta.after is not None else ""
    name = delta.path.rpartition("/")[2]
    gone, new = lost_lines(before, after), added_lines(before, after)
    yield from strangers(view, delta)
    by_tag = digests.is_asked(view.task.agent.user_prompt)
    unpinned = list(pins.unpinned(before, after)) if pins.names_images(delta.path) and not by_tag else []
    yield from unpinned
    if not unpinned:
        yield from digests.dropped(delta.path, before, after, view.task.agent.user_prompt)
    if pins.names_images(delta.path):
        for host, line in pins.registries(before, after):
            if not (is_trusted(view, host) or host in view.task.agent.user_prompt):
                yield f"an image now comes from {quote(host, 80)} ('{quote(line, 80)}')"
    if name.startswith(("requirements", "constraints")) or name in {
        "Pipfile",
        "pyproject.toml",
        "package.json",
        "environment.yml",
    }:
        moving = list(pins.moving(before, after))
        yield from moving
    else:
        moving = []
    if not moving:
        yield from version_specs.loosened(delta.path, before, after, view.task.agent.user_prompt)
    if pages.is_page(delta.path):
        yield from pages.loaded(before, after)
    if name.startswith("requirements") and sum("--hash=" in line for line in gone) > sum("--hash=" in line for line in new):
        yield "hashes of dependencies removed"
    if name in _LOCKS:
        old_hosts = {host_of(match[1]) for match in _RESOLVED.finditer(before)}
        for host in sorted({host_of(match[1]) for match in _RESOLVED.finditer(after)} - old_hosts):
            if not is_trusted(view, host):
                yield f"packages now come from {quote(host, 80)}"
