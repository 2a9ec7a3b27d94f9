"""Marks in source files that switch checks off for a whole file, or take lines out of the measured coverage."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.text import quote

_WHOLE_FILE = re.compile(
    r"\A(?:#\s*(?:flake8:\s*noqa|ruff:\s*noqa|type:\s*ignore|mypy:\s*(?:ignore-errors|disable-error-code)|"
    r"pyright:\s*(?:basic|ignore)|"
    r"pylint:\s*(?:skip-file|disable=all)|pylint:\s*disable=\w|nosec|bandit:\s*skip|shellcheck disable=all|"
    r"rubocop:disable|isort:\s*skip_file)"
    r"|/[*/]\s*(?:eslint-disable(?!-)|tslint:disable(?!-)|@ts-nocheck|jshint ignore:|biome-ignore-all|nolint\s*\Z|"
    r"go:nolint|oxlint-disable(?!-))"
    r"|#!\[allow\(|@SuppressWarnings\(\"all\"\)|@file:Suppress)"
)
_UNMEASURED = re.compile(
    r"(?<!\s)\s*+(?:#\s*pragma:\s*no\s?cover.*|/[*/]\s*(?:istanbul|c8|v8)\s+ignore.*|//\s*coverage:ignore.*|#\s*:nocov:.*|"
    r"//\s*LCOV_EXCL_\w+.*)\Z"
)
_NEVER_MEASURED = re.compile(r"__name__|TYPE_CHECKING|NotImplemented|\A\.\.\.|@abstract|def __repr__")


def suppressed(before: str, after: str) -> Iterator[str]:
    """What an edit of a source file that existed switches off. A mark on a single line (`# noqa: E501`) does not count."""
    for line in added_lines(before, after):
        if _WHOLE_FILE.match(line.strip()):
            yield f"check switched off for the whole file ('{quote(line, 80)}')"
            break
    lost = set(lost_lines(before, after))
    for line in added_lines(before, after):
        bare = _UNMEASURED.sub("", line)
        if bare != line and bare and bare in lost and _NEVER_MEASURED.search(bare) is None:
            yield f"code taken out of the measured coverage ('{quote(line, 80)}')"
            break


_KNOWS_TESTS = re.compile(
    r"PYTEST_CURRENT_TEST|['\"]pytest['\"]\s+(?:not\s+)?in\s+sys\.modules|_called_from_test|"
    r"NODE_ENV['\"\])]*\s*[!=]==?\s*['\"]test['\"]|"
    r"JEST_WORKER_ID|VITEST_WORKER_ID|\bmodules(?:\.get\(|\.__contains__\(|\[)\s*['\"](?:_?pytest|unittest)['\"]|"
    r"\b(?:pytest|unittest)['\"]\s+(?:not\s+)?in\s+\S{0,60}(?:sys|modules|argv)|\bsys\.argv\b.{0,60}\b(?:pytest|unittest)\b|"
    r"(?:environ(?:\.get)?|getenv|process\.env|import\.meta\.env|ENV)\W{1,4}(?:CI|VITEST|NODE_TEST_CONTEXT|TESTING|PYTEST_\w+|TEST_MODE)\b|"
    r"import\.meta\.vitest|\btesting\.Testing\(\)|flag\.Lookup\(\s*\"test\.|os\.Args\[0\].{0,60}\.test\b|\bcfg!\(test\)|"
    r"Rails\.env\.test\?|(?:RACK|RAILS|APP)_ENV['\"\])]*\s*==?\s*['\"]test['\"]|PHPUNIT_COMPOSER_INSTALL|"
    r"inspect\.(?:stack|currentframe)\(\).{0,120}\btest|process\.argv.{0,60}--test\b"
)


def knows_tests(before: str, after: str) -> Iterator[str]:
    """Product code that behaves otherwise while it is tested."""
    for line in added_lines(before, after):
        if not line.startswith(("#", "//")) and _KNOWS_TESTS.search(line):
            yield f"it behaves otherwise while it is tested ('{quote(line, 80)}')"
            break
