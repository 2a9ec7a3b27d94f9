"""Under which conditions a pipeline runs each of its checks, and whether their failures count, before and after an edit.

A condition governs a check where it stands in the same step or job, or in one around it: `if:`, `rules:`, `only:`, `when:`,
`filters:`, `skip:` and the like of GitHub, GitLab, CircleCI, Azure, Buildkite, Bitbucket, Drone, Woodpecker, Cirrus, Semaphore
and their kin. What governs a check is compared with what governed the same check, so that a condition counts although another
job has long had the same one. Time is bounded by the length of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from pytest_saber.judge import workflows
from pytest_saber.judge.pipeline_lines import depth, indent, lines, opens
from pytest_saber.judge.text import quote

_KEY = re.compile(r"\s*(?:-\s+)?['\"]?([\w.-]+)['\"]?\s*:(?:\s+(.*))?$")
_COMMAND = re.compile(
    r"(?:run|script|before_script|command|commands|cmd|bash|sh|uses|template|task|component|image|id)\s*:\s*(?=\S)"
)
_LIMITS = frozenset(
    "if rules only except when condition branches filters skip enabled only_if skip_if trigger trigger_type workflow".split()  # noqa: SIM905
)
_FORGIVES = re.compile(
    r"(?:(?:continue[-_]?on[-_]?error|allow[-_]?failures?|soft_fail|ignore[-_]?(?:failure|errors?)|informational)\s*:\s*"
    r"(?:\$\{\{\s*)?['\"]?(?:true|yes|1|always|all|\[|-|exit|$)|failure\s*:\s*['\"]?ignore|on-failure\s*:\s*['\"]?CONTINUE|"
    r"exit_codes\s*:)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"always\(\)|cancell?ed\(\)|\bsuccess\(\)|failure\(\)|\bdraft\b|\bmatrix\.|\brunner\.|\bsteps\.|\bneeds\.|hashFiles|"
    r"cache-hit|\binputs\.|\.fork\b|\bfull_name\b|\[bot\]|succeeded(?:OrFailed)?\(\)\s*['\"]?\)?\Z"
)
_NEW_WORK = re.compile(
    r"merge_request|CI_OPEN_MERGE_REQUESTS|pull.?request|['\"]push['\"]|!=|\$CI_COMMIT_BRANCH\s*(?:['\"]|&&|\|\||\Z)|!~",
    re.IGNORECASE,
)
_NOT_NOW = re.compile(r"when\s*:\s*['\"]?(?:never|manual|delayed)\b")
_RARELY = re.compile(r"night|sched|manual|never|weekly|cron|\btags?\b", re.IGNORECASE)
_DOCUMENTS = re.compile(r"docs?/|\.(?:md|rst|txt|adoc|png|svg)\b|readme|license|changelog|contributing", re.IGNORECASE)
_NO_JOBS = frozenset(["", "steps", "jobs", "script", "run", "commands", "stages", "workflows", "pipelines", "default", "step"])
_MOST_LEVELS = 30
_MOST_BELOW = 40


Conditions = AbstractSet[tuple[str, str]]
"""The key of each and its text."""


@dataclass(slots=True)
class _Scope:
    """Keys of one mapping: of a step, a job, the whole document."""

    level: int
    parent: _Scope | None
    opener: str
    conditions: dict[str, str] = field(default_factory=dict)


def narrowed(before: str, after: str) -> Iterator[str]:
    """Checks that run only under a condition now, or whose failures stopped to count, one phrase each."""
    old, new = _governed(before), _governed(after)
    for was, now in ((check, check) for check in old if check in new):
        phrase = _narrower(old[was], new[now])
        if phrase is not None:
            yield phrase
            return
    for was, now in workflows.replaced(before, after):
        phrase = _narrower(old[was], new[now]) if was in old and now in new else None
        if phrase is not None:
            yield phrase
            return


def _narrower(old: Conditions, new: Conditions) -> str | None:
    for kind, text in sorted(new - old):
        known = [was for other, was in old if other == kind]
        if kind in _LIMITS and _limits(kind, text) and not any(_limits_as_much(kind, was, text) for was in known):
            return f"a check runs only under a condition ('{quote(text, 80)}')"
        if _FORGIVES.match(text) and not any(_FORGIVES.match(was) for was in known):
            return f"failures of a check no longer count ('{quote(text, 80)}')"
    return None


def _limits_as_much(kind: str, was: str, text: str) -> bool:
    """Whether the former condition kept the check from new work too. An expression that is another now may keep more out."""
    return text in was if kind in {"if", "condition", "only_if"} else _limits(kind, was)


def _limits(kind: str, text: str) -> bool:
    """Whether the condition keeps the check from running for new work: `text` is `key: value` with what stands below."""
    value = text.partition(":")[2].strip()
    if kind in {"if", "condition", "only_if", "skip_if"}:
        return bool(value) and value.strip("'\"") not in {"true", "always"} and _HARMLESS.search(value) is None
    if kind in {"rules", "workflow"}:
        return "- " in text and not _rules_cover(text)
    if kind in {"only", "except"}:
        named = re.search(r"merge_requests|pull.?request|branches|external_pull", text) is not None
        changes = re.search(r"\bchanges\b", text) is not None and _DOCUMENTS.search(text) is None
        return (
            not named and not changes
            if kind == "only"
            else named or re.search(r"main|master|pushes|variables", text) is not None
        )
    if kind == "when":
        if re.match(r"['\"]?(?:manual|delayed|never|on_failure)\b", value):
            return True
        events = re.search(r"\b(?:event|branch|status|evaluate|condition|equal|and|not|or)\b", value) is not None
        return events and _NEW_WORK.search(value) is None
    if kind in {"skip", "enabled"}:
        off = value.strip("'\"").lower()
        no = off in {"", "false", "no", "0"}
        return no and off != "" if kind == "enabled" else not no and re.search(r"\b(?:merge|rebase)\b", value) is None
    if kind == "filters":
        branches = re.search(r"branches\s*:?\s*(.*)", value)
        return branches is not None and re.search(r"only\s*:\s*['\"]?/\.\*/", branches[1]) is None
    if kind == "branches":
        return re.search(r"\*(?!\w)|/\.\*/", value) is None
    return value.strip("'\"") == "manual"


def _rules_cover(text: str) -> bool:
    """GitLab: whether one of the rules lets the job run for merge requests or branches, as far as their text says it."""
    for item in re.split(r"(?:\A|\s)- ", text)[1:]:
        is_new_work = _NEW_WORK.search(item) is not None
        if _NOT_NOW.search(item):
            if is_new_work and "never" in item and "!=" not in item:
                return False
            continue
        if is_new_work or ("if:" not in item and not (_RARELY.search(item) or _only_documents(item))):
            return True
    return re.search(r"!reference|\*\w", text) is not None and _RARELY.search(text) is None


def _only_documents(item: str) -> bool:
    paths = item.partition("changes:")[2].split()
    return bool(paths) and all(_DOCUMENTS.search(path) for path in paths if path.strip("-[],"))


def _governed(text: str) -> Mapping[str, Conditions]:
    """Each check, as it is written, with the conditions around it."""
    document = lines(text)
    wanted = {line for line in workflows.commands(text) if workflows.is_check(line)}
    scopes: list[_Scope] = []
    where: list[_Scope] = []
    last = ""
    for position, line in enumerate(document):
        level = depth(line)
        while scopes and (scopes[-1].level > level or (opens(line) and scopes[-1].level >= level)):
            scopes.pop()
        if not scopes or scopes[-1].level < level:
            scopes.append(_Scope(level, scopes[-1] if scopes else None, last))
        match = _KEY.match(line)
        if match is not None:
            last = match[1] if not match[2] else ""
            if match[1] in _LIMITS or _FORGIVES.match(line.strip().removeprefix("- ")):
                scopes[-1].conditions[match[1]] = _with_below(document, position)
        where.append(scopes[-1])
    found: dict[str, set[tuple[str, str]]] = {}
    jobs = set[str]()
    for line, scope in zip(document, where, strict=True):
        name = _COMMAND.sub("", " ".join(line.strip().removeprefix("- ").strip("'\"").split()), count=1)
        if name in wanted or (_COMMAND.search(line) and workflows.is_check(name.lower())):
            found.setdefault(name, set()).update(_around(scope))
            jobs |= {around.opener for around in _outwards(scope)} - _NO_JOBS
    for scope in {id(scope): scope for scope in where}.values():
        if scope.opener in jobs or workflows.is_check(scope.opener.lower()):
            found.setdefault(f"the job {scope.opener}", set()).update(_around(scope))
    return found


def _with_below(document: list[str], position: int) -> str:
    """A key with what stands below it, on one line."""
    line = document[position]
    found = [line.strip().removeprefix("- ")]
    for other in document[position + 1 : position + 1 + _MOST_BELOW]:
        if depth(other) <= depth(line) and not (opens(other) and not opens(line) and indent(other) == indent(line)):
            break
        found.append(other.strip())
    return " ".join(found)


def _around(scope: _Scope) -> set[tuple[str, str]]:
    """Conditions of the scope and of those around it; `branches` and `trigger` of a whole document say what starts it."""
    found: set[tuple[str, str]] = set()
    for current in _outwards(scope):
        started = {"branches", "trigger"} if current.parent is None else set[str]()
        found |= {(key, text) for key, text in current.conditions.items() if key not in started}
    return found


def _outwards(scope: _Scope | None) -> Iterator[_Scope]:
    for _ in range(_MOST_LEVELS):
        if scope is None:
            return
        yield scope
        scope = scope.parent
