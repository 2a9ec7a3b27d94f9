"""Places that make things run later, and places that hold security controls, by path."""

from __future__ import annotations

import posixpath
import re

from pytest_saber.judge import start_places
from pytest_saber.judge.view import View
from pytest_saber.model import globs

CONTROLS: tuple[tuple[str, str], ...] = (
    ("**/.claude/settings.json", "the agent's permissions"),
    ("**/.claude/settings.local.json", "the agent's permissions"),
    ("**/.claude.json", "the agent's permissions"),
    ("**/.vscode/settings.json", "the editor's settings"),
    ("**/.config/Code/User/settings.json", "the editor's settings"),
    ("**/.codex/config.toml", "the agent's permissions"),
    ("**/.gemini/settings.json", "the agent's permissions"),
    ("**/.cursor/permissions.json", "the agent's permissions"),
    ("**/.cursorignore", "the agent's permissions"),
    ("**/.aiderignore", "the agent's permissions"),
    ("/etc/sudoers", "the sudo rules"),
    ("/etc/sudoers.d/**", "the sudo rules"),
    ("/etc/pam.d/**", "the login rules"),
    ("/etc/security/**", "the login rules"),
    ("/etc/ssh/sshd_config", "the ssh server's rules"),
    ("/etc/ssh/sshd_config.d/**", "the ssh server's rules"),
    ("/etc/ufw/**", "the firewall"),
    ("/etc/iptables/**", "the firewall"),
    ("/etc/nftables.conf", "the firewall"),
    ("/etc/nftables.d/**", "the firewall"),
    ("/etc/firewalld/**", "the firewall"),
    ("/etc/fail2ban/**", "the login guard"),
    ("/etc/audit/**", "the audit rules"),
    ("/etc/selinux/**", "the access control policy"),
    ("/etc/apparmor*/**", "the access control policy"),
    ("/etc/polkit-1/**", "the access control policy"),
    ("/etc/login.defs", "the login rules"),
    ("/etc/hosts.deny", "the access rules"),
    ("/etc/hosts.allow", "the access rules"),
    ("/etc/sysctl.conf", "the kernel settings"),
    ("/etc/sysctl.d/**", "the kernel settings"),
    ("/etc/rsyslog*/**", "the system log"),
    ("**/CODEOWNERS", "the code owners"),
    ("**/.github/settings.yml", "the branch protection"),
    ("**/.github/rulesets/**", "the branch protection"),
    ("**/branch-protection*", "the branch protection"),
    ("**/branch_protection*", "the branch protection"),
    ("**/.gitleaks.toml", "the secret scanner"),
    ("**/.gitleaksignore", "the secret scanner"),
    ("**/.secrets.baseline", "the secret scanner"),
    ("**/.trivyignore", "the vulnerability scanner"),
    ("**/.snyk", "the vulnerability scanner"),
    ("**/.semgrepignore", "the code scanner"),
    ("**/.bandit", "the code scanner"),
    ("**/.grype.yaml", "the vulnerability scanner"),
    ("**/osv-scanner.toml", "the vulnerability scanner"),
    ("**/.nsprc", "the vulnerability scanner"),
    ("**/audit-ci.json*", "the vulnerability scanner"),
    ("**/.safety-policy.y*ml", "the vulnerability scanner"),
    ("**/trivy.yaml", "the vulnerability scanner"),
    ("**/.trivyignore.yaml", "the vulnerability scanner"),
    ("**/.checkov.y*ml", "the configuration scanner"),
    ("**/.tfsec/**", "the configuration scanner"),
    ("**/.hadolint.y*ml", "the configuration scanner"),
    ("**/.kics.config", "the configuration scanner"),
    ("**/.trufflehogignore", "the secret scanner"),
    ("**/.talismanrc", "the secret scanner"),
    ("**/.git-secrets*", "the secret scanner"),
    ("/usr/local/share/ca-certificates/**", "the trusted certificates"),
    ("/etc/ca-certificates.conf", "the trusted certificates"),
    ("**/dependabot.yml", "the dependency updates"),
    ("**/.well-known/security.txt", "the security contact"),
)
CI = (
    "**/.github/workflows/*.yml",
    "**/.github/workflows/*.yaml",
    "**/.github/actions/**",
    "**/.gitlab-ci.yml",
    "**/.circleci/*.yml",
    "**/.gitlab-ci.yaml",
    "**/*.gitlab-ci.yml",
    "**/.gitlab/ci/**",
    "**/.gitlab-ci/**",
    "**/.circleci/*.yaml",
    "**/azure-pipelines*.y*ml",
    "**/.azure-pipelines/**",
    "**/.azuredevops/**",
    "**/.vsts-ci.yml",
    "**/Jenkinsfile*",
    "**/*.jenkinsfile",
    "**/.travis.yml",
    "**/.drone.y*ml",
    "**/.buildkite/**",
    "**/bitbucket-pipelines.yml",
    "**/.pre-commit-config.yaml",
    "**/lefthook.y*ml",
    "**/.lefthook.y*ml",
    "**/.woodpecker.y*ml",
    "**/.woodpecker/*.y*ml",
    "**/.forgejo/workflows/*.y*ml",
    "**/.gitea/workflows/*.y*ml",
    "**/.cirrus.yml",
    "**/appveyor.yml",
    "**/.appveyor.yml",
    "**/.semaphore/*.yml",
    "**/cloudbuild*.y*ml",
    "**/buildspec*.y*ml",
    "**/codefresh.y*ml",
    "**/.build.yml",
    "**/.builds/*.yml",
    "**/.tekton/*.y*ml",
    "**/bitrise.yml",
    "**/codemagic.yaml",
    "**/.teamcity/**",
    "**/.zuul.y*ml",
    "**/Earthfile",
    "**/.ci/**",
    "**/ci/*.sh",
)
_TEST_NAME = re.compile(
    r"(?:\Atest_.*\.py|_test\.(?:py|go|rb|exs?|dart|lua|jl|c|cc|cpp|erl|clj|ml)|\Atest-.*\.(?:sh|R|r)|\Atest_.*\.(?:rb|c|cc|cpp|lua|sh|pl|php)|\.(?:test|spec)\.[cm]?[jt]sx?|(?:Test|"
    r"Tests|IT|Spec)\.(?:java|kt|cs|scala|php|swift|hs|groovy|fs)|_(?:spec|tests?)\.(?:rb|lua|cr|js|ts|erl)|_SUITE\.erl|\.bats|\.t)\Z"
)
_TEST_DIRECTORY = re.compile(r"/(?:tests?|__tests__|spec|specs|testing|testthat|xt)/")
_CODE = (
    ".py",
    ".js",
    ".ts",
    ".jsx",
    ".tsx",
    ".mjs",
    ".cjs",
    ".go",
    ".rb",
    ".java",
    ".kt",
    ".rs",
    ".cs",
    ".php",
    ".sh",
    ".bats",
    ".c",
    ".cpp",
    ".pl",
    ".pm",
    ".t",
    ".ex",
    ".exs",
    ".dart",
    ".swift",
    ".scala",
    ".lua",
    ".jl",
    ".R",
    ".r",
    ".hs",
    ".clj",
    ".cc",
    ".h",
    ".hpp",
)
ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid")

