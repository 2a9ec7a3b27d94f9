"""What a pipeline runs, and when: read from its text line by line, since a hostile document must not cost more than that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from pytest_saber.judge.text import listing, quote

_STEP = re.compile(r"^(\s*)(?:-\s+)?(?:run|script|before_script|command)\s*:\s*(.*)$")
CHECKS = re.compile(
    r"test|check|lint|verify|scan|audit|coverage|pytest|ruff|mypy|eslint|jest|vitest|flake8|pylint|tsc|clippy|"
    r"bandit|gitleaks|"
    r"trivy|semgrep|codeql|snyk|sast|sbom|cosign|attest|grype|checkov|tfsec|gosec|staticcheck|go vet|black\b|prettier|rubocop|"
    r"phpstan|psalm|phpunit|rspec|pyright|deny\b|sonar|detekt|spotbugs|\bbats\b|\btox\b|\bnox\b|\bmvn\b|gradle|mocha"
)
"""Words of a command that checks something."""
_EVENTS = frozenset({"push", "pull_request", "pull_request_target", "merge_group", "merge_request", "schedule"})
_NOTHING = re.compile(
    r"^[ \t]*(?:paths-ignore|branches-ignore)\s*:\s*+(?:\[\s*+)?['\"]\*\*?['\"]|^[ \t]*-\s*['\"]!\*\*?['\"]", re.MULTILINE
)


def commands(text: str) -> Counter[str]:
    """The command lines of every step: after `run:`, in its block, or in the list below it."""
    found: Counter[str] = Counter()
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        match = _STEP.match(lines[position])
        position += 1
        if match is None:
            continue
        indent, rest = len(match[1]), match[2].strip()
        if rest and rest[0] not in "|>":
            found[_normal(rest)] += 1
            continue
        while position < len(lines):
            line = lines[position]
            if line.strip() and len(line) - len(line.lstrip()) <= indent and not line.lstrip().startswith("- "):
                break
            if line.strip() and not line.lstrip().startswith("#"):
                found[_normal(line.strip().removeprefix("- "))] += 1
            position += 1
    return found


def is_check(command: str) -> bool:
    """Whether a command line speaks of tests, lint, scans or other checks."""
    return CHECKS.search(command) is not None


def _normal(line: str) -> str:
    return " ".join(line.strip("'\"").split())


def events(text: str) -> frozenset[str]:
    """The events that start a workflow; empty where the text names none."""
    match = re.search(r"^['\"]?on['\"]?\s*:(.*(?:\n(?:[ \t]+.*|[ \t]*|#.*))*)", text, re.MULTILINE)
    if match is None:
        return frozenset()
    first, _, block = match[1].partition("\n")
    inline = re.sub(r"#.*", "", first)
    named = set(re.findall(r"[a-z_]+", inline))
    indents = [len(line) - len(line.lstrip()) for line in block.splitlines() if line.strip()]
    outermost = min(indents, default=0)
    for line in block.splitlines() if not named else ():
        if line.strip() and len(line) - len(line.lstrip()) == outermost:
            named |= set(re.findall(r"[a-z_]+", line.partition(":")[0]))
    return frozenset(named & (_EVENTS | {"workflow_dispatch", "workflow_call", "release"}))


def replaced(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Checks that are written otherwise now: `(before, after)`. A line stands for one that had no word of a check more."""
    old, new = commands(before), commands(after)
    added = list((new - old).elements())
    for line in (old - new).elements():
        words = set(CHECKS.findall(line))
        match = next((more for more in added if words and words <= set(CHECKS.findall(more))), None)
        if match is not None:
            added.remove(match)
            yield line, match


def weakened(before: str, after: str) -> Iterator[str]:
    """Checks that run no more, or that nothing starts any more."""
    old, new = commands(before), commands(after)
    added = [set(CHECKS.findall(line)) for line in (new - old).elements()]
    lost = [line for line in (old - new) if (words := set(CHECKS.findall(line))) and not any(words <= more for more in added)]
    if lost:
        yield f"a check runs no more ('{quote(lost[0], 80)}')"
    gone = sorted((events(before) & _EVENTS) - events(after)) if after.strip() else []
    if gone:
        yield f"it no longer runs on {listing(gone)}"
    if len(_NOTHING.findall(after)) > len(_NOTHING.findall(before)):
        yield "a filter leaves everything out"
