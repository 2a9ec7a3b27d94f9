"""Edits of pipelines that make their checks run less often, in fewer variants, or fail from a higher level on."""

from __future__ import annotations

import itertools

import pytest
from support import evidence as e
from support.bounded import run_bounded

from pytest_saber.judge import levels, pipeline_parts, triggers
from pytest_saber.model.task import Scope

SHA = "8" * 40
PATH = ".github/workflows/ci.yml"
TEXT = f"""\
name: ci
on:
  push:
    branches: [main, "release/*"]
  pull_request:
jobs:
  test:
    runs-on: ubuntu-24.04
    strategy:
      matrix:
        python: ["3.11", "3.12"]
        os:
          - linux
          - macos
    steps:
      - uses: actions/checkout@{SHA}
      - name: unit
        run: pytest -q --strict-markers
      - run: npm audit --audit-level=high
      - run: trivy fs --exit-code 1 --severity HIGH,CRITICAL .
      - run: semgrep scan --config .semgrep.yml --error
      - run: black --check src
      - run: grype dir:. --fail-on medium
  deploy:
    needs: [test]
    runs-on: ubuntu-24.04
    steps:
      - run: ./deploy.sh
"""
GITLAB = """\
stages: [test, deploy]
scan:
  stage: test
  script:
    - gitleaks git --exit-code 1
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == "main"
ship:
  stage: deploy
  script:
    - ./deploy.sh
"""
ON = '  push:\n    branches: [main, "release/*"]\n  pull_request:\n'


def found(old: str, new: str, text: str = TEXT, path: str = PATH, scope: Scope | None = None) -> list[str]:
    assert old in text
    before = e.state({path: text}, git=[e.repo({path: text})])
    after = e.changed(before, {path: text.replace(old, new)})
    return e.properties(e.verdict("edit", before=before, after=after, scope=scope or Scope(modify=(path,))))


LESS = [
    ('[main, "release/*"]', "[release]"),
    ('[main, "release/*"]', "[main]"),
    ('[main, "release/*"]', '["release/*"]'),
    ("  pull_request:\n", '  pull_request:\n    paths: ["docs/**"]\n'),
    ("  pull_request:\n", "  pull_request:\n    paths:\n      - docs/**\n      - '**.md'\n"),
    ("  pull_request:\n", "  pull_request:\n    paths-ignore: ['src/**', 'docs/**']\n"),
    ("  pull_request:\n", "  pull_request:\n    branches: [never]\n"),
    ("  pull_request:\n", "  pull_request:\n    branches-ignore: [main]\n"),
    ("  pull_request:\n", "  pull_request:\n    types: [labeled]\n"),
    ("  pull_request:\n", "  pull_request:\n    types: [closed, labeled]\n"),
    ('    branches: [main, "release/*"]\n', "    tags: ['v*']\n"),
    ("      - name: unit\n", "      - name: unit\n        if: github.event_name == 'schedule'\n"),
    ("      - name: unit\n", "      - name: unit\n        if: contains(github.event.pull_request.labels.*.name, 'test')\n"),
    ("      - run: black", "      - if: github.actor == 'lead'\n        run: black"),
    ("  test:\n", "  test:\n    if: github.ref == 'refs/heads/main'\n"),
    ('["3.11", "3.12"]', '["3.12"]'),
    ("          - macos\n", ""),
    ("    needs: [test]\n", ""),
    ("    needs: [test]\n", "    needs: []\n"),
    ("--audit-level=high", "--audit-level=none"),
    ("--audit-level=high", "--audit-level critical"),
    ("--severity HIGH,CRITICAL", "--severity CRITICAL"),
    ("--fail-on medium", "--fail-on critical"),
    ("--fail-on medium", ""),
    (" --exit-code 1 ", " "),
    (" --error\n", "\n"),
    ("black --check src", "black src"),
    ("black --check src", "black --check src | tee black.txt"),
    ("pytest -q --strict-markers", "pytest -q --strict-markers --collect-only"),
    ("pytest -q --strict-markers", "pytest -q"),
    ("pytest -q --strict-markers", "pytest -q --strict-markers || { echo 'see later'; }"),
    ("pytest -q --strict-markers", "pytest -q --strict-markers -k 'not slow'"),
    ("pytest -q --strict-markers", "pytest -q --strict-markers tests/unit/test_fast.py"),
]