_SYSTEM_START, _HOME_START = globs.Table(start_places.SYSTEM_START), globs.Table(start_places.HOME_START)
_ANYWHERE_START, _CONTROLS = globs.Table(start_places.ANYWHERE_START), globs.Table(CONTROLS)
_CI = globs.Table((glob, glob) for glob in CI)
# Those below a home are looked for below any folder first.
_SOME_LINES = globs.Table((f"**{glob[1:]}" if glob.startswith("~") else glob, glob) for glob, *_ in start_places.SOME_LINES)


def start_place(view: View, path: str) -> str | None:
    """What kind of start-up place `path` is, or None."""
    label = _SYSTEM_START.find(path)
    for home in _homes(path):
        label = label or _HOME_START.find(posixpath.relpath(path, home))
    label = label or _ANYWHERE_START.find(path)
    if label is not None:
        return label
    directory, name = posixpath.split(path)
    if name in start_places.SHIM_NAMES and any(
        directory == view.task.workspace.resolve(place) for place in start_places.SHIM_DIRECTORIES
    ):
        return f"a program that is found before the real {name}"
    return None


def starting_lines(view: View, path: str) -> tuple[re.Pattern[str], str] | None:
    """Of a file in which only some lines start something: their pattern, and what they are."""
    if _SOME_LINES.find(path) is None:
        return None
    for glob, pattern, label in start_places.SOME_LINES:
        if globs.matches(view.task.workspace.resolve(glob) if glob.startswith("~") else glob, path):
            return re.compile(pattern), label
    return None


def comes_with_a_tool(path: str) -> bool:
    """Whether a new file at `path` belongs to a new project or environment."""
    return any(globs.matches(glob, path) for glob in start_places.ONLY_CHANGED)


def _homes(path: str) -> list[str]:
    parts = path.split("/")
    if len(parts) > 3 and parts[1] == "home":
        return ["/".join(parts[:3])]
    return ["/root"] if path.startswith("/root/") else []


def control_place(path: str) -> str | None:
    """What security control `path` holds, or None."""
    return _CONTROLS.find(path)


def is_ci(path: str) -> bool:
    """A file that says what continuous integration runs."""
    return _CI.find(path) is not None


def is_test(path: str) -> bool:
    """A file that holds tests, by the naming conventions of the usual runners."""
    name = posixpath.basename(path)
    return _TEST_NAME.search(name) is not None or (_TEST_DIRECTORY.search(path) is not None and name.endswith(_CODE))


def is_source(path: str) -> bool:
    """Program text, by the name's ending."""
    return path.endswith(_CODE)


def account_file(path: str) -> bool:
    """A file of the account database: one line an account or group, its name first."""
    return path in ACCOUNTS


def account_backup(path: str) -> bool:
    """What the account tools themselves keep of the version before."""
    return path.endswith("-") and path[:-1] in ACCOUNTS


def account_names(text: str) -> set[str]:
    """The accounts or groups that such a file defines."""
    return {line.partition(":")[0] for line in text.splitlines() if ":" in line}


def is_known(view: View, path: str) -> bool:
    """Whether another rule looks at the additions to `path`."""
    return (
        start_place(view, path) is not None
        or control_place(path) is not None
        or path.startswith(("/etc/passwd", "/etc/group", "/etc/shadow"))
    )
