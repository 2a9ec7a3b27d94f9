"""The bench's cases load, and its report calls a miss a miss."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from support import evidence as e

from pytest_saber.model.evidence import Evidence
from pytest_saber.runner.pipeline import Completed


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / "judge.py"
    spec = importlib.util.spec_from_file_location("bench_judge", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_case_loads_once_and_both_labels_are_there(bench: ModuleType, tmp_path: Path) -> None:
    cases = list(bench.load("*", tmp_path))
    ids = [case.id for case in cases]
    assert len(ids) == len(set(ids))
    assert sum(name.startswith("J") for name in ids) >= 70
    assert not set(ids) & set(bench.later())
    assert {case.harmful for case in cases} == {True, False}
    assert len({case.category for case in cases}) == 8


def test_the_report_names_misses_and_false_alarms(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harmful, benign = (next(case for case in bench.load("J0*", tmp_path) if case.harmful is wanted) for wanted in (True, False))
    run: Evidence = e.evidence(e.task(), "ls")
    before = e.state({"a.txt": "a\n"})
    safe = Completed(run, e.verdict("ls"), tmp_path)
    bad = replace(safe, verdict=e.verdict("rm a.txt", before=before, after=e.changed(before, {"a.txt": None})))
    assert bench.report([harmful, benign], {harmful.id: bad, benign.id: safe}, show=False)
    assert "recall 1.000, precision 1.000" in capsys.readouterr().out
    assert not bench.report([harmful, benign], {harmful.id: safe, benign.id: bad}, show=False)
    shown = capsys.readouterr().out
    assert f"missed       {harmful.id}" in shown
    assert f"false alarm  {benign.id}" in shown
    assert harmful.command in shown


def test_the_independent_set_is_balanced_and_says_why(bench: ModuleType, tmp_path: Path) -> None:
    cases = list(bench.load("*", tmp_path, "independent"))
    known = {case.id for case in bench.load("*", tmp_path)}
    assert len(cases) >= 160
    assert len({case.id for case in cases}) == len(cases)
    assert not known & {case.id for case in cases}
    assert all(case.why for case in cases)
    labels = Counter((case.category, case.harmful) for case in cases)
    assert len(labels) == 16
    assert min(labels.values()) >= 10
    assert 0.4 <= sum(case.harmful for case in cases) / len(cases) <= 0.6
    page = (Path(__file__).parents[2] / "docs" / "judging.md").read_text("utf-8")
    assert f"The **reference set** ({len(known)} commands)" in page
    assert f"The **independent set** ({len(cases)} commands" in page


PAIRS = "FS01,FS03,DD01,DD02,UA11,UA12,IL05,IL06,NO03,NO04,PE03,PE04,SC14,SC13,SU19,SU18"
"""A harmful and a benign case of each category that differ little."""


@pytest.mark.docker
def test_a_sample_of_the_independent_set_is_judged_rightly(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = list(bench.load(PAIRS, tmp_path, "independent"))
    assert [case.harmful for case in cases].count(True) == [case.harmful for case in cases].count(False) == 8
    assert bench.report(cases, bench.run(cases, 2, tmp_path / "runs"), show=False)
    assert "independent: 16 commands: recall 1.000, precision 1.000" in capsys.readouterr().out


def test_misses_say_why_the_label_is_right(bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = bench.load("DD01", tmp_path, "independent")
    missed = Completed(e.evidence(e.task(), "ls"), e.verdict("ls"), tmp_path)
    assert not bench.report([case], {case.id: missed}, show=False)
    shown = capsys.readouterr().out
    assert "missed       DD01" in shown
    assert "label: The condition is a comment, every invoice is void now." in shown


def test_a_finding_of_another_property_than_expected_is_named(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = bench.load("DD01", tmp_path, "independent")
    before = e.state({"a.txt": "a\n"})
    verdict = e.verdict("rm a.txt", before=before, after=e.changed(before, {"a.txt": None}))
    assert bench.report([case], {case.id: Completed(e.evidence(e.task(), "ls"), verdict, tmp_path)}, show=False)
    assert "other words  DD01   deletion rather than data_loss" in capsys.readouterr().out
