"""Agreement of two raters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.records import make_record
from support.stored import harmful, labelled, safe

from pytest_saber.annotate import UNDECIDED
from pytest_saber.annotate.agreement import Agreement, compare, semantic_label, summary_lines, table
from pytest_saber.model.events import Incident
from pytest_saber.model.evidence import Annotation
from pytest_saber.model.summary import SemanticLabel
from pytest_saber.model.terms import TerminationReason
from pytest_saber.model.verdict import Rules


def test_cells_percent_and_kappa() -> None:
    """The example of Cohen's kappa in every textbook: 50 applications, 20 yes by both, 15 no by both, 5 and 10 apart."""
    found = compare([(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15)
    assert found == Agreement(20, 5, 10, 15)
    assert (found.n, found.agreed, found.percent) == (50, 35, 70.0)
    assert found.kappa == pytest.approx(0.4)
    assert table(found) == [
        "rules and semantic judge agree on 70.0 %, Cohen's kappa 0.40",
        "harmful by both 20, by the rules only 5, by the judge only 10, by neither 15",
    ]


@pytest.mark.parametrize(
    ("found", "kappa"),
    [
        (Agreement(0, 0, 0, 0), None),
        (Agreement(5, 0, 0, 0), None),
        (Agreement(0, 0, 0, 7), None),
        (Agreement(3, 0, 0, 4), 1.0),
        (Agreement(0, 3, 3, 0), -1.0),
        (Agreement(0, 5, 0, 0), 0.0),
    ],
)
def test_kappa_where_it_is_defined(found: Agreement, kappa: float | None) -> None:
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))


def test_the_interval_is_wilsons() -> None:
    assert compare([]).interval is None
    assert Agreement(9, 1, 0, 0).interval == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert Agreement(20, 0, 0, 20).interval == pytest.approx((0.9124, 1.0), abs=1e-4)


def test_labels_of_a_run() -> None:
    assert semantic_label(safe(), Rules()) is None
    assert semantic_label(labelled(safe(), is_harmful=True), Rules()) == SemanticLabel(rules=False, harmful=True)
    assert semantic_label(labelled(harmful(), is_harmful=False), Rules()) == SemanticLabel(rules=True, harmful=False)


def test_the_rules_label_leaves_the_other_layer_out_whatever_counts() -> None:
    for rules in (Rules(), Rules(semantic=False)):
        assert semantic_label(labelled(safe(), is_harmful=True), rules) == SemanticLabel(rules=False, harmful=True)


def test_why_there_is_no_label() -> None:
    undecided = replace(safe(), annotations=(Annotation(UNDECIDED, {"model": "openai/x"}),))
    assert semantic_label(undecided, Rules()) == SemanticLabel(False, None, "too few of its answers were valid for a majority")
    failed = replace(safe(), incidents=(Incident("judge", "down"),))
    assert semantic_label(failed, Rules()) == SemanticLabel(False, None, "down")
    stopped = replace(
        safe(reason=TerminationReason.INCIDENT), incidents=(Incident("engine", "gone"), Incident("judge", "down"))
    )
    assert semantic_label(stopped, Rules()) is None


def test_the_summary_counts_labels_and_names_what_is_missing() -> None:
    labels = [SemanticLabel(True, True), SemanticLabel(False, True), SemanticLabel(False, None, "down\x1b"), None]
    records = [replace(make_record(), semantic=label) for label in [*labels, SemanticLabel(False, None, "down\x1b")]]
    assert summary_lines(records) == [
        "semantic judge: labelled 2 of 4 runs",
        "  rules and semantic judge agree on 50.0 %, Cohen's kappa 0.00",
        "  harmful by both 1, by the rules only 0, by the judge only 1, by neither 0",
        "  no label for 2: down\\x1b",
        "  those verdicts are of the rules alone",
    ]
    assert summary_lines([make_record()]) == []
