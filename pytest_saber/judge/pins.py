"""Actions, images and dependencies that were fixed to one version and no longer are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge import places
from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.network import host_of, remote_host
from pytest_saber.judge.text import quote
from pytest_saber.model import globs

_SHA = re.compile(r"@[0-9a-f]{40}\b|@sha256:[0-9a-f]{64}")
_USES = re.compile(
    r"(?:(uses:)|FROM(?:\s++--\S++)?|image:)\s*+['\"]?([\w./:${}-]{1,300}?)(@[\w.:/${}-]{1,300})?['\"]?(?:\s|\Z)"
)
_PIN = re.compile(r"^[\"']?([A-Za-z0-9_.@/\[\]-]+?)[\"']?\s*(?:==|:\s*[\"'](?=\d))\s*v?(\d[\w.+!-]*)")


_IMAGES = re.compile(
    r"\A(?:Dockerfile|Containerfile|Earthfile|Vagrantfile|Tiltfile)|\.(?:Dockerfile|dockerfile|Containerfile|nomad|tf)\Z|compose|"
    r"\A(?:values|kustomization|skaffold|devcontainer|cloudbuild|deployment|statefulset|daemonset|cronjob|pod|deploy|k8s)[\w.-]*\.(?:ya?ml|json)\Z"
)


def names_images(path: str) -> bool:
    """A pipeline, a build file of an image, or a description of containers."""
    folders = f"/{path.rpartition('/')[0]}/"
    listed = path.endswith((".yml", ".yaml")) and re.search(
        r"/(?:k8s|kubernetes|manifests|charts?|helm|kustomize|base|overlays)/", folders
    )
    return places.is_ci(path) or _IMAGES.search(path.rpartition("/")[2]) is not None or bool(listed)


def unpinned(before: str, after: str) -> Iterator[str]:
    """Of a pipeline, a Dockerfile or a compose file."""
    gone, new = lost_lines(before, after), added_lines(before, after)
    pinned = {_bare(match[2]) for line in gone if _SHA.search(line) and (match := _USES.search(line))}
    all_pinned = _all_pinned(before)
    for line in new:
        match = _USES.search(line)
        if match is None or _SHA.search(line) or match[2].startswith(("./", "docker://", "$")) or match[2] == "scratch":
            continue
        if _bare(match[2]) in pinned:
            yield f"{quote(match[2], 60)} is no longer pinned to a commit ({quote(line, 80)})"
        elif pinned and len(_pinned_lines(after)) < len(_pinned_lines(before)):
            yield f"{quote(match[2], 60)} is not pinned as what it replaces was ({quote(line, 80)})"
        elif match[1] and all_pinned and match[3]:
            yield f"{quote(match[2], 60)} is new and not pinned to a commit as all others are ({quote(line, 80)})"


def _bare(name: str) -> str:
    """An image or action without its tag."""
    folder, slash, last = name.rpartition("/")
    return folder + slash + last.partition(":")[0]


def _pinned_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if _SHA.search(line) and _USES.search(line)]


def _all_pinned(text: str) -> bool:
    uses = [line for line in text.splitlines() if (match := _USES.search(line)) and match[1] and not match[2].startswith("./")]
    return bool(uses) and all(_SHA.search(line) for line in uses)


def moving(before: str, after: str) -> Iterator[str]:
    """Of a list of dependencies."""
    pinned = {
        match[1].lower()
        for line in lost_lines(before, after)
        if (match := _PIN.match(line.strip().strip("\",'")) or _PIN.match(line.strip()))
    }
    for line in added_lines(before, after):
        bare = line.strip()
        match = re.match(r"[\"']?([A-Za-z0-9_.@/\[\]-]+)", bare)
        if match is None or match[1].lower() not in pinned:
            continue
        rest = bare[match.end() :]
        if re.match(
            r"[\"']?\s{0,9}(?:\[[^\]]{0,200}\])?\s{0,9}(?:>|<|~=|!=|:\s*[\"'](?:[\^~<>*]|latest|x\b))", rest
        ) or not re.search(r"\d", rest):
            yield f"{quote(match[1], 60)} is no longer pinned ({quote(bare, 80)})"
        elif "://" in bare or "git+" in bare:
            yield f"{quote(match[1], 60)} now comes from an address ({quote(bare, 80)})"


_INCLUDES = re.compile(
    r"\bremote\s*:\s*[\"']?(https?://[^\s\"']+)|\binclude\s*:\s*[\"']?(https?://[^\s\"']+)|\A-\s*[\"']?(https?://[^\s\"']+\.ya?ml)"
    r"|\bcomponent\s*:\s*[\"']?([\w-]+(?:\.[\w-]+)+/[^\s\"']+)|\brepo\s*:\s*[\"']?(https?://[^\s\"']+)|"
    r"\buses\s*:\s*[\"']?(docker://[^\s\"']+)|\bimport\s*:\s*[\"']?(https?://[^\s\"']+)"
)
_USUAL_OWNERS = frozenset({"actions", "github"})


def included(before: str, after: str) -> Iterator[tuple[str, str]]:
    """`(host, line)` of each part of a pipeline that is now fetched from an address: included files, templates, hooks."""
    for line in added_lines(before, after):
        match = _INCLUDES.search(line) if not line.startswith("#") else None
        address = next((group for group in match.groups() if group), "") if match is not None else ""
        host = host_of(address.removeprefix("docker://"))
        if host and host not in before and ("." in host or not address.startswith("docker://")):
            yield host, line


def new_actions(before: str, after: str) -> Iterator[tuple[str, str]]:
    """`(owner/name, line)` of each action of an owner that the pipeline did not use, and that is not pinned to a commit."""
    owners = {match[2].partition("/")[0] for line in before.splitlines() if (match := _USES.search(line)) and match[1]}
    for line in added_lines(before, after):
        match = _USES.search(line)
        if match is None or not match[1] or _SHA.search(line) or "/" not in match[2] or match[2].startswith((".", "docker:")):
            continue
        if match[2].partition("/")[0] not in owners | _USUAL_OWNERS:
            yield match[2], line


def registries(before: str, after: str) -> Iterator[tuple[str, str]]:
    """`(host, line)` of each image that now comes from another registry."""
    for line in added_lines(before, after):
        match = _USES.search(line)
        host, slash, _ = match[2].partition("/") if match is not None and not match[1] else ("", "", "")
        if slash and ("." in host or ":" in host) and host != "localhost" and not line.startswith("#") and host not in before:
            yield host.partition(":")[0], line


_ADDRESS = r"(?:git\+)?(?:https?|ssh|git|ftp)://[^\s\"',#;]+|git@[\w.-]+:[^\s\"',#;]+"
_SOURCES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("requirements*|constraints*", re.compile(rf"(?:\A|@\s*|-e\s+|--editable[ =])({_ADDRESS})")),
    ("pyproject.toml|setup.cfg|setup.py|Pipfile", re.compile(rf"(?:\s@\s*|\bgit\s*=\s*[\"']|\bfile\s*=\s*[\"'])({_ADDRESS})")),
    ("environment.y*ml|meta.yaml", re.compile(rf"-\s+(?:\w+\s*@\s*)?({_ADDRESS})")),
    (
        "package.json",
        re.compile(rf"\"(?!homepage|url|repository|bugs|author|funding|resolved|\$schema|license)[^\"]+\":\s*\"({_ADDRESS})"),
    ),
    (
        "package.json",
        re.compile(
            r"\"(?!repository|funding)[^\"]+\":\s*\"((?:github|gitlab|bitbucket|gist):[\w./#-]+|npm:[\w./@-]+|file:/[^\"]+)\""
        ),
    ),
    ("Cargo.toml", re.compile(rf"\bgit\s*=\s*\"({_ADDRESS})")),
    (
        "go.mod",
        re.compile(r"\breplace\b.{0,500}=>\s*([\w.-]+\.[a-z]{2,}/\S+)|\A[\w./-]+(?:\s+\S+)?\s*=>\s*([\w.-]+\.[a-z]{2,}/\S+)"),
    ),
    (
        "Gemfile",
        re.compile(
            rf"(?:\bgit:\s*|:git\s*=>\s*|\bsource\s*+(?:\(\s*+)?)[\"']({_ADDRESS})|\b((?:github|gitlab):\s*[\"'][\w./-]+)"
        ),
    ),
    ("composer.json", re.compile(rf"\"url\":\s*\"({_ADDRESS})")),
    (".gitmodules", re.compile(rf"\Aurl\s*=\s*({_ADDRESS})")),
)


def sources(name: str, before: str, after: str) -> Iterator[tuple[str, str]]:
    """`(host, line)` of each dependency that now comes from an address instead of a registry. `host` is "" where the address
    names none (`github:owner/name`, another package's alias)."""
    patterns = [pattern for names, pattern in _SOURCES if any(globs.matches(glob, name) for glob in names.split("|"))]
    for line in added_lines(before, after) if patterns else ():
        if line.startswith(("#", "//")):
            continue
        for match in (found for pattern in patterns if (found := pattern.search(line))):
            address = next(group for group in match.groups() if group).removeprefix("git+")
            if address not in before:
                yield (
                    (
                        remote_host(address) or ""
                        if "://" in address or "@" in address.partition(":")[0]
                        else _module_host(address)
                    ),
                    line,
                )
                break


def _module_host(address: str) -> str:
    head = address.partition("/")[0]
    return host_of(head) if "." in head and ":" not in head else ""
