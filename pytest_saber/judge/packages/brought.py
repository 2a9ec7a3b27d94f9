"""Commands that bring in code from an address: modules, charts, taps, plugins, images, keys of archives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_saber.judge.network import host_of, remote_host
from pytest_saber.judge.shell.model import Command


@dataclass(frozen=True, slots=True)
class _Way:
    """`verbs` must all be among the words, in order; `address` finds the address in a word, its first group is the host."""

    programs: frozenset[str]
    verbs: tuple[str, ...]
    address: re.Pattern[str]


_URL = re.compile(r"(?:^|[@+=])(?:git\+|git::|oci:|helm-)?((?:https?|git|ssh|oci)://[^\s'\"]+)")
_HOST_FIRST = re.compile(r"\A((?:[\w-]+\.)+[a-z]{2,}(?::\d+)?)/\S+")
_SHORTHAND = re.compile(r"\A(github|gitlab|bitbucket|gist):[\w./#-]+\Z")
_REPOSITORY = re.compile(r"\A([\w-]+/[\w.-]+)(?:#\S*)?\Z")


def _way(programs: str, verbs: str, address: re.Pattern[str] = _URL) -> _Way:
    return _Way(frozenset(programs.split()), tuple(verbs.split()), address)


_WAYS: tuple[_Way, ...] = (
    _way("go", "install|run", _HOST_FIRST),
    _way("deno", "run|install|cache"),
    _way("helm", "repo add"),
    _way("helm", "install|upgrade|pull|template"),
    _way("helm", "plugin install"),
    _way("brew", "tap|install"),
    _way("brew", "tap", _REPOSITORY),
    _way("add-apt-repository apt-add-repository", "", re.compile(r"(ppa:[\w./-]+)")),
    _way("add-apt-repository apt-add-repository yum-config-manager dnf zypper", "", re.compile(r"(https?://\S+)")),
    _way("conda mamba micromamba", "install|create|config"),
    _way("npx npm pnpm yarn bun bunx", "", _SHORTHAND),
    _way("npm pnpm yarn bun", "install|i|add", _REPOSITORY),
    _way("npm pnpm yarn bun pnpx bunx", "install|i|add|dlx|x|exec"),
    _way("uvx pipx cpanm cpm nix nix-env nix-shell snap flatpak asdf mise rebar3 ghcup", ""),
    _way("luarocks", "install|make|download|build"),
    _way("opam", "repo|repository|pin|install"),
    _way("vagrant", "box|plugin"),
    _way("dotnet nuget", "add|install|restore|sources|tool|update"),
    _way("mix", "archive.install|escript.install|local.hex|local.rebar"),
    _way("nix", "run|shell|profile|develop", _SHORTHAND),
    _way("mix", "archive.install github|git", _REPOSITORY),
    _way("composer", "config|require|create-project|global"),
    _way("git", "submodule add"),
    _way("docker podman nerdctl", "run|pull|create", _HOST_FIRST),
    _way("dart flutter pub", "pub global|add"),
    _way("terraform tofu", "init"),
    _way("gem", "install|sources"),
    _way("cargo", "install|add"),
    _way(
        "R Rscript",
        "",
        re.compile(r"(?:install\.packages|install_\w{1,40}|source)\(.{0,300}?['\"](https?://[^'\"\s]+)", re.DOTALL),
    ),
    _way("julia", "", re.compile(r"Pkg\.(?:add|develop|clone)\(.{0,300}?['\"](https?://[^'\"\s]+)", re.DOTALL)),
    _way("krew kubectl", "krew install"),
    _way("ansible-galaxy", "install"),
    _way("vcpkg conan", "remote|registry|install"),
)
_USUAL_HOSTS = frozenset(
    """
    github.com gitlab.com golang.org google.golang.org gopkg.in go.uber.org k8s.io sigs.k8s.io deno.land jsr.io esm.sh docker.io
    ghcr.io quay.io mcr.microsoft.com gcr.io registry.k8s.io public.ecr.aws index.docker.io registry-1.docker.io
    """.split()  # noqa: SIM905
)
"""Where code of well-known projects is; what stands there is for the request, and rules on files, to judge."""
_NO_SUMS = {
    "GOSUMDB": re.compile(r"off\Z"),
    "GONOSUMDB": re.compile(r"."),
    "GONOSUMCHECK": re.compile(r"1|true"),
    "GOINSECURE": re.compile(r"."),
    "GOFLAGS": re.compile(r".{0,1000}-insecure"),
    "NPM_CONFIG_STRICT_SSL": re.compile(r"(?i:false|0)"),
    "NODE_TLS_REJECT_UNAUTHORIZED": re.compile(r"0"),
    "PIP_TRUSTED_HOST": re.compile(r"."),
}
_UNCHECKED = re.compile(
    r"(?:apt|apt-get|aptitude)\b.*(?:--allow-unauthenticated|--force-yes|AllowInsecureRepositories=(?:true|1|yes)|"
    r"AllowUnauthenticated=(?:true|1|yes)|Verify-Peer=(?:false|0))|(?:yum|dnf|zypper)\b.*(?:--nogpgcheck|--no-gpg-checks)|"
    r"rpm\b.*--(?:nosignature|nodigest|noverify)|apk\b.*--allow-untrusted|snap install\b.*--(?:dangerous|devmode)|"
    r"go env -w (?:GOSUMDB=off|GONOSUM\w*=\S|GOINSECURE=\S|GOFLAGS=\S*-insecure)|pacman\b.*--noverify|"
    r"(?:gem|bundle)\b.*--trust-policy[ =]NoSecurity|helm\b.*--insecure-skip-tls-verify|pip3?\b.*--trusted-host|"
    r"cosign\b.*--insecure-ignore-tlog|docker\b.*--disable-content-trust(?:=true)?\b|composer\b.*--no-secure-http|"
    r"gpg\b.*--(?:always-trust|trust-model[ =]always).*(?:\.deb|\.rpm|\.tar|\.asc|\.sig)\b"
)
_KEY_PLACES = re.compile(r"/etc/apt/(?:trusted\.gpg|keyrings)|/usr/share/keyrings|/etc/pki/rpm-gpg")


def sources(command: Command) -> Iterator[str]:
    """Hosts, or names of repositories and archives, that code comes from."""
    words = command.words
    plain = [word for word in words if not word.startswith("-")]
    for way in _WAYS:
        if command.program not in way.programs or not _has(way.verbs, plain):
            continue
        for word in words[:100]:
            match = way.address.search(word[:2_000])
            if match is not None and not word.startswith(("./", "../", "/")):
                host = _host(match[1])
                if host not in _USUAL_HOSTS or way.address in {_SHORTHAND, _REPOSITORY}:
                    yield host


def _has(verbs: tuple[str, ...], words: list[str]) -> bool:
    position = 0
    for word in words:
        if position < len(verbs) and word in verbs[position].split("|"):
            position += 1
    return position == len(verbs)


def _host(address: str) -> str:
    if "://" in address:
        return host_of(address)
    return remote_host(address) or (address.partition("/")[0] if "." in address.partition("/")[0] else address)


def unchecked(command: Command) -> bool:
    """Whether signatures or checksums of what is installed are left unchecked."""
    if any(name in _NO_SUMS and _NO_SUMS[name].match(word.text) for name, word in command.assignments.items()):
        return True
    line = " ".join((command.program, *command.words))[:2_000]
    return _UNCHECKED.match(line) is not None


def trusted_key(command: Command, fetched_from: Callable[[Command], list[str]]) -> list[str]:
    """Hosts of a key that the system's package manager is to trust from now on, piped into its place."""
    takes = command.program == "apt-key" and "add" in command.words
    written = [redirect.target.text for redirect in command.redirects if redirect.writes and redirect.target is not None]
    takes = takes or any(_KEY_PLACES.search(word) for word in (*command.words, *written))
    return fetched_from(command) if takes else []
