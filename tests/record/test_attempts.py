"""Which recorded runs count, where a session did some of them again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.records import make_verdict
from support.stored import harmful, keep, safe

from pytest_saber.errors import EvidenceError, UsageError
from pytest_saber.model.evidence import AgentIdentity, Evidence
from pytest_saber.record.attempts import LeftOut, Why, counting, repetition

ERROR = make_verdict("error")
OTHER = AgentIdentity("test", "test/other")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def attempt(kind: str) -> Path:
    """Record the same run once more: `verdict`, or what keeps it from having one."""
    path = keep(Path("runs"), content("2") if kind == "changed" else content("1"), verdict=verdict_of(kind))
    match kind:
        case "unfinished":
            for name in ("evidence.json", "verdict.json"):
                (path / name).unlink()
        case "killed":
            (path / "evidence.json").unlink()
            (path / "events.jsonl").write_text("")
        case "damaged":
            (path / "evidence.json").write_text("{")
        case "verdict damaged":
            (path / "verdict.json").write_text("{")
        case "copied":
            (path / "events.jsonl").unlink()
    return path


def verdict_of(kind: str) -> Any:
    return {"incident": ERROR, "unjudged": False}.get(kind, True)


def content(name: str, **changes: Any) -> Evidence:
    evidence = safe()
    return replace(evidence, task=replace(evidence.task, content_hash=name), **changes)


def test_runs_that_nothing_repeated_count_all() -> None:
    paths = [keep(Path("runs"), safe(), epoch=epoch) for epoch in (1, 2)]
    (paths[0] / "evidence.json").unlink()
    found = counting([Path("runs")])
    assert (found.runs, found.left_out, found.lines) == (tuple(paths), (), ())


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["unfinished", "verdict"], {0: (Why.UNFINISHED, 1)}),
        (["killed", "verdict"], {0: (Why.UNFINISHED, 1)}),
        (["damaged", "verdict"], {0: (Why.DAMAGED, 1)}),
        (["incident", "verdict"], {0: (Why.NO_VERDICT, 1)}),
        (["unjudged", "verdict"], {0: (Why.NO_VERDICT, 1)}),
        (["verdict damaged", "verdict"], {0: (Why.NO_VERDICT, 1)}),
        (["verdict", "changed"], {0: (Why.OTHER_TASK, 1)}),
        (["unfinished", "changed"], {0: (Why.UNFINISHED, 1)}),
        (["copied", "verdict"], {}),
        (["unfinished", "copied"], {0: (Why.UNFINISHED, 1)}),
        (["unfinished", "incident"], {0: (Why.UNFINISHED, 1)}),
        (["incident", "incident"], {0: (Why.NO_VERDICT, 1)}),
        (["unfinished", "unfinished"], {0: (Why.UNFINISHED, 1)}),
        (["unfinished", "verdict", "unfinished"], {0: (Why.UNFINISHED, 1)}),
        (["unfinished", "incident", "verdict"], {0: (Why.UNFINISHED, 2), 1: (Why.NO_VERDICT, 2)}),
        # What is worse, or no better, replaces nothing.
        (["verdict", "unfinished"], {}),
        (["verdict", "incident"], {}),
        (["incident", "unfinished"], {}),
        (["verdict", "verdict"], {}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_a_later_attempt_replaces(kinds: list[str], expected: dict[int, tuple[Why, int]]) -> None:
    paths = [attempt(kind) for kind in kinds]
    found = counting([Path("runs")])
    assert {item.run: (item.why, item.repeated) for item in found.left_out} == {
        paths[index]: (why, paths[by]) for index, (why, by) in expected.items()
    }
    assert sorted(found.runs) == sorted(path for index, path in enumerate(paths) if index not in expected)
    assert [repetition(path) for path in paths] == [
        LeftOut(path, expected[index][0], paths[expected[index][1]]) if index in expected else None
        for index, path in enumerate(paths)
    ]


def test_ten_attempts_are_taken_in_their_order() -> None:
    paths = [attempt("unfinished") for _ in range(10)] + [attempt("verdict")]
    found = counting([Path("runs")])
    assert found.runs == (paths[-1],)
    assert {item.repeated for item in found.left_out} == {paths[-1]}


def test_another_agent_task_or_session_repeats_nothing() -> None:
    first = attempt("unfinished")
    keep(Path("runs"), content("1", agent=OTHER))
    keep(Path("runs"), content("1"), task="t2")
    keep(Path("runs"), content("1"), epoch=2)
    keep(Path("elsewhere"), content("1"))
    found = counting([Path("runs"), Path("elsewhere")])
    assert found.left_out == ()
    assert first in found.runs
    # Which of both agents began the run whose record is empty, nobody knows.
    (first / "events.jsonl").write_text("")
    keep(Path("runs"), content("1"))
    assert counting([Path("runs")]).left_out == ()


def test_what_was_left_out_is_said_in_one_line_for_each_reason() -> None:
    for task in ("a", "b", "c", "d"):
        (keep(Path("runs"), safe(), task=task) / "evidence.json").unlink()
        keep(Path("runs"), safe(), task=task)
    keep(Path("runs"), safe(), task="e", verdict=ERROR)
    keep(Path("runs"), harmful(), task="e")
    assert counting([Path("runs")]).lines == (
        "4 unfinished runs left out: repeated as runs/s/a.e1~2, runs/s/b.e1~2, runs/s/c.e1~2 and 1 more",
        "1 run without a verdict left out: repeated as runs/s/e.e1~2",
    )


def test_runs_that_are_named_one_by_one() -> None:
    first, second = attempt("unfinished"), attempt("verdict")
    assert counting([second]).left_out == ()
    assert counting([first, second]).runs == (second,)
    with pytest.raises(UsageError) as caught:
        counting([first])
    assert str(caught.value) == (f"{first}: this unfinished run does not count, it was repeated as {second}; name that one")
    with pytest.raises(EvidenceError, match="none: there is no such file or folder"):
        counting([Path("none")])


def test_a_run_is_known_from_inside_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (attempt(kind).absolute() for kind in ("unfinished", "verdict"))
    monkeypatch.chdir(second)
    assert counting([Path()]).runs == (Path(),)
    monkeypatch.chdir(first)
    with pytest.raises(UsageError, match=f"repeated as {second}; name that one"):
        counting([Path()])


def test_a_session_that_rights_forbid_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    path = attempt("verdict")

    def forbidden(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    # Root may read everything, so the system's answer has to be given here.
    monkeypatch.setattr(Path, "iterdir", forbidden)
    with pytest.raises(EvidenceError) as caught:
        counting([path])
    assert str(caught.value) == (
        f"{path.parent.absolute()}: cannot be read: Permission denied; a run is told from its repetitions there"
    )
