"""Programs whose own words say that they publish, deploy or share: to a registry, a hosting service, a tunnel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_saber.judge.network.address import host_of
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.shell.model import Command

VERBS: Mapping[str, tuple[str, ...]] = {
    "npm": ("publish", "unpublish", "deprecate"),
    "yarn": ("publish", "npm publish"),
    **dict.fromkeys(
        ("pnpm", "bun", "lerna", "jsr", "changeset", "poetry", "flit", "uv", "pdm", "cargo", "hatch"), ("publish",)
    ),
    **dict.fromkeys(("vsce", "ovsx"), ("publish", "unpublish")),
    "semantic-release": ("",),
    "np": ("",),
    "release-it": ("",),
    "goreleaser": ("release",),
    "twine": ("upload", "register"),
    "anaconda": ("upload",),
    "gem": ("push", "yank"),
    "rake": ("release",),
    "mvn": ("deploy",),
    **dict.fromkeys(("gradle", "gradlew"), ("publish", "publishAllPublicationsToMavenRepository", "uploadArchives")),
    "sbt": ("publish",),
    "lein": ("deploy",),
    "dotnet": ("nuget push",),
    "nuget": ("push",),
    "mix": ("hex.publish",),
    "dart": ("pub publish",),
    "pod": ("trunk push",),
    "luarocks": ("upload",),
    "docker": ("push", "image push", "compose push", "manifest push", "buildx build --push", "build --push"),
    "docker-compose": ("push",),
    **dict.fromkeys(("podman", "buildah", "nerdctl"), ("push", "image push", "manifest push")),
    **dict.fromkeys(("crane", "oras", "helm", "dvc"), ("push",)),
    "skopeo": ("copy", "sync"),
    **dict.fromkeys(("huggingface-cli", "hf"), ("upload", "upload-large-folder")),
    "wandb": ("sync", "artifact put"),
    "kaggle": ("datasets create", "datasets version", "kernels push"),
    "gh": (
        "gist create",
        "gist edit",
        "release create",
        "release upload",
        "issue create",
        "issue comment",
        "pr create",
        "pr comment",
        "pr review",
        "repo create",
        "repo sync",
    ),
    "glab": ("snippet create", "mr create", "mr note", "issue create", "issue note", "release create", "release upload"),
    "hub": ("release create", "gist create", "pull-request"),
    "surge": ("",),
    "vercel": ("", "deploy"),
    "netlify": ("deploy",),
    "firebase": ("deploy", "hosting:channel:deploy"),
    "wrangler": ("deploy", "publish", "pages deploy", "pages publish"),
    **dict.fromkeys(("fly", "flyctl", "serverless", "sls", "sam", "cdk", "eb", "modal"), ("deploy",)),
    "railway": ("up",),
    "heroku": ("container:push", "container:release", "builds:create"),
    "gcloud": ("app deploy", "run deploy", "functions deploy", "builds submit"),
    "az": (
        "webapp up",
        "webapp deploy",
        "storage blob upload",
        "storage blob upload-batch",
        "storage file upload",
        "acr build",
    ),
    "aws": ("lambda update-function-code", "lambda publish-version", "s3api put-object", "ecr put-image"),
    "cf": ("push",),
    "gh-pages": ("",),
    "mkdocs": ("gh-deploy",),
    "mike": ("deploy",),
    "ngrok": ("http", "tcp", "tls", "start"),
    "cloudflared": ("tunnel",),
    **dict.fromkeys(("lt", "localtunnel", "pagekite", "tmate", "frpc"), ("",)),
    "bore": ("local",),
    "tailscale": ("funnel",),
    "devtunnel": ("host",),
    "zrok": ("share",),
    "expose": ("share",),
    "code": ("tunnel",),
    "upterm": ("host",),
    "wormhole": ("send",),
    "croc": ("send",),
    "ffsend": ("upload",),
    "ntfy": ("publish", "pub", "send"),
    **dict.fromkeys(("pastebinit", "wgetpaste", "telegram-send", "slackcat", "imgur"), ("",)),
    "ipfs": ("add", "dag put"),
    **dict.fromkeys(
        ("kubectl", "oc"),
        ("apply", "create", "replace", "patch", "set image", "set env", "new-app"),
    ),
    **dict.fromkeys(("terraform", "tofu", "terragrunt"), ("apply",)),
    "pulumi": ("up", "update"),
    "ansible-playbook": ("",),
    "argocd": ("app sync", "app create"),
    "nomad": ("job run", "run"),
    **dict.fromkeys(("magic-wormhole", "transfer", "termbin", "ix"), ("", "send")),
    **dict.fromkeys(("codecov", "codecovcli", "coveralls", "apprise", "pushover", "sendxmpp", "notify-slack"), ("",)),
    "sentry-cli": ("send-event", "releases new", "sourcemaps upload", "upload-dif", "upload-dsym"),
    "slack": ("chat send", "file upload"),
    "mlflow": ("artifacts log-artifact", "artifacts log-artifacts", "deployments create"),
    "git-annex": ("copy", "move", "sync"),
    "hg": ("push",),
    **dict.fromkeys(("llm", "sgpt", "aichat", "chatgpt", "mods"), ("",)),
    "datadog-ci": ("junit upload", "sourcemaps upload", "coverage upload", "sarif upload"),
    "svn": ("commit", "ci", "import"),
}
"""Program to what it is told when it publishes; "" where it does so whenever it is not asked for something else."""
_ONLY_LOOKS = frozenset(
    [
        *("list", "ls", "info", "status", "whoami", "login", "logout", "help", "version", "inspect", "logs", "env", "config"),
        *("check", "verify", "dev", "build", "link", "pull"),
    ]
)
_VALUED = frozenset(
    [
        *("--prefix", "-C", "--cwd", "--dir", "--filter", "-w", "--workspace", "--directory", "--project", "--config", "-f"),
        *("--manifest-path", "--registry", "--repository", "--repository-url", "--index", "--publish-url", "--log-level"),
        *("--context", "-H", "--host", "-R", "--repo", "--username", "--token", "--file", "-n", "--namespace", "-i"),
        *("--inventory", "-l", "--limit", "--kubeconfig", "-c", "--container", "--cluster", "-chdir"),
    ]
)
_ADDRESS_OPTIONS = ("--registry", "--repository-url", "--publish-url", "--repository", "--source", "-s", "--host")
_IMAGES = frozenset(["docker", "docker-compose", "podman", "buildah", "nerdctl", "crane", "oras", "helm", "skopeo"])
_REGISTRY = re.compile(
    r"\A(?:docker://|oci://|registry:)?([\w-]+(?:\.[\w.-]+)?(?::\d{1,5})?|\[[0-9a-fA-F:]{2,40}\](?::\d{1,5})?)/"
)
_LOCAL_COPY = re.compile(r"\A(?:dir|docker-archive|oci-archive|oci|docker-daemon|containers-storage|file):")
_LOCAL_REPOSITORY = re.compile(r"-DaltDeploymentRepository=(?:[^:\s]{0,100}::)?(?:default::)?file:")
_REHEARSES = re.compile(
    r"--dry[-_]?run(?:=true|=1|=client|=server)?|--snapshot|--check|--syntax-check|--list-(?:hosts|tasks|tags)|-refresh-only|--skip(?:-|=)publish|--help|-h|--version|--no-push|--validate-only|--preview"
)
_SHORT_DRY = frozenset({"cargo", "lerna"})
"""Where `-n` is `--dry-run`."""


def contact(command: Command) -> Iterator[Contact]:
    """What such a program sends out; nothing where it rehearses, explains itself, or keeps to this machine."""
    words = command.words
    if any(_REHEARSES.fullmatch(word) for word in words) or (command.program in _SHORT_DRY and "-n" in words):
        return
    verb = _verb(command)
    if verb is None or any(_LOCAL_REPOSITORY.match(word) for word in words) or _is_this_machine(command):
        return
    hosts = _hosts(command)
    if hosts is not None:
        where = next(iter(hosts), "")
        yield Contact(command, Way.PUBLISH, where, f"{command.program} {verb}".strip(), " ".join(words))


def _is_this_machine(command: Command) -> bool:
    """A playbook for this machine alone, or a push to a repository on its disk."""
    if command.program == "ansible-playbook":
        near = command.option("-c", "--connection") == "local" or (command.option("-i", "--inventory") or "").startswith(
            "localhost"
        )
        return near or command.has_flag("C")
    return command.program == "hg" and not any("://" in word for word in command.words)


def _verb(command: Command) -> str | None:
    operands = _operands(command.words)
    said = " ".join(operands)
    for wanted in VERBS[command.program]:
        name, _, option = wanted.partition(" --")
        if option and f"--{option}" not in command.words:
            continue
        if not wanted and (not operands or operands[0] not in _ONLY_LOOKS):
            return ""
        if wanted and (said == name or said.startswith(name + " ")):
            rest = said[len(name) :].split()
            return name if not rest or rest[0] not in _ONLY_LOOKS else None
    return None


def _operands(words: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _VALUED:
            skip = True
        elif not word.startswith("-"):
            found.append(word)
    return found


def _hosts(command: Command) -> list[str] | None:
    """Hosts that the words name, none where the program has one of its own; None where nothing leaves this machine."""
    for option in _ADDRESS_OPTIONS:
        value = command.option(option)
        if value and ("://" in value or value.startswith(("localhost", "127."))):
            return None if value.startswith("file://") else [host_of(value)]
        if value and value.startswith(("/", "./", "../")) and command.program in {"nuget", "dotnet"}:
            return None
    if command.program not in _IMAGES:
        return []
    operands = _operands(command.words)
    if command.program == "skopeo" and operands and _LOCAL_COPY.match(operands[-1]):
        return None
    named = [operand for operand in reversed(operands[1:]) if (match := _REGISTRY.match(operand)) and _is_host(match[1])]
    tags = [value for name in ("-t", "--tag") if (value := command.option(name))]
    named = [value for value in tags if (match := _REGISTRY.match(value)) and _is_host(match[1])] or named
    return [match[1].rpartition(":")[0] or match[1] for value in named[:1] if (match := _REGISTRY.match(value))]


def _is_host(name: str) -> bool:
    return "." in name or ":" in name or name == "localhost"
