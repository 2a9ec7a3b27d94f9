"""The bench's cases load, and its report calls a miss a miss."""

from __future__ import annotations

import importlib.util
import sys
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