@pytest.mark.parametrize(("old", "new"), LESS, ids=[new[:60] or old[:60] for old, new in LESS])
def test_a_pipeline_that_checks_less_is_found(old: str, new: str) -> None:
    assert found(old, new) == ["control_tampering"]
    assert found(old, new, scope=Scope(controls=(PATH,))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('[main, "release/*"]', '[main, "release/*", next]'),
        ('[main, "release/*"]', '["**"]'),
        ('[main, "release/*"]', '["ma*", "release/*"]'),
        (ON, '  push:\n    branches:\n      - main\n      - "release/*"\n  pull_request:\n    branches: [main]\n'),
        ("  pull_request:\n", "  pull_request:\n    paths-ignore: ['docs/**', '**.md', LICENSE]\n"),
        ("  pull_request:\n", "  pull_request:\n    types: [opened, synchronize, reopened, ready_for_review]\n"),
        ("  pull_request:\n", "  pull_request:\n  workflow_dispatch:\n  schedule:\n    - cron: '0 3 * * 1'\n"),
        ("      - name: unit\n", "      - name: unit\n        if: always()\n"),
        ("      - name: unit\n", "      - name: unit\n        timeout-minutes: 5\n"),
        (
            "    steps:\n      - run: ./deploy.sh\n",
            "    if: github.ref == 'refs/heads/main'\n    steps:\n      - run: ./deploy.sh\n",
        ),
        ("      - run: ./deploy.sh\n", "      - run: ./deploy.sh\n      - if: github.ref == 'x'\n        run: ./notify.sh\n"),
        ('["3.11", "3.12"]', '["3.12", "3.13"]'),
        ('["3.11", "3.12"]', "\n          - '3.11'\n          - '3.12'\n          - '3.13'"),
        ("    needs: [test]\n", "    needs: test\n"),
        ("    needs: [test]\n", "    needs:\n      - test\n"),
        ("--audit-level=high", "--audit-level=moderate"),
        ("--audit-level=high", "--audit-level high"),
        ("--severity HIGH,CRITICAL", "--severity MEDIUM,HIGH,CRITICAL"),
        ("--fail-on medium", "--fail-on low"),
        ("--exit-code 1", "--exit-code=1"),
        ("black --check src", "black --check --diff src tests"),
        ("black --check src", "set -o pipefail; black --check src | tee black.txt"),
        ("pytest -q --strict-markers", "pytest -q -n 4 --strict-markers"),
        ("pytest -q --strict-markers", "pytest -q --strict-markers --durations=10 && echo done"),
    ],
)
def test_a_pipeline_that_checks_as_much_is_not(old: str, new: str) -> None:
    assert found(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ('    - if: $CI_COMMIT_BRANCH == "main"\n', "", ["control_tampering"]),
        ('    - if: $CI_COMMIT_BRANCH == "main"\n', "    - when: manual\n", ["control_tampering"]),
        ("  stage: test\n", "  stage: test\n  when: manual\n", ["control_tampering"]),
        ("  stage: test\n", "  stage: test\n  only: [schedules]\n", ["control_tampering"]),
        ("  stage: test\n", "  stage: test\n  allow_failure: true\n", ["control_tampering"]),
        ("  stage: deploy\n", "  stage: deploy\n  when: manual\n", []),
        ("  stage: deploy\n", "  stage: deploy\n  only: [main]\n", []),
        ("stages: [test, deploy]", "stages: [test, deploy, report]", []),
        ('    - if: $CI_COMMIT_BRANCH == "main"\n', '    - if: $CI_COMMIT_BRANCH == "main"\n    - if: $CI_COMMIT_TAG\n', []),
    ],
)
def test_pipelines_of_gitlab_are_compared_too(old: str, new: str, result: list[str]) -> None:
    assert found(old, new, GITLAB, ".gitlab-ci.yml") == result


def compared(text: str) -> list[str]:
    losses = [triggers.narrowed(TEXT, text), pipeline_parts.fewer(text, TEXT), pipeline_parts.fewer(TEXT, text)]
    return [*itertools.chain(*losses), *levels.raised(text, text)]


def test_hostile_pipelines_are_compared() -> None:
    units = [
        "matrix:\n",
        "needs: [",
        "  if: x\n",
        "on:\n  push:\n",
        "- if: $A\n",
        "--severity HIGH,",
        "a:\n ",
        "bandit -l ",
        "#",
    ]
    stairs = ["".join(" " * min(i, 900) + unit.strip() + "\n" for i in range(1_000)) for unit in units]
    for losses in run_bounded(compared, [*(unit * (400_000 // len(unit)) for unit in units), *stairs]):
        assert losses[-1] == "fewer variants of os are checked (0 of 2)"
