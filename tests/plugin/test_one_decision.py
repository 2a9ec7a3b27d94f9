"""The status that a session's reports have is the one that its exit code says, and a policy that `report` overrode is kept."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from support.suites import Suite, document

SAFE, HARMFUL = "--saber-model=reference/safe", "--saber-model=reference/harmful"
REPORTS = ("--saber-json=out.json", "--saber-markdown=out.md", "--junitxml=out.xml")
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
FAILING = "def test_plain(): assert False\n"
MARKS = {"passed": "✅ passed", "failed": "❌ failed", "inconclusive": "⚠️ inconclusive", "off": "off"}


def read(suite: Suite) -> Any:
    return json.loads((suite.path / "out.json").read_text())


CASES = {
    "strict safe": ((SAFE,), "", "off", 0),
    "strict harmful": ((HARMFUL,), "", "failed", 1),
    "strict harmful within a limit": ((HARMFUL, "--saber-max-hsr=1", "--saber-policy=strict"), "", "failed", 1),
    "strict safe with a limit": ((SAFE, "--saber-max-hsr=1", "--saber-policy=strict"), "", "passed", 0),
    "strict and another test": ((SAFE,), FAILING, "failed", 1),
    "strict with incidents": ((HARMFUL, "-k", "torn"), "", "inconclusive", 1),
    "limit and another test": ((SAFE, "--saber-max-hsr=1"), FAILING, "failed", 1),
    "limit": ((HARMFUL, "--saber-max-hsr=0.2", "--saber-max-error-rate=0.5"), "", "failed", 10),
    "budget": ((HARMFUL, "--saber-max-hsr=1", "--saber-max-error-rate=0.5"), "", "passed", 0),
    "strict with incidents in the budget": (
        (HARMFUL, "--saber-policy=strict", "--saber-max-error-rate=0.5", "--deselect=tasks/a.yaml", "--deselect=tasks/b.yaml"),
        "",
        "inconclusive",
        1,
    ),
    "report and another test": ((HARMFUL, "--saber-policy=report"), FAILING, "off", 1),
}


@pytest.fixture
def mixed(suite: Suite) -> Suite:
    """Two tasks with harm in `reference/harmful`, and one whose engine fails in it."""
    suite.tasks("a", "b")
    suite.add("tasks/torn.yaml", document("torn", harmful="fault"))
    return suite


@pytest.mark.parametrize("case", CASES)
def test_every_report_says_what_the_exit_code_says(mixed: Suite, case: str) -> None:
    arguments, other, status, code = CASES[case]
    if other:
        mixed.add("test_other.py", other)
    result = mixed.run(*arguments, *REPORTS)
    assert result.ret == code
    assert read(mixed)["gate"]["status"] == status
    page = (mixed.path / "out.md").read_text()
    assert page.partition("\n")[0].partition(", ")[0] == f"## Agent safety gate: {MARKS[status]}"
    given = ET.parse(mixed.path / "out.xml").getroot().iterfind(".//properties/property[@name='saber.gate']")
    assert [item.get("value") for item in given] == [status]
    shown = [line for line in result.outlines if line.startswith("gate: ")]
    assert shown == ([f"gate: {status}"] if read(mixed)["gate"]["rules"] else [])


@WORKERS
def test_what_tests_say_is_a_rule_and_no_test_case_beside_them(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a", "b")
    suite.add("test_other.py", FAILING)
    result = suite.run(HARMFUL, *REPORTS, *workers)
    result.assert_outcomes(failed=3)
    assert [(rule["name"], rule["message"]) for rule in read(suite)["gate"]["rules"]] == [
        ("strict", "2 runs are harmful, and the policy strict (default) lets none pass: a epoch 1, b epoch 1."),
        ("tests", "1 other test failed, whatever the runs came to: test_other.py::test_plain."),
    ]
    result.stdout.no_fnmatch_line("*saber-gate::*")


def test_github_gets_errors_for_harm_under_strict(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.tasks("a")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = suite.run(HARMFUL)
    result.stdout.fnmatch_lines(["::error title=saber-gate strict%3A failed::1 run is harmful, and the policy strict*"])
    result.stdout.fnmatch_lines(["::error file=tasks/a.yaml,*"])


@pytest.mark.parametrize(
    ("typed", "ini", "environ", "overridden"),
    [
        ([], "", "", None),
        (["--saber-policy=strict", "--saber-policy=gate"], "saber_policy = report", "report", ("gate", "--saber-policy")),
        ([], "saber_policy = strict", "", ("strict", "ini saber_policy")),
        ([], "saber_policy = strict", "gate", ("gate", "env SABER_POLICY")),
        ([], "addopts = --saber-policy=strict", "", ("strict", "--saber-policy")),
    ],
    ids=["nothing", "options", "file", "variable", "addopts"],
)
def test_a_report_keeps_the_policy_that_another_one_overrides(
    suite: Suite,
    typed: list[str],
    ini: str,
    environ: str,
    overridden: tuple[str, str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suite.tasks("a")
    suite.pytester.makeini(f"[pytest]\n{ini}\n")
    if environ:
        monkeypatch.setenv("SABER_POLICY", environ)
    result = suite.run(HARMFUL, *typed, "--saber-policy=report", "--saber-json=out.json")
    assert result.ret == 0
    assert read(suite)["settings"] == {"saber_policy": {"value": "report", "origin": "--saber-policy"}}
    expected = {} if overridden is None else {"saber_policy": dict(zip(("value", "origin"), overridden, strict=True))}
    assert read(suite)["overridden"] == expected


def test_a_policy_that_cannot_be_read_is_an_error_although_another_one_overrides_it(suite: Suite) -> None:
    """The merge of the shards would be the first to tell."""
    suite.tasks("a")
    result = suite.run(SAFE, "--saber-policy=stict", "--saber-policy=report")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = "ERROR: --saber-policy: 'stict' is not one of strict, gate, report; did you mean 'strict'?"
    result.stderr.fnmatch_lines([text])


@WORKERS
def test_a_shard_that_only_reports_is_not_compared_with_the_whole_baseline(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.tasks("a", "b")
    suite.run(SAFE, "--saber-baseline=b.json", "--saber-update-baseline")
    result = suite.run(
        HARMFUL, "--saber-baseline=b.json", "--saber-shard=1/2", "--saber-policy=report", "-rx", *REPORTS, *workers
    )
    assert result.ret == 0
    assert [rule["name"] for rule in read(suite)["gate"]["rules"]] == ["coverage", "errors", "effective"]
    assert read(suite)["settings"]["saber_baseline"]["value"] == "b.json"
    result.stdout.fnmatch_lines(["XFAIL tasks/a.yaml::a - *new: harmful_completion*"])
