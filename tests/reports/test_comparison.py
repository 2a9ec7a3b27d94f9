"""The table of several models, in every report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.records import make_records, make_summary

from pytest_saber.errors import UsageError
from pytest_saber.model.evidence import AgentIdentity
from pytest_saber.model.summary import GateResult, ModelComparison, ModelRow, Rate, Summary
from pytest_saber.reports import json_reader, json_report, markdown, terminal
from pytest_saber.reports.escape import cells

ROWS = (
    ModelRow("openai/a", "", Rate(3, 12, 0.25, 0.1, 0.5)),
    ModelRow("openai/a", "A", Rate(1, 6, 1 / 6, 0.05, 0.6)),
    ModelRow("openai/b", "", Rate(6, 14, 3 / 7, 0.2, 0.7), 11, 9, 13, 12, 1, 0, 0.18182, -0.04, 0.41, 0.1, 0.2),
    ModelRow("openai/b", "A", Rate(4, 6, 2 / 3, 0.3, 0.9), 6, 6, 6, 6, 0, 0, 0.5, 0.1, 0.9, 0.0001, 0.0002),
    ModelRow("openai/c", "", Rate(0, 0, None, None, None), note="no run has a verdict"),
)
GATE = GateResult("off", (), ModelComparison("openai/a", ROWS))


def summary() -> Summary:
    runs = [
        run for model in "abc" for run in make_records(["safe_completion"], agent=AgentIdentity("react", f"openai/{model}"))
    ]
    return make_summary(runs)


def test_the_terminal_shows_a_row_for_each_model_and_scenario() -> None:
    lines = terminal.render(summary(), GATE, 100)
    start = next(number for number, text in enumerate(lines) if text.startswith("models compared: "))
    end = lines.index("", start)
    assert "\n".join(lines[start:end]) == "\n".join(
        [
            "models compared: change of HSR in points from openai/a, over the tasks on which both had an",
            "  effective run; paired by task, clustered by template; p is two-sided and corrected by Holm's",
            "  method over 2 models, and over their scenarios, each interval holds by itself; runs and alone: the",
            "  model's : the reference's, alone those on tasks without an effective run of the other",
            "            HSR       95 %  change        95 %       p  tasks   runs  alone",
            "openai/a  0.250  0.10-0.50    ref.",
            "  A       0.167  0.05-0.60",
            "openai/b  0.429  0.20-0.70   +18.2   -4 to +41   0.200     11  13:12    1:0",
            "  A       0.667  0.30-0.90   +50.0  +10 to +90  <0.001      6    6:6    0:0",
            "openai/c      -          -",
            "  openai/c is not compared: no run has a verdict",
        ]
    )


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_columns_give_way_to_the_width(width: int) -> None:
    long = replace(GATE, comparison=ModelComparison("m" * 90, tuple(replace(row, model=row.model + "m" * 70) for row in ROWS)))
    lines = terminal.render(summary(), long, width)
    assert max(map(cells, lines)) <= width
    assert any("change" in text and "HSR" in text for text in lines)


def test_figures_without_room_follow_below() -> None:
    long = ModelComparison("openai/a", tuple(replace(row, model=row.model + "m" * 20) for row in ROWS))
    lines = terminal.render(summary(), replace(GATE, comparison=long), 80)
    start = next(number for number, text in enumerate(lines) if text.split() == ["runs", "alone"])
    assert lines[start - 1 : start + 3] == [
        "",
        "                           runs  alone",
        "openai/bmmmmmmmmmmmmm...  13:12    1:0",
        "  A                         6:6    0:0",
    ]


def test_markdown_has_a_section_and_escapes_names() -> None:
    hostile = replace(ROWS[4], model="x|<b>y", note="a|b")
    text = markdown.render(summary(), replace(GATE, comparison=ModelComparison("openai/a", (*ROWS[:4], hostile))))
    lines = text.splitlines()
    start = lines.index("### Models compared")
    assert lines[start + 2 : start + 9] == [
        "|  | HSR (95 %) | change, points | 95 % | p | tasks | runs | runs of one alone |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| openai/a (reference) | 25.0 % (10 to 50) |  |  |  |  |  |  |",
        "| &emsp;A | 16.7 % (5 to 60) |  |  |  |  |  |  |",
        "| openai/b | 42.9 % (20 to 70) | **+18.2** | -4 to +41 | 0.200 | 11 | 13 : 12 | 1 : 0 |",
        "| &emsp;A | 66.7 % (30 to 90) | **+50.0** | +10 to +90 | <0.001 | 6 | 6 : 6 | 0 : 0 |",
        "| x\\|\\<b\\>y | - |  |  |  | a\\|b |  |  |",
    ]
    assert lines[start + 10].startswith(
        "Change of HSR in points from openai/a, over the tasks on which both had an effective run;"
    )


def test_two_models_without_scenarios_need_no_correction() -> None:
    lines = terminal.render(summary(), replace(GATE, comparison=ModelComparison("openai/a", (ROWS[0], ROWS[2]))), 300)
    assert any("clustered by template; p is two-sided; runs and alone" in text for text in lines)


def test_the_json_report_has_every_number_and_reads_back(tmp_path: Path) -> None:
    document = json_report.document(summary(), GATE)
    path = tmp_path / "out.json"
    path.write_text(json_report.dumps(document))
    value = json.loads(path.read_text())["comparison"]
    assert (value["reference"], value["correction"]) == ("openai/a", "holm")
    assert value["rows"][2] == {
        "model": "openai/b",
        "slice": "",
        "hsr": {"count": 6, "n": 14, "value": 3 / 7, "low": 0.2, "high": 0.7},
        "tasks": 11,
        "templates": 9,
        "runs": 13,
        "reference_runs": 12,
        "unmatched_runs": 1,
        "unmatched_reference_runs": 0,
        "change": 0.18182,
        "low": -0.04,
        "high": 0.41,
        "p": 0.1,
        "adjusted": 0.2,
        "note": "",
    }
    assert json_reader.load(path).gate == GATE
    assert json_report.document(summary(), GateResult("off"))["comparison"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": []}, "comparison has no rows"),
        ({"rows": [3]}, "a part of comparison is 3, not an object"),
        ({"rows": [{"model": "a"}]}, "key 'slice' is missing"),
        ({"hsr": None}, "a part of comparison is None, not an object"),
        ({"tasks": "9"}, "a part of comparison is '9', not a whole number"),
        ({"model": 7}, "a part of comparison is 7, not a text"),
        ({"change": "x"}, "could not convert string to float: 'x'"),
    ],
)
def test_what_is_no_comparison_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    document = json.loads(json_report.dumps(json_report.document(summary(), GATE)))
    if "rows" in change:
        document["comparison"] |= change
    else:
        document["comparison"]["rows"][2] |= change
    path = tmp_path / "out.json"
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError) as caught:
        json_reader.load(path)
    assert str(caught.value) == f"{path}: not a report of pytest-saber: {message}"
