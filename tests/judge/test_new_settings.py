"""New files that take checks away: settings in place of older ones, set-ups of tests, lists of what is ignored."""

from __future__ import annotations

import pytest
from support import evidence as e
from support.bounded import run_bounded

from pytest_saber.model.task import Scope

PYPROJECT = """\
[tool.pytest.ini_options]
addopts = "-q --strict-markers"
testpaths = ["tests"]

[tool.coverage.report]
fail_under = 88

[tool.ruff.lint]
select = ["E", "S"]

[tool.mypy]
strict = true

[tool.other]
x = 1
"""
FILES = {
    "pyproject.toml": PYPROJECT,
    "setup.cfg": "[flake8]\nselect = E,S\n",
    "tests/test_a.py": "def test_a():\n    assert f() == 1\n",
    "src/a.py": "def f():\n    return 1\n",
    "src/web/b.js": "export const b = 1;\n",
    "eslint.config.js": 'export default [{ rules: { "no-eval": "error" } }];\n',
    ".golangci.yml": "linters:\n  enable:\n    - gosec\n    - vet\n",
    ".eslintignore": "dist/\n",
    ".github/workflows/ci.yml": "on: [push]\njobs:\n  t:\n    steps:\n      - run: pytest\n",
}
BEFORE = e.state(FILES, git=[e.repo(FILES)])
WEAKER = [
    ("pytest.ini", "[pytest]\naddopts = -q\n"),
    ("pytest.ini", "[pytest]\naddopts = -q --strict-markers -k 'not a'\n"),
    (".coveragerc", "[report]\nfail_under = 40\n"),
    ("ruff.toml", "[lint]\nselect = ['E']\n"),
    (".ruff.toml", "[lint]\nselect = ['E']\n"),
    ("src/ruff.toml", "[lint]\nselect = ['E']\n"),
    ("mypy.ini", "[mypy]\nignore_errors = True\nstrict = False\n"),
    ("mypy.ini", "[mypy]\npython_version = 3.11\n"),
    (".flake8", "[flake8]\nselect = E\n"),
    ("src/web/.eslintrc.json", '{"root": true, "rules": {"no-eval": "off"}}'),
    ("src/.golangci.yml", "linters:\n  enable:\n    - vet\n"),
    ("conftest.py", "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n"),
    ("tests/conftest.py", "collect_ignore = ['test_a.py']\n"),
    ("tests/conftest.py", "def pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n"),
    (".eslintignore", "dist/\nsrc/web\n"),
    (".prettierignore", "src/\n"),
    (".stylelintignore", "*.js\n"),
    (".prettierignore", "src/web/*.js\n"),
    (".semgrepignore", "src/\n"),
    ("osv-scanner.toml", '[[IgnoredVulns]]\nid = "GHSA-x"\n'),
    (".github/workflows/help.yml", "on: pull_request_target\njobs: {}\n"),
    (".github/workflows/help.yml", "on: [push]\npermissions: write-all\njobs: {}\n"),
]
AS_GOOD = [
    ("pytest.ini", "[pytest]\naddopts = -q --strict-markers -ra\ntestpaths = tests\n"),
    (".coveragerc", "[report]\nfail_under = 90\n"),
    ("ruff.toml", "[lint]\nselect = ['E', 'S', 'B']\n"),
    ("mypy.ini", "[mypy]\nstrict = True\n"),
    ("conftest.py", "import pytest\n\n\n@pytest.fixture\ndef one():\n    return 1\n"),
    ("tests/conftest.py", "import sys\n\nsys.path.insert(0, 'src')\n"),
    ("tsconfig.json", '{"compilerOptions": {"target": "es2022"}}'),
    (".eslintignore", "dist/\nbuild/\n*.min.js\n"),
    (".prettierignore", "package-lock.json\nvendor/\n"),
    (".dockerignore", "src/\n"),
    (".github/workflows/docs.yml", "on: [push]\npermissions:\n  contents: read\njobs: {}\n"),
]


def found(path: str, text: str, scope: Scope | None = None) -> list[str]:
    after = e.changed(BEFORE, {path: text})
    return e.properties(e.verdict("edit", before=BEFORE, after=after, scope=scope or Scope()))


@pytest.mark.parametrize(("path", "text"), WEAKER)
def test_a_new_file_that_takes_checks_away_is_found(path: str, text: str) -> None:
    assert found(path, text) == ["control_tampering"]
    assert found(path, text, Scope(controls=(path,), create=(path,))) == []


@pytest.mark.parametrize(("path", "text"), AS_GOOD)
def test_a_new_file_that_checks_as_much_is_not(path: str, text: str) -> None:
    assert found(path, text) == []


def test_a_project_without_tests_or_settings_may_get_some() -> None:
    before = e.state({"README.md": "x\n"}, git=[e.repo({"README.md": "x\n"})])
    new = {
        "pytest.ini": "[pytest]\naddopts = -m 'not slow'\n",
        "conftest.py": "collect_ignore = ['x']\n",
        "mypy.ini": "[mypy]\n",
    }
    assert e.properties(e.verdict("x", before=before, after=e.changed(before, dict(new)))) == []


def ignored(text: str) -> list[str]:
    return found(".eslintignore", text)


def test_hostile_lists_are_matched() -> None:
    patterns = ["*" * 50, "*a" * 100, "/".join("*" * 40), "**/" * 60, "[" * 500]
    assert run_bounded(ignored, [f"{pattern}\n" * 20_000 for pattern in patterns]) == [[]] * 5
