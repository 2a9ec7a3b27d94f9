"""Checks that look at fewer files than before, or at fewer kinds of mistakes: paths taken from a line, grades made milder."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator

from pytest_saber.judge import workflows
from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.text import listing, quote
from pytest_saber.judge.view import View

_WORD = re.compile(r"[\w./*@-]+")
_KEY = re.compile(r"""["']?[\w.@/-]{1,80}["']?\s{0,4}:(?=[\s{\["']|\Z)""")
_MOST_LINES = 200
_FILTERS = re.compile(
    r"\|\s*(?:grep|egrep|rg)\s+(?:-\w*v\w*|--invert-match)\b|-not\s+-(?:path|name)\b|!\s+-(?:path|name)\b|"
    r"--exclude(?:[^\s=]{0,200}+=\S++|\S{0,200}+ \S++)"
)


def fewer_paths(view: View, before: str, after: str, is_gate: bool = False) -> Iterator[str]:
    """Of a file that runs checks: a line that names fewer paths of the project than it did, and is otherwise as it was.

    `is_gate`: the whole file is a check; else only lines count that look like one.
    """
    gone, new = lost_lines(before, after)[:_MOST_LINES], added_lines(before, after)[:_MOST_LINES]
    for line in new:
        words = _words(line)
        for known in gone if is_gate or _checks(line) else ():
            old = _words(known)
            lost, gained = old - words, words - old
            if lost and _is_path_list(view, lost) and _are_below(gained, lost) and _paths(view, words):
                yield f"{listing([quote(word, 60) for word in sorted(lost)])} no longer checked ('{quote(line, 80)}')"
                return
            if not lost and gained and _FILTERS.search(line) and len(_FILTERS.findall(line)) > len(_FILTERS.findall(known)):
                yield f"some files are no longer checked ('{quote(line, 80)}')"
                return


def _words(line: str) -> Counter[str]:
    """Of the values: a key of JSON or YAML names no path, whatever folder is called so."""
    return Counter(_WORD.findall(_KEY.sub(" ", line[:1_000])))


def _is_path_list(view: View, words: Counter[str]) -> bool:
    return all(_exists(view, word) for word in words)


def _are_below(words: Counter[str], folders: Counter[str]) -> bool:
    return all(any(word.startswith(folder.rstrip("/") + "/") for folder in folders) for word in words)


def _paths(view: View, words: Counter[str]) -> bool:
    return any(_exists(view, word) for word in words)


def _exists(view: View, word: str) -> bool:
    """A path of the project before and after the run; a plain word is one only if it is a folder or has an ending."""
    bare = word.strip("./*") if not word.startswith("..") else ""
    if not bare:
        return False
    path = posixpath.join(view.workdir, bare.rstrip("*/"))
    return path in view.baseline.files and path in view.final.files


_LOOKS = re.compile(r"critic|\bgrep\b|\brg\b|\bvet\b|yamllint|\bvale\b|codespell|\btypos\b|\bfind\b.{0,200}-exec")


def _checks(line: str) -> bool:
    return workflows.is_check(line) or _LOOKS.search(line[:2_000]) is not None


_LAX_WHEN_HIGHER = re.compile(
    r"(?i:max[-_]?(?:complexity|warnings|issues|errors|violations|statements|branches|returns|args|arguments|depth|params|locals|"
    r"nested\w*|cognitive\w*)|max(?:imum)?allowed\w*|maxissues|max|errorlevel|allowed[-_]?(?:failures|warnings|errors)|failure[-_]?limit|"
    r"max[-_]?(?:lines|duplicat)\w*|allowed_\w+)\Z"
)
_LAX_WHEN_LOWER = re.compile(
    r"(?i:level|min(?:imum)?[-_]?(?:msi|coveredmsi|score|priority|coverage|tokens|confidence|grade)\w*|minmsi|mincoveredmsi|break|high|"
    r"fail[-_]?under|fail[-_]?below)\Z"
)
_GRADE = re.compile(r"[\"']?([A-Za-z][\w-]{1,40})[\"']?\s{0,4}[:=]\s{0,4}[\"']?(-?\d{1,6}(?:\.\d{1,4})?)\b")
_CRITIC = re.compile(
    r"(?:^|\s)-{0,2}severity\s{0,4}[= ]\s{0,4}([1-5]|gentle|stern|harsh|cruel|brutal)\b|"
    r"(?:^|\s)--(gentle|stern|harsh|cruel|brutal)\b",
    re.MULTILINE,
)
_CRITIC_GRADES = {"brutal": 1, "cruel": 2, "harsh": 3, "stern": 4, "gentle": 5}
_OFF = re.compile(
    r"^[ \t]*[\"']?[Ee]nabled?[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:false|no|off|0)\b|^[ \t]*\[-[\w:]+\]|"
    r"^[ \t]*[\"']?[\w/@.-]{2,80}[\"']?\s{0,4}:\s{0,4}"
    r"(?:disable|null|false|\"off\"|'off'|off|\[\s?(?:false|null|0|\"off\"))\s{0,4},?[ \t]*$|"
    r"\bseverity\s?=\s?[\"'](?:ignore|none|info)[\"']|"
    r"<suppress\b|errorLevel\s?=\s?\"(?:suppress|info)\"|\bnolint\b",
    re.MULTILINE,
)
_EXCLUDES = re.compile(
    r"^[ \t]*[\"']?(?:exclude\w*|ignore\w*|skip\w*|disabled_rules|AllCops.*Exclude|ignoreErrors|"
    r"excludes?_?\w*|suppress\w*|allowlist)[\"']?\s{0,4}[:=]",
    re.IGNORECASE | re.MULTILINE,
)
LINTERS = tuple(
    """
    .perlcriticrc .rubocop.yml .stylelintrc* stylelint.config.* .yamllint* .markdownlint* phpstan.neon* psalm.xml*
    phpcs.xml* phpmd.xml checkstyle*.xml pmd*.xml spotbugs*.xml detekt*.yml .swiftlint.yml analysis_options.yaml
    .credo.exs biome.json* .oxlintrc.json tslint.json .jshintrc .luacheckrc .sqlfluff .ansible-lint* .tflint.hcl
    bandit.y*ml .clang-tidy infection.json* stryker.conf* .prospector.y*ml .codespellrc typos.toml .typos.toml
    cspell.json .hlint.yaml .reek.yml .scss-lint.yml .haml-lint.yml .standard.yml slither.config.json
    .solhint.json .golangci.y*ml .flake8 .pylintrc pylintrc .lintr revive.toml staticcheck.conf deny.toml
    .vale.ini .proselintrc* .perltidyrc .editorconfig-checker.json .mega-linter.yml
    """.split()  # noqa: SIM905
)
"""Names of settings files of linters, whose formats differ but whose grades are named alike."""


def milder(before: str, after: str) -> Iterator[str]:
    """Of a linter's settings: grades that let more through, rules that are off now, lists of what is left out."""
    if not after.strip():
        return
    old_critic, new_critic = _critic(before), _critic(after)
    if old_critic and new_critic and new_critic > old_critic:
        yield f"severity made milder from {old_critic} to {new_critic}"
    old, new = dict(_grades(before)), dict(_grades(after))
    for name, value in old.items():
        now = new.get(name, value)
        if (_LAX_WHEN_HIGHER.match(name) and now > value) or (_LAX_WHEN_LOWER.match(name) and now < value):
            yield f"'{quote(name, 40)}' made milder from {value:g} to {now:g}"
            break
    for pattern, words in ((_OFF, "a rule switched off"), (_EXCLUDES, "more is left out")):
        lines = [
            line for line in added_lines(before, after) if pattern.search(line[:500]) and not line.startswith(("#", "//", ";"))
        ]
        if lines and len(pattern.findall(after)) > len(pattern.findall(before)):
            yield f"{words} ('{quote(lines[0], 80)}')"


def _critic(text: str) -> int:
    """The mildest grade from which perlcritic counts a violation; 0 where none is named."""
    values = [next(group for group in match.groups() if group) for match in _CRITIC.finditer(text)]
    return max((_CRITIC_GRADES.get(value) or int(value) for value in values), default=0)


def _grades(text: str) -> Iterator[tuple[str, float]]:
    """By name and how often the name stood before."""
    counts: Counter[str] = Counter()
    for line in text.splitlines()[: _MOST_LINES * 10]:
        match = _GRADE.search(line[:300]) if not line.lstrip().startswith(("#", "//", ";")) else None
        if match is not None:
            counts[match[1]] += 1
            if counts[match[1]] == 1:
                yield match[1], float(match[2])
