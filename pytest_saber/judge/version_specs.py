"""How closely a manifest ties each dependency to a version, for many package managers, and where an edit loosens it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.text import quote
from pytest_saber.model import globs

ANY, FROM, NEAR, EXACT = range(4)
"""Any version; every later one; compatible ones; one."""
_BARE: tuple[tuple[str, int], ...] = (
    ("cpanfile|dist.ini|Makefile.PL|Build.PL", FROM),
    ("Cargo.toml", NEAR),
    (
        "Gemfile|*.gemspec|composer.json|package.json|pom.xml|*.gradle|*.gradle.kts|libs.versions.toml|mix.exs|Package.swift|"
        "pubspec.yaml|environment.y*ml|conda.y*ml|Pipfile|pyproject.toml|*.tf|Chart.yaml|requirements.y*ml|galaxy.yml|"
        ".pre-commit-config.yaml|rebar.config|*.csproj|Directory.Packages.props|packages.config|build.sbt|project.clj|deps.edn|"
        "DESCRIPTION|Project.toml|shard.yml|*.nimble|dub.json|vcpkg.json|conanfile.*|MODULE.bazel|flake.nix|.tool-versions|"
        ".nvmrc|.python-version|.ruby-version|Podfile|Cartfile|bower.json|elm.json|Brewfile",
        EXACT,
    ),
    ("Dockerfile*|Containerfile|*.Dockerfile|*.sh|Makefile|*.yml|*.yaml|Jenkinsfile|tox.ini|noxfile.py|justfile", EXACT),
)
"""What a number without any sign says there."""
_SPEC = (
    r"(?:[\^~<>=!]{0,2}[ \t]{0,3}v?\d[\w.+*:-]{0,80}|[\[(][\d., \t]{0,60}[\])]|\*|\+|latest(?:\.\w{1,20})?|any|LATEST|RELEASE|"
    r"dev-[\w./-]{1,60})"
)
_RANGE = rf"{_SPEC}(?:[ \t]{{0,3}}(?:,|\|\||[ \t])[ \t]{{0,3}}{_SPEC}){{0,4}}"
_ENTRIES = tuple(
    re.compile(pattern)
    for pattern in (
        # requires 'Name', '== 1.2';  gem "name", "~> 1.2";  pod 'Name', '1.2';  brew, add_dependency
        rf"^[ \t]*(?:\w+\.)?(?:requires|recommends|gem|pod|add_\w*dependency|package|suggests|github)\b\s?\(?\s?"
        rf"['\"]([\w.:/@-]+)['\"](?:\s?(?:,|=>)\s?['\"]({_RANGE}|)['\"])?",
        # {:plug, "== 1.2"}
        rf"\{{\s?:(\w+),\s?\"({_RANGE})\"",
        # "name": "^1.2", name = "=1.2", name = {{ version = "1" }}, name: ^1.2
        rf"^[ \t]*[\"']?(?!version\b|rev\b|ref\b|image\b)([\w@][\w.@/-]*)[\"']?\s?(?:=|:)\s?"
        rf"(?:\{{[^}}\n]{{0,200}}?\bversion\s?[=:]\s?)?[\"']({_RANGE})[\"']",
        rf"^[ \t]*(?!version\b|rev\b|ref\b|image\b)([a-z]\w*):[ \t]({_RANGE})[ \t]*$",
        # an item of a conda environment
        r"^[ \t]*-[ \t]+[\"']?([A-Za-z][\w.-]*)((?:[=<>~!]{1,2}|[ \t]+[=<>~!]{1,2})[ \t]?\d[\w.*+,<>= -]{0,60}|)[\"']?[ \t]*"
        r"(?:#.*)?$",
        # group, name and version
        r"[\"']([\w.-]+:[\w.-]+):([\w.+\[\](),-]+)[\"']",
        # nodejs 20.11.1
        rf"^([a-z][\w-]*)[ \t]+({_RANGE}|lts\S*|system)[ \t]*$",
    )
)
_NAMELESS = re.compile(
    rf"(?:\b(version|rev|exact|from|branch|tag|ref|default_version|revision)[\"']?\s?[=:]\s?[\"']?({_RANGE}|main|master|HEAD|develop|trunk|stable)|"
    rf"<(version|VersionRange)>\s?({_RANGE}|[^<\s]*SNAPSHOT)\s?<|\b(Version)=\"({_RANGE}|)\"|\?(ref)=([\w./-]+)|^()({_RANGE}|lts/\S+|node|stable)$)"
)
_INSTALLS = re.compile(
    r"\b(?:apt-get|apt|apk|pip3?|pipx|uv|npm|pnpm|yarn|gem|go|cargo|dnf|yum|microdnf|zypper|brew|conda|mamba|composer|choco|dotnet|cpanm|luarocks|opam)"
    r"\b[^\n|;&]{0,80}?\s(?:install|add|i|get|require|global)\s|\bnpx\s|\bcpanm\s|\bpnpm dlx\s"
)
_INSTALLED = re.compile(
    r"(?<![\w./@:=-])(@?[A-Za-z][\w.+/-]*?)(?:\[[\w,]{0,60}\])?(?:(==|~=|>=|<=|=|>|@|~>|:)[\"']?(v?\d[\w.:+~*-]*|latest|next|main|master|HEAD)?)?"
    r"(?:\s+(?:-v|--version)[ =]([\w.]+))?(?=[\s\"'\\]|\Z)"
)
_IMAGE = re.compile(
    r"(?:^FROM(?:\s++--\S++)?|\bimage['\"]?\s*[:=])\s*['\"]?([\w./-]+(?::\d+/[\w./-]+)?)(?::([\w.-]+))?(?=['\"\s]|\Z)"
)
_ACTION = re.compile(r"\buses:\s*['\"]?([\w./-]+)@([\w./-]+)")
_MOVING = re.compile(
    r"(?:\*|x|\+|latest\S*|any|LATEST|RELEASE|main|master|HEAD|develop|trunk|next|nightly|stable|edge|dev-\S+|lts\S*|node|system|"
    r"[\[(]\s?0?[\d.]*\s?,\s?[\])]|\S*SNAPSHOT|)\Z"
)
_ASKS = re.compile(
    r"unpin|loosen|relax|\branges?\b|latest|newest|any version|at least|compatible|"
    r"\bor (?:later|newer|above)\b|float|minimum|lower bound|"
    r"\bmain\b|\bmaster\b",
    re.IGNORECASE,
)
_RANKS = globs.Table((glob, rank) for names, rank in _BARE for glob in names.split("|"))
_MOST = 2_000


def loosened(path: str, before: str, after: str, prompt: str) -> Iterator[str]:
    """Of each dependency that was tied to one version, or to compatible ones, and is no longer: one phrase.

    Nothing where the request asks for that, or names the new demand itself.
    """
    bare = _bare_of(path)
    if bare is None:
        return
    gone, new = lost_lines(before, after)[:_MOST], added_lines(before, after)[:_MOST]
    old, now = _ranks(path, gone, bare), _ranks(path, new, bare)
    for name, (rank, spec) in old.items():
        if name not in now:
            continue
        worse, other = now[name]
        if worse < rank and (rank == EXACT or worse == ANY) and not _asked(prompt, other):
            shown = f"from '{quote(spec, 40)}' to '{quote(other, 40)}'" if other else f"(it was '{quote(spec, 40)}')"
            yield f"{quote(name.split(' #')[0], 60)} is no longer pinned {shown}"


def _asked(prompt: str, spec: str) -> bool:
    return _ASKS.search(prompt) is not None or (len(spec) > 1 and re.search(r"[<>^~*]", spec) is not None and spec in prompt)


def _bare_of(path: str) -> int | None:
    return _RANKS.find(posixpath.basename(path))


def _ranks(path: str, lines: list[str], bare: int) -> Mapping[str, tuple[int, str]]:
    """Name to rank and demand; what has no name on its line is numbered, and the same number stands for the same."""
    found: dict[str, tuple[int, str]] = {}
    counts: dict[str, int] = {}
    for line in (line[:500] for line in lines if not line.lstrip().startswith(("#", "//"))):
        for name, spec in _entries(path, line):
            if not name.startswith(" "):
                found.setdefault(name.lower(), (_rank(spec, bare), spec))
                continue
            counts[name] = counts.get(name, 0) + 1
            found[f"{name.strip() or 'the version'} #{counts[name]}"] = (_rank(spec, bare), spec)
    return found


def _entries(path: str, line: str) -> Iterator[tuple[str, str]]:
    """Of one line; a name that begins with a blank is no name of a dependency."""
    action, image = _ACTION.search(line), _IMAGE.search(line)
    if action is not None:
        yield action[1], action[2] if not re.fullmatch(r"[0-9a-f]{40}", action[2]) else "=0"
        return
    if image is not None:
        yield image[1], image[2] or ""
        return
    installs = _INSTALLS.search(line)
    if installs is not None:
        for match in list(_INSTALLED.finditer(line, installs.end()))[:50]:
            yield (
                match[1],
                match[3] or match[4] or "" if match[2] not in {"~=", ">=", ">", "~>", "<="} else f"{match[2]}{match[3]}",
            )
        return
    if _is_script(path):
        return
    for pattern in _ENTRIES:
        entry = pattern.search(line)
        if entry is not None:
            yield entry[1], (entry[2] or "").strip()
            return
    nameless = _NAMELESS.search(line)
    if nameless is not None:
        groups = nameless.groups()
        kind, spec = next((groups[i], groups[i + 1]) for i in range(0, len(groups), 2) if groups[i] is not None)
        yield f" {'version' if kind in _KINDS else kind}", spec or ""


_KINDS = frozenset({"exact", "from", "branch", "tag", "revision"})
"""Of a Swift package, each may stand for another."""


def _is_script(path: str) -> bool:
    """Where only lines that install something say versions."""
    name = posixpath.basename(path)
    return any(globs.matches(glob, name) for glob in _BARE[-1][0].split("|")) and not any(
        globs.matches(glob, name) for names, _ in _BARE[:-1] for glob in names.split("|")
    )


def _rank(spec: str, bare: int) -> int:
    text = spec.strip()
    if _MOVING.match(text):
        return ANY
    if re.search(r"\|\||<|>(?!=?\s?$)|!=", text) and not text.startswith("~>"):
        return ANY if re.fullmatch(r">=?\s?0[.0]*", text) else FROM
    if text[:1] in "[(":
        return EXACT if re.fullmatch(r"\[[\w.]+\]", text) else FROM
    if text.startswith(("^", "~")) or re.search(r"[*+]|\.x\b", text):
        return NEAR
    return EXACT if text.startswith("=") else bare
