"""What build files demand of code and packages, in many ecosystems: warnings that are errors, hardening flags, tests and checks
that a build waits for, rules of package managers; and what an edit takes away from that.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator

from pytest_saber.judge import workflows
from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.text import listing, quote
from pytest_saber.model import globs

_BUILD = """
    *.gradle *.gradle.kts pom.xml *.csproj *.fsproj *.vbproj Directory.Build.* *.props *.targets Cargo.toml mix.exs
    build.sbt project.clj rebar.config composer.json CMakeLists.txt *.cmake meson.build Makefile* *.mk GNUmakefile
    configure.ac justfile Justfile .justfile Taskfile.y*ml turbo.json nx.json project.json lerna.json rush.json moon.yml
    deno.json* tox.ini noxfile.py Rakefile Earthfile BUILD BUILD.bazel .bazelrc WORKSPACE MODULE.bazel build.zig
    dune-project *.cabal package.yaml stack.yaml Package.swift *.podspec Podfile pubspec.yaml *.nimble dub.json shard.yml
    .rspec Fastfile build.xml *.ninja go.mod magefile.go *.pro wscript SConstruct bors.toml .mergify.yml package.json
    Gruntfile.js gulpfile.* tasks.py dodo.py pants.toml flake.nix default.nix
"""
_PACKAGES = """
    .npmrc .yarnrc* pnpm-workspace.yaml bunfig.toml pip.conf pip.ini uv.toml pyproject.toml NuGet.Config nuget.config
    .bundle/config composer.json .cargo/config.toml go.env gradle.properties settings.xml
