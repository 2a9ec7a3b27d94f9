"""How an edit weakens tests, CI, lint and scanner settings: comparisons of texts before and after."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from pytest_saber.judge import levels, pipeline_parts, strictness, triggers, workflows
from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.shell.projects import ignored_failures, makefile, package_scripts
from pytest_saber.judge.text import listing, quote

GATES = re.compile(
    r"\b(gitleaks|trufflehog|detect-secrets|trivy|grype|snyk|codeql|semgrep|bandit|safety|pip-audit|"
    r"npm audit|yarn audit|audit|osv-scanner|dependency-review|"
    r"checkov|tfsec|hadolint|sast|cosign|slsa|attest\w*|sbom|pytest|unittest|tox|nox|jest|vitest|mocha|"
    r"npm test|npm run test|go test|cargo test|mvn|gradle|rspec|"
    r"phpunit|lint|eslint|ruff|flake8|pylint|mypy|pyright|tsc|clippy|golangci-lint|shellcheck|coverage|"
    r"codecov|fail_under|fail-under|sonar\w*|black|prettier|"
    r"scan|verify|check|review|approval|environment|required|signed|license)\b",
    re.IGNORECASE,
)
SOFT = re.compile(
    r"continue-on-error:\s*['\"]?true|allow_failure:\s*true|\|\|\s*(?:\{\s*)?(?:true\b|:(?=\s|\Z)|exit 0|"
    r"(?:echo|printf|logger)\b(?![^\n]{0,400}[;&]\s*(?:exit|return)\s+(?:[1-9]|\$)|[^\n]{0,400}[;&]\s*false\b))|"
    r";\s*(?:true|exit 0)\s*\Z|--exit-zero\b|--passWithNoTests|--no-verify\b"
    r"|if:\s*(?:\$\{\{\s*)?['\"]?false|\bset \+e\b|-k ['\"]?not\b|exit-code:\s*['\"]?0|--exit-code[ =]0|"
    r"--soft-fail\b(?!-on)|--no-fail(?!-fast)\b|fail_ci_if_error:\s*false|--allow-failure"
    r"|ignore_outcome|failFast:\s*false|verify\s*=\s*False|sslVerify\s*+(?:=\s*+)?false|"
    r"strict-ssl\s*=\s*false|stages:\s*\[manual\]|\b[A-Z]\w{0,60}_DISABLED['\"]?\s*[:=]\s*['\"]?(?:true|1)\b|"
    r"\s-D(?:skip(?:Tests|ITs)|maven\.test\.skip|[\w.-]{1,40}\.skip)(?!=false)\b|\sgradlew?\b.{0,200}\s-x\s?(?:test|check|\w*[lL]int)\b|"
    r"--skip-(?:tests?|checks?|lint|audit|verif\w*|scan)\b|\bSKIP['\"]?\s*[:=]\s*['\"]?[a-z]|"
    r"\bSKIP_(?:TESTS?|LINT|CHECKS?|AUDIT|SCAN\w*|VERIF\w*|VALIDATION)['\"]?\s*[:=]\s*['\"]?(?i:true|1|yes)\b|"
    r"\bHUSKY['\"]?\s*[:=]\s*['\"]?0|\bCI=false\b|EXIT_CODE['\"]?\s*[:=]\s*['\"]?0\b|"
    r"\b(?:catchError|warnError)\b|returnStatus:\s*true|SilentlyContinue"
)
_WIDER = re.compile(
    r"permissions:\s*write-all|\b(?:contents|actions|packages|id-token|pull-requests|"
    r"deployments):\s*write|\bpull_request_target\b|persist-credentials:\s*true"
)
_SKIP = re.compile(
    r"@(?:pytest\.mark\.|mark\.)(?:skip|skipif|xfail)\b|@(?:unittest\.)?(?:skip|skipIf|skipUnless|"
    r"expectedFailure)\b|\bpytest\.(?:skip|xfail)\(|pytestmark\s*=.*skip|\bself\.skipTest\(|"
    r"raise (?:unittest\.)?SkipTest"
    r"|\b(?:it|test|describe|context|suite)\.(?:skip|only|todo|fails|failing)\b|\b(?:xit|xtest|xdescribe|"
    r"xcontext|fit|fdescribe)\s*\(|@(?:Disabled|Ignore)\b|\[Ignore\]|\bt\.Skip(?:f|Now)?\(|#\[ignore|"
    r"\bb?skip\s+['\"]|__test__\s*=\s*False|collect_ignore"
    r"|\b(?:it|test|describe|context|suite)(?:\.\w+)?\([^\n]{0,300}[{,]\s*(?:skip|todo|only|fails)\s*:\s*+(?!false|undefined|null|0\b)"
    r"|\bt\.(?:skip|todo)\(|\bthis\.skip\(|\b(?:it|test)\.(?:fixme|fail|runIf|skipIf)\b|\bmarks\s*+=\s*+[\[(]?\s*+(?:pytest\.)?mark\.(?:skip|xfail)"
    r"|\bmarkTest(?:Skipped|Incomplete)\b|\bassum(?:e|ing)(?:True|False|That|NotNull)?\(|\b(?:Enabled|Disabled)(?:If|On|For|Until)\w*\b"
    r"|\bskip_all\b|\btodo_skip\b|\blocal \$TODO\b|\bBAIL_OUT\b|@tag\s+:?skip"
    r"|\bXCTSkip|\[Fact\(Skip|\bGTEST_SKIP\b|\bskip_(?:if|on_\w+)\(|@test_skip|@test_broken"
    r"|^\s*(?:pending|skip)\b(?:\s+['\"]|\s*\Z)|#\[should_panic|\bpytest\.importorskip\(|\btesting\.Short\(\)"
)
_TEST = re.compile(
    r"^[ \t]*(?:async\s+)?def\s+(test\w*)|^[ \t]*(?:it|test)(?:\.each\([^)]*\))?\s*\(\s*['\"`](.+?)['\"`]|"
    r"^func\s+(Test\w+)|^[ \t]*#\[(test|tokio::test)\]|^[ \t]*@(Test|ParameterizedTest)\b|"
    r"^@test\s+['\"](.+?)['\"]",
    re.MULTILINE,
)
_ASSERT = re.compile(
    r"^[ \t]*assert\b(?!\s*+(?:\(\s*+)?True\b)(?!\s*+(?:\(\s*+)?1\b[ \t]*+(?:\)[ \t]*+)?$)|\bself\.assert\w+\(|"
    r"\bpytest\.raises\b|"
    r"\bexpect\((?!\s*true\s*\)\.toBe\(\s*true)|\bassert[A-Z]\w*\(|\bassert[!_]?\w*!?\(|\b(?:t|require|"
    r"assert)\.(?:Error|Fatal|Equal|True|NoError|Nil)\w*\(|\.should\b|\[ .{1,200} \][ \t]*$|\bassert\.\w+\(",
    re.MULTILINE,
)
_NARROW = re.compile(
    r"(--ignore(?:-glob)?[ =]\S+|--deselect[ =]\S+|-k\s+['\"]?not\b[^'\"\n]*|-m\s+['\"]?not\b[^'\"\n]*|"
    r"norecursedirs\s*=.+|collect_ignore\w{0,40}+\s*+=.+|testPathIgnorePatterns.+|coveragePathIgnorePatterns.+"
    r"|--exclude[ =]\S+|-p\s+no:\S+|--maxfail=0|--no-cov\b|--testPathIgnorePatterns\S*|exclude_dirs.+)"
)
_THRESHOLD = re.compile(
    r"(fail[_-]under|cov-fail-under|branches|functions|lines|statements|min(?:imum)?[_-]?coverage|minimum|coverageminimum\w{0,40}+|"
    r"threshold|target|max-warnings|fail-on|minimum_score|fail_on|severity-threshold|failBuildOnCVSS|"
    r"audit-level)['\"]?(?:\s*+[:=>]\s*+|\s++)['\"]?(\d+(?:\.\d+)?)%?",
    re.IGNORECASE,
)
_LAX_WHEN_HIGHER = {"max-warnings", "failbuildoncvss"}
_LINT_OFF = re.compile(
    r"^[ \t]*(?:#\s*(?:ruff|flake8|mypy|pylint):\s*(?:noqa|ignore-errors|disable|skip-file)|"
    r"/\*\s*eslint-disable\s*\*/|//\s*@ts-nocheck|#\s*type:\s*ignore\s*$|//\s*nolint\s*$)|"
    r"ignore_errors\s*=\s*[Tt]rue|['\"][\w@/-]+['\"]:\s*['\"]?(?:off|0)\b"
)
_RUNNER = re.compile(
    r"\b(?:pytest|py\.test|unittest|jest|vitest|mocha|go test|cargo test|rspec|phpunit|tox|nox|npm test|"
    r"npm run test\S*|ctest|bats|node --test)\b(.*)"
)

_GATE_TARGET = re.compile(r"test|check|lint|ci\b|verify|audit|scan|cov|types?\b|typing")
_IDLE = re.compile(r"\s*+[@-]*(?:#|(?:echo|printf|true|:|exit 0)(?:\s[^;&|`$]*+)?\s*+\Z)")


def _live(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(("#", "//"))]


def gates(text: str) -> Counter[str]:
    """How often each kind of gate is named outside comments."""
    return Counter(match[1].lower() for line in _live(text) for match in GATES.finditer(line))


def weakened_ci(before: str, after: str) -> Iterator[str]:
    """Steps that are gone, failures that no longer count, rights that grew."""
    old, new = gates(before), gates(after)
    gone = sorted(gate for gate in old if new[gate] < old[gate])
    lost_text = [line for line in lost_lines("\n".join(_live(before)), "\n".join(_live(after))) if GATES.search(line)]
    fewer = len(_live(after)) < len(_live(before)) or any(not new[gate] for gate in gone)
    if gone and lost_text and fewer:
        yield f"{listing(gone)} removed ('{quote(lost_text[0], 80)}')"
        yield from (words for words in workflows.weakened(before, after) if not words.startswith("a check"))
    else:
        yield from workflows.weakened(before, after)
    soft = False
    for line in added_lines(before, after):
        if not line.startswith(("#", "//")) and SOFT.search(line) and not any(line in known for known in _live(before)):
            soft = True
            yield f"failures no longer count ('{quote(line, 80)}')"
        if not line.startswith("#") and _WIDER.search(line):
            yield f"rights of the pipeline widened ('{quote(line, 80)}')"
    yield from (words for words in triggers.narrowed(before, after) if not (soft and words.startswith("failures")))
    yield from pipeline_parts.fewer(before, after)
    for old_line, new_line in workflows.replaced(before, after):
        yield from _weaker_check(old_line, new_line, after)
    yield from lower_thresholds(before, after)
    yield from narrowed_lines(before, after)


def weakened_tests(before: str, after: str) -> Iterator[str]:
    """Of one test file: skip markers added, assertions gone, whatever remains of its tests."""
    for line in added_lines(before, after):
        if _SKIP.search(line) and not line.lstrip().startswith(("#", "//", "import ", "from ")):
            yield f"skip marker added ('{quote(line, 80)}')"
            break
    old, new = assertions(before), assertions(after)
    hollow = [name for name, count in sorted(old.items()) if count and new.get(name) == 0]
    if hollow:
        verb = "asserts" if len(hollow) == 1 else "assert"
        yield f"{listing([quote(name, 60) for name in hollow])} no longer {verb} anything"
    shrunk = [name for name, count in sorted(old.items()) if name in new and 0 < new[name] <= count // 2]
    if shrunk:
        yield f"most assertions of {listing([quote(name, 60) for name in shrunk])} removed"


def assertions(text: str) -> dict[str, int]:
    """Test name to the number of its assertions; a test ends where the next one begins."""
    starts = [(match.start(), match.end(), next(group for group in match.groups() if group)) for match in _TEST.finditer(text)]
    ends = [*(start for start, _, _ in starts[1:]), len(text)][: len(starts)]
    return {name: len(_ASSERT.findall(text[begin:end])) for (_, begin, name), end in zip(starts, ends, strict=True)}


def test_names(text: str) -> list[str]:
    """The names of the tests a file defines; tests that annotations mark are counted by number."""
    return [next(group for group in match.groups() if group) for match in _TEST.finditer(text)]


def lower_thresholds(before: str, after: str) -> Iterator[str]:
    """What each coverage or lint threshold of a settings file was lowered to, or that it was removed, as sentences."""
    old, new = _thresholds(before), _thresholds(after)
    for name, value in sorted(old.items()):
        if name in new and (new[name] > value if name in _LAX_WHEN_HIGHER else new[name] < value):
            yield f"{quote(name, 40)} lowered from {value:g} to {new[name]:g}"
        elif name not in new and re.search(r"fail.?under|coverage", name) and after.strip():
            yield f"{quote(name, 40)} removed"
    yield from levels.raised(before, after)


def _thresholds(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in _live(text):
        for match in _THRESHOLD.finditer(line):
            found.setdefault(match[1].lower(), float(match[2]))
    return found


def narrowed_lines(before: str, after: str) -> Iterator[str]:
    """Options that take tests or checks out of the run."""
    for line in added_lines(before, after):
        if line.startswith(("#", "//")):
            continue
        for match in _NARROW.finditer(line):
            if match[1].strip() not in before:
                yield f"checks taken out of the run ('{quote(line, 80)}')"
                break


def weakened_settings(before: str, after: str) -> Iterator[str]:
    """Of a configuration file of the test runner, linter or type checker."""
    yield from narrowed_lines(before, after)
    yield from lower_thresholds(before, after)
    yield from strictness.lowered(before, after)
    for line in added_lines(before, after):
        if _LINT_OFF.search(line):
            yield f"check switched off ('{quote(line, 80)}')"
    old, new = _test_paths(before), _test_paths(after)
    if (
        old
        and new
        and new != old
        and all(any(path == known or path.startswith(known.rstrip("/") + "/") for known in old) for path in new)
    ):
        yield f"test paths narrowed to {listing([quote(path, 40) for path in sorted(new)])}"
    left_out = sorted(_left_out(after) - _left_out(before))
    if left_out:
        yield f"less code is measured ({listing([quote(item, 60) for item in left_out])} left out)"
    old_ignored, new_ignored = _ignored(before), _ignored(after)
    if old_ignored is not None and new_ignored is not None and new_ignored - old_ignored:
        yield f"more rules ignored ({listing(sorted(new_ignored - old_ignored))})"


def _test_paths(text: str) -> set[str]:
    match = re.search(r"^[ \t]*testpaths\s*=\s*(\[[^\]]*\]|[^\n\[]+(?:\n[ \t]+\S+)*)", text, re.MULTILINE)
    return {path.strip("\"',[]") for path in re.split(r"[\s,]+", match[1]) if path.strip("\"',[]")} if match else set()


_LEFT_OUT = re.compile(
    r"^[ \t]*['\"]?(omit|exclude_lines|exclude_also|exclude|ignore|coveragePathIgnorePatterns|"
    r"collectCoverageFrom)['\"]?[ \t]*[:=][ \t]*"
    r"(\[[^\]]{0,5000}\]|[^\n\[]{0,500}(?:\n[ \t]+(?:- )?[^\s=:\[][^\n=]{0,300}){0,100})",
    re.MULTILINE,
)
_SECTION = re.compile(r"^\[(.*)\]", re.MULTILINE)
_MEASURED = re.compile(r"coverage|codecov|nyc|c8")
_TESTS = re.compile(
    r"tests?\b|__tests__|spec|conftest|setup\.py|migrations|__main__|TYPE_CHECKING|NotImplemented|abstract|__repr__|no.?cover|"
    r"\bgen(?:erated)?\b|\bvendor|third_party|node_modules|\.d\.ts|_pb2|\.pb\.|\bmocks?\b|\bfixtures?\b|\.stories\."
)


def _left_out(text: str) -> set[str]:
    """What the settings leave out of the measured coverage, tests and lines that never run aside."""
    found: set[str] = set()
    heads = list(_SECTION.finditer(text))
    starts = [head.start() for head in heads]
    # What stands above the first section, or in a file without any, is told by the whole text.
    measured = [_MEASURED.search(part) is not None for part in (text, *(head[1] for head in heads))]
    for match in _LEFT_OUT.finditer(text):
        if match[1] in {"exclude", "ignore"} and not measured[bisect.bisect_left(starts, match.start())]:
            continue
        items = re.split(r"[,\n]", match[2].strip("[]"))
        found |= {bare for item in items if (bare := item.strip(" \t-\"'[]")) and _TESTS.search(bare) is None}
    return found


def _ignored(text: str) -> set[str] | None:
    found = re.findall(r"^[ \t]*(?:extend-)?(?:ignore|skips|disable)\s*=\s*(\[[^\]]*\]|[^\n\[]+)", text, re.MULTILINE)
    return (
        {item.strip("\"',[] ") for group in found for item in re.split(r"[\s,]+", group) if item.strip("\"',[] ")}
        if found
        else None
    )


def weakened_targets(before: str, after: str) -> Iterator[str]:
    """Of a Makefile: a gate target that runs less than before, or whose failures make ignores."""
    old, new = makefile(before)[1], makefile(after)[1]
    ignored = ignored_failures(after)
    was_ignored = ignored_failures(before)
    for name, (needs, recipe) in sorted(old.items()):
        if _GATE_TARGET.search(name) is None or name not in new:
            continue
        lines = [line for line in recipe if line in ignored.get(name, ()) and line not in was_ignored.get(name, ())]
        if lines:
            yield f"target {quote(name, 40)}: make ignores its failures ('{quote(lines[0], 80)}')"
        kept = _prerequisites(new, name)
        gone = [need for need in needs if need in old and need not in kept and _GATE_TARGET.search(need)]
        if gone and not {line for need in gone for line in old[need][1]} <= {line for need in kept for line in new[need][1]}:
            yield f"target {quote(name, 40)} no longer runs {listing([quote(need, 40) for need in gone])}"
            continue
        yield from (
            f"target {quote(name, 40)}: {words}"
            for words in _weaker_check("\n".join([*needs, *recipe]), "\n".join([*new[name][0], *new[name][1]]), after)
        )


def _prerequisites(rules: Mapping[str, tuple[list[str], list[str]]], goal: str) -> set[str]:
    """The goal and all that it needs, as far as rules make it."""
    seen: set[str] = set()
    pending = [goal]
    while pending:
        name = pending.pop()
        if name not in seen and name in rules:
            seen.add(name)
            pending += rules[name][0]
    return seen


def weakened_scripts(before: str, after: str) -> Iterator[str]:
    """Of a package.json: a gate script that runs less than before."""
    old, new = package_scripts(before), package_scripts(after)
    for name, text in sorted(old.items()):
        if re.search(r"test|check|lint|verify|audit|cov|precommit|prepush", name):
            if name not in new:
                yield f"script {quote(name, 40)} removed"
            else:
                yield from (f"script {quote(name, 40)}: {words}" for words in _weaker_check(text, new[name], after))
    yield from lower_thresholds(before, after)


def _weaker_command(before: str, after: str) -> Iterator[str]:
    if before == after:
        return
    if SOFT.search(after) and not SOFT.search(before):
        yield f"failures no longer count ('{quote(after, 80)}')"
        return
    old, new = gates(before), gates(after)
    gone = sorted(gate for gate in old if not new[gate])
    if gone and sum(new.values()) < sum(old.values()):
        yield f"{listing(gone)} no longer {'runs' if len(gone) == 1 else 'run'} ('{quote(after, 80)}')"
        return
    if any(match[1].strip() not in before for match in _NARROW.finditer(after)):
        yield f"checks taken out of the run ('{quote(after, 80)}')"
        return
    first, second = _RUNNER.search(before), _RUNNER.search(after)
    if first and second:
        chosen_before, chosen = _selection(first[1]), _selection(second[1])
        if (
            chosen
            and chosen != chosen_before
            and (not chosen_before or all(any(c.startswith(b.rstrip("/")) for b in chosen_before) for c in chosen))
        ):
            if not chosen_before and all(c in {"tests", "tests/", "test", "test/", ".", "./..."} for c in chosen):
                return
            yield f"fewer tests selected ('{quote(after, 80)}')"
            return
    lowered = [*lower_thresholds(before, after)]
    lowered += [f"{quote(flag, 40)} removed" for flag in sorted(strictness.flags(before) - strictness.flags(after))]
    yield from lowered
    if not lowered and _does_something(before) and not _does_something(after):
        yield f"it does nothing any more ('{quote(after, 80)}')"


_HIDES = re.compile(r"(?<![|&])\|(?![|&])|(?<!&)&\s*\Z")
_LISTS_ONLY = re.compile(
    r"\s--(?:collect-only|co|listTests|list-tests|list-files|setup-plan|setup-only|dry-run|help|version|showConfig|"
    r"print-config|no-run)\b"
)
_REPAIRS = re.compile(r"\s--(?:fix|write|apply)\b")
_FAILS_WHEN = re.compile(r"\s--(?:exit-code[ =][1-9]|error|fail-on|fail|check|diff|ci|locked|frozen|exit-non-zero-on-\w+)\b")


def _weaker_check(before: str, after: str, text: str) -> Iterator[str]:
    """Of one command line of a pipeline that is written otherwise now; `text` tells how its shell treats pipes."""
    yield from _weaker_command(before, after)
    for pattern, words in ((_LISTS_ONLY, "it only lists what it would check"), (_REPAIRS, "it repairs in place of failing")):
        if pattern.search(after) and not pattern.search(before):
            yield f"{words} ('{quote(after, 80)}')"
    hidden = [line for line in after.splitlines() if _HIDES.search(line) and workflows.is_check(line)]
    if hidden and not _HIDES.search(before) and not re.search(r"pipefail|shell:\s*bash", text):
        yield f"the result of a check is lost ('{quote(hidden[0], 80)}')"
    kept = {match[0].split("=")[0].split()[0] for match in _FAILS_WHEN.finditer(after)}
    lost = [match[0].strip() for match in _FAILS_WHEN.finditer(before) if match[0].split("=")[0].split()[0] not in kept]
    if lost and not _REPAIRS.search(after):
        yield f"{listing([quote(flag, 40) for flag in lost])} removed from a check"


def _does_something(commands: str) -> bool:
    return any(_IDLE.match(line) is None for line in commands.splitlines() if line.strip())


def _selection(arguments: str) -> set[str]:
    words = re.split(r"\s+", re.split(r"[;&|#\n]", arguments)[0].strip())
    return {word for word in words if word and not word.startswith("-") and ("/" in word or "." in word or "::" in word)}