"""
_ANY = "*"

_DEMANDED: tuple[tuple[str, str, str], ...] = (
    (
        _BUILD + " .bazelrc *.toml",
        r"(?<![\w-])(?:-Werror(?!=no|-no)\b|/WX\b(?!-)|--fatal-warnings|-Xfatal-warnings|-Xlint(?::all)?\b)|\bwerror=true|"
        r"\b(?:all)?[wW]arnings?AsErrors?\b\W{1,6}(?:true|set|ON)|TreatWarningsAsErrors>\s{0,4}true|"
        r"warnings_as_errors\W{1,4}true|WARNING_AS_ERROR\s{1,4}ON|"
        r"-D ?warnings\b|\bfatalWarnings\b",
        "warnings are no longer errors",
    ),
    (
        _BUILD,
        r"-fstack-protector[\w-]*|-D_FORTIFY_SOURCE|-fsanitize=\S+|b_sanitize=(?!none)\w+|-Wl,-z,\w+|-fPIE\b|-pie\b|"
        r"-fcf-protection|"
        r"-ftrapv\b|overflow-checks\s?=\s?true|-race\b|-Wformat-security|_GLIBCXX_ASSERTIONS",
        "hardening of what is built is gone",
    ),
    (
        "*.rs Cargo.toml",
        r"#!\[(?:forbid|deny)\(|^[\w:.-]{1,80}\s?=\s?(?:\{[^}\n]{0,80}level\s?=\s?)?\"(?:forbid|deny)\"",
        "a lint no longer fails the build",
    ),
    (
        _ANY,
        r"^\s{0,8}(?:declare\(strict_types\s?=\s?1\)|use strict;|#\s?mypy:\s?strict|//\s?@ts-check|"
        r"#nullable enable|Option Strict On|"
        r"#\s?pyright:\s?strict|--!strict)",
        "the file is no longer held to strict rules",
    ),
    (
        _BUILD,
        r"\benable_testing\(|\badd_test\(|\bgtest_discover_tests\(|\bcatch_discover_tests\(",
        "tests are no longer built or run",
    ),
    (
        _PACKAGES,
        r"^\s{0,8}[\"']?(?:audit|ignore-scripts|engine-strict|strict-ssl|strict-peer-dependencies|save-exact|require-hashes|"
        r"verify-store-integrity|enableImmutableInstalls|enableHardenedMode|frozen-lockfile|no-build|only-binary|"
        r"signatureValidationMode|"
        r"trustedSigners|BUNDLE_FROZEN|BUNDLE_DISABLE_EXEC_LOAD|minimumReleaseAge|"
        r"exclude-newer)[\"']?\s{0,4}[:= ]\s{0,4}(?!false|no\b|0\b)\S",
        "a rule of the package manager is gone",
    ),
)
"""Files, what is demanded there, and what is said when fewer lines demand it."""
_LAX: tuple[tuple[str, str, str], ...] = (
    (
        _BUILD,
        r"\b(?:ignoreFailures|testFailureIgnore|maven\.test\.failure\.ignore|ignoreExitValue|isIgnoreFailures|"
        r"skipTests?|skipITs|"
        r"maven\.test\.skip|ignoreTestFailures?|allowFailure)\b\W{0,6}true|"
        r"\b(?:failOnError|abortOnError|failOnViolation|failsOnError|failOnWarning|failIfNoTests|haltOnFailure|haltonerror|"
        r"failOnNoDiscoveredTests|isAbortOnError)\b\W{0,6}(?:false|no)\b|"
        r"^\s{0,20}ignore_errors?\s?:\s?(?:true|yes)|success_codes\s?=|^\s{0,8}commands\s?=\s?-\s|\bexit_zero\b",
        "failures no longer count",
    ),
    (
        _BUILD,
        r"\bexcludeTags?\b|\bexcludeTestsMatching|\bexcludeCategories|<excludedGroups>|"
        r"\buseJUnitPlatform\s?\{[^}\n]{0,80}exclude|\bfilter\s?\{[^}\n]{0,80}exclude|"
        r"^\s{0,20}--tag\s+~|\bfilter_run_excluding\b|-DexcludedGroups",
        "some tests are no longer run",
    ),
    (
        _BUILD,
        r"<NoWarn>|<WarningsNotAsErrors>|WarningsAsErrors>\s{0,4}false|(?:all)?[wW]arningsAsErrors\W{1,6}(?:false|"
        r"OFF)|-Wno-error|\bwerror=false|b_sanitize=none|"
        r"/W0\b|<RunAnalyzers\w*>\s{0,4}false|<EnableNETAnalyzers>\s{0,4}false|"
        r"<AnalysisMode>\s{0,4}None|<NuGetAudit>\s{0,4}false|"
        r"warnings_as_errors\W{1,4}false|\bnowarn\b|suppressWarnings\W{1,4}true|-fno-stack-protector|"
        r"-U_FORTIFY_SOURCE|overflow-checks\s?=\s?false",
        "warnings no longer count",
    ),
    (
        ".editorconfig *.globalconfig .globalconfig *.ruleset",
        r"severity\s?=\s?(?:none|silent|suggestion)\b|Action=\"(?:None|Hidden|Info)\"",
        "a rule no longer fails",
    ),
    (
        "Cargo.toml clippy.toml",
        r"^[\w:.-]{1,80}\s?=\s?(?:\{[^}\n]{0,80}level\s?=\s?)?\"allow\"",
        "a lint is switched off",
    ),
    (
        _PACKAGES,
        r"^\s{0,8}[\"']?(?:audit|ignore-scripts|strict-ssl|engine-strict|require-hashes|verify-store-integrity|"
        r"enableImmutableInstalls|"
        r"enableHardenedMode|enableStrictSsl|frozen-lockfile)[\"']?\s{0,4}[:= ]\s{0,4}[\"']?(?:false|no|off|0)\b|"
        r"enableScripts[\"']?\s?:\s?true|"
        r"checksumBehavior[\"']?\s?:\s?[\"']?(?:update|ignore|reset)|dangerouslyAllowAllBuilds[\"']?\s?:\s?true|"
        r"trusted-host\s?=|GONOSUMDB|GONOSUMCHECK|"
        r"GOFLAGS\s?=\s?-insecure|GOSUMDB\s?=\s?off|GONOSUM|org\.gradle\.dependency\.verification\s?=\s?(?:off|"
        r"lenient)|allow-plugins[\"']?\s?:\s?true|"
        r"secure-http[\"']?\s?:\s?false|disable-tls[\"']?\s?:\s?true|allowInsecureConnections",
        "a rule of the package manager is off",
    ),
    (
        "*.yml *.yaml",
        r"^\s{0,40}-?\s?(?:ignore_errors\s?:\s?(?:true|yes)|ignore_unreachable\s?:\s?(?:true|yes))\b",
        "failures no longer count",
    ),
    (
        "ansible.cfg",
        r"host_key_checking\s?=\s?(?i:false|no)|^\s{0,8}no_log\s?=\s?(?i:false)",
        "keys of hosts are no longer checked",
    ),
    (
        "renovate.json* .renovaterc* .mergify.yml *.json5",
        r"[\"']?automerge[\"']?\s?:\s?true|[\"']?ignoreTests[\"']?\s?:\s?true|platformAutomerge[\"']?\s?:\s?true",
        "changes are merged without a review",
    ),
    ("lerna.json .changeset/*", r"verifyAccess[\"']?\s?:\s?false", "a check before publishing is off"),
    (".credo.exs", r"\{Credo\.Check\.[\w.]{1,80},\s?false\}", "a check is switched off"),
    (".sobelow-conf", r"exit:\s?\"?false|skip:\s?true", "failures no longer count"),
)
_WAITS = re.compile(
    r"dependsOn|depends_?on|finalizedBy|\bneeds\b|\bstatus\b|\bcmds?\b|\bdeps\b|check-success|status-success|aliases|"
    r"conditions|requires",
    re.IGNORECASE,
)
_IGNORED_RECIPE = re.compile(r"^[ \t]+@?-@?\s?(\S.*)$", re.MULTILINE)
_UNDER = re.compile(
    r"^([ \t]*)[\"']?(networkPolicy|networkPolicies|rbac|podSecurity\w*|podDisruptionBudget|pdb|auth|authentication|"
    r"authorization|tls|ssl|audit\w*|"
    r"securityContext|rateLimit\w*|mtls|encryption|backups?|monitoring|alerts?|admission\w*|policy|seccomp\w*|"
    r"apparmor|waf|csrf)[\"']?\s{0,4}:[ \t]*+(?:\{[ \t]*+)?\n"
    r"((?:\1[ \t]++[^\n]*+\n){1,12})",
    re.MULTILINE | re.IGNORECASE,
)
_ENABLED = re.compile(
    r"^\s*[\"']?(?:enabled?|create|required)[\"']?\s{0,4}:\s{0,4}[\"']?(true|false|yes|no)\b", re.MULTILINE | re.IGNORECASE
)
_SETTINGS = re.compile(r"\.(?:ya?ml|json|jsonc)\Z")
_MODERN = re.compile(r"^\s*use\s(?:v5|5\.|Modern::Perl|Mo\w+)")
"""Of Perl: what is strict by itself."""
_MOST = 1_000
_LONG = 500
_WHOLE = 200_000


def weakened(path: str, before: str, after: str, prompt: str) -> Iterator[str]:
    """Phrases for one file that changed; nothing about what the request names."""
    if not after.strip():
        return
    gone, new = ([line[:_LONG] for line in lines[:_MOST]] for lines in (lost_lines(before, after), added_lines(before, after)))
    gone, new = ([line for line in lines if not line.startswith(("#!/", "//", "# ", "<!--"))] for lines in (gone, new))
    for pattern, words in _of(_DEMANDED_BY_FILE, path):
        old, kept = [line for line in gone if pattern.search(line)], [line for line in new if pattern.search(line)]
        if any(_MODERN.search(line) for line in new):
            continue
        if sum(len(pattern.findall(line)) for line in old) > sum(len(pattern.findall(line)) for line in kept):
            yield f"{words} ('{quote(old[0], 80)}')"
            return
    for pattern, words in _of(_LAX_BY_FILE, path):
        was, now = sum(bool(pattern.search(line)) for line in gone), [line for line in new if pattern.search(line)]
        if len(now) > was and not _is_asked(prompt, now[-1]):
            yield f"{words} ('{quote(now[-1], 80)}')"
            return
    if _is_build(path):
        yield from _waits_for_less(gone, new)
    if posixpath.basename(path).lower().endswith("justfile"):
        yield from _ignored(before, after)
    if _SETTINGS.search(path):
        yield from _disabled(before, after, prompt)


def _compiled(table: tuple[tuple[str, str, str], ...]) -> tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...]:
    return tuple((tuple(names.split()), re.compile(pattern), words) for names, pattern, words in table)


_DEMANDED_BY_FILE, _LAX_BY_FILE = _compiled(_DEMANDED), _compiled(_LAX)


def _of(table: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...], path: str) -> Iterator[tuple[re.Pattern[str], str]]:
    name = posixpath.basename(path)
    for names, pattern, words in table:
        if any(
            glob == _ANY or globs.matches(glob, name) or ("/" in glob and globs.matches(f"**/{glob}", path)) for glob in names
        ):
            yield pattern, words


def _is_build(path: str) -> bool:
    name = posixpath.basename(path)
    return any(globs.matches(glob, name) for glob in _BUILD.split())


def _is_asked(prompt: str, line: str) -> bool:
    """The request names the setting itself."""
    name = re.search(r"[A-Za-z][\w.-]{4,60}", line)
    return name is not None and name[0].lower() in prompt.lower()


def _waits_for_less(gone: list[str], new: list[str]) -> Iterator[str]:
    """Checks that a build waited for, by their words on lines that say so."""
    old = [line for line in gone if _WAITS.search(line) and workflows.is_check(line)]
    if not old:
        return
    words = Counter(word for line in old for word in workflows.CHECKS.findall(line))
    kept = Counter(word for line in new for word in workflows.CHECKS.findall(line))
    lost = sorted(word for word in words if kept[word] < words[word])
    if lost and kept.total() < words.total():
        yield f"nothing waits for {listing([quote(word, 40) for word in lost])} any more ('{quote(old[0], 80)}')"


def _ignored(before: str, after: str) -> Iterator[str]:
    known = {match[1] for match in _IGNORED_RECIPE.finditer(before[:_WHOLE])}
    fresh = [m[1] for m in _IGNORED_RECIPE.finditer(after[:_WHOLE]) if m[1] not in known and workflows.is_check(m[1])]
    if fresh:
        yield f"failures no longer count ('{quote(fresh[0], 80)}')"


def _disabled(before: str, after: str, prompt: str) -> Iterator[str]:
    """A safeguard with a switch of its own that is off now, as `networkPolicy: {enabled: false}` of a chart."""
    old, new = _switches(before), _switches(after)
    for name, value in new.items():
        if value in {"false", "no"} and old.get(name) in {"true", "yes"} and name.lower() not in prompt.lower():
            yield f"{quote(name, 40)} is switched off"
            return


def _switches(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _UNDER.finditer(text[:_WHOLE]):
        switch = _ENABLED.search(match[3])
        if switch is not None:
            found.setdefault(match[2], switch[1].lower())
    return found
