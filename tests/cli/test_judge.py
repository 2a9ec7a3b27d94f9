"""`pytest-saber judge`: what changed, what cannot be judged, and asking a model about recorded runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.model_server import ModelServer, Status
from support.semantic import HARMFUL, SAFE, said
from support.stored import harmful, keep, labelled, safe
from support.suites import document

from pytest_saber import tasks
from pytest_saber.cli.main import run
from pytest_saber.judge import judge
from pytest_saber.judge.semantic import SEMANTIC
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Rules
from pytest_saber.record.store import RunStore


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)


def untimed(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed, without how long it took."""
    return re.sub(r" in [0-9.]+ s(, \d+ a minute)?", "", capsys.readouterr().out)


def test_unchanged_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(tmp_path, safe())
    keep(tmp_path, harmful(), epoch=2)
    assert run(["judge", str(tmp_path)]) == 0
    assert untimed(capsys) == "2 runs judged again: none changed\n"


def test_what_changed_is_shown_and_written_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = replace(judge(safe().task, safe()), judge_version="0")
    path = keep(tmp_path, harmful(), verdict=old)
    other = keep(tmp_path, safe(), verdict=judge(harmful().task, harmful()), epoch=2)
    assert run(["judge", str(tmp_path)]) == 1
    out = untimed(capsys).splitlines()
    (finding,) = judge(harmful().task, harmful()).findings
    lost = f"deletion: {finding.message}"
    assert out == [
        f"{path}: safe_completion -> harmful_completion",
        f"    + {lost}",
        "    cause: none -> task_misunderstood",
        "    judge_version: 0 -> 1",
        f"{other}: harmful_completion -> safe_completion",
        f"    - {lost}",
        "    cause: task_misunderstood -> none",
        "2 runs judged again: 2 changed",
    ]
    store = RunStore(tmp_path)
    assert store.load_verdict(path) == old
    assert run(["judge", str(tmp_path), "--update"]) == 0
    assert "2 changed, the new verdicts are written" in capsys.readouterr().out
    verdict = store.load_verdict(path)
    assert verdict is not None
    assert verdict.outcome is Outcome.HARMFUL_COMPLETION
    assert run(["judge", str(tmp_path)]) == 0


def test_words_alone_are_a_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(tmp_path, safe(), verdict=replace(judge(safe().task, safe()), reason="All is well."))
    assert run(["judge", str(tmp_path)]) == 1
    assert "safe_completion, as before\n    only words or proofs differ\n" in capsys.readouterr().out


def test_a_run_without_a_verdict_gets_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(tmp_path, safe(), verdict=False)
    assert run(["judge", str(path)]) == 1
    assert f"{path}: safe_completion (it had no verdict)\n" in capsys.readouterr().out
    assert run(["judge", str(path), "--update"]) == 0
    assert RunStore(tmp_path).load_verdict(path) is not None


def test_the_same_evidence_gives_the_same_bytes(tmp_path: Path) -> None:
    """Verdicts of two stores, one of them written on another day by other code paths, are equal to the byte."""
    texts = set()
    for number in range(3):
        path = keep(tmp_path / str(number), harmful())
        (path / "verdict.json").unlink()
        assert run(["judge", str(path), "--update"]) == 0
        texts.add((path / "verdict.json").read_bytes())
    assert len(texts) == 1


def test_rules_are_those_of_the_stored_verdict_unless_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = labelled(safe(), is_harmful=True)
    keep(tmp_path, evidence, verdict=judge(evidence.task, evidence, Rules(semantic=False)))
    assert run(["judge", str(tmp_path)]) == 0
    capsys.readouterr()
    assert run(["judge", str(tmp_path), "--rules", "effects,attempts,reads,semantic"]) == 1
    assert "rules: effects,attempts,reads -> effects,attempts,reads,semantic" in capsys.readouterr().out
    for words in ("effects", "none"):
        assert run(["judge", str(tmp_path), "--rules", words]) == 1
        assert "rules: effects,attempts,reads -> effects\n" in capsys.readouterr().out
    assert run(["judge", str(tmp_path), "--rules", "attempts"]) == 1
    assert "rules: effects,attempts,reads -> effects,attempts\n" in capsys.readouterr().out


def test_a_store_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep(tmp_path, safe(), verdict=False)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert run(["judge", str(tmp_path), "--update"]) == 2
    assert capsys.readouterr().err == f"pytest-saber judge: {path}: cannot be written: No space left on device\n"
    assert sorted(file.name for file in path.iterdir()) == ["events.jsonl", "evidence.json"]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(tmp_path, harmful(), verdict=judge(safe().task, safe()))
    broken = keep(tmp_path, safe(), epoch=2)
    (broken / "evidence.json").write_text("{")
    assert run(["judge", str(tmp_path), "--json"]) == 2
    value = json.loads(capsys.readouterr().out)
    assert (value["judged"], value["updated"]) == (1, False)
    (change,) = value["changed"]
    assert (change["run"], change["task"], change["epoch"]) == (str(path), "t", 1)
    assert (change["before"]["outcome"], change["after"]["outcome"]) == ("safe_completion", "harmful_completion")
    assert value["left_out"] == []
    (fault,) = value["faults"]
    assert fault["run"] == str(broken)
    assert "truncated JSON" in fault["message"]


def damaged(path: Path, change: str) -> None:
    file = path / "evidence.json"
    text = file.read_text()
    match change:
        case "truncated":
            file.write_text(text[: len(text) // 2])
        case "corrupt":
            file.write_text(text.replace('"events":[', '"events":[[[', 1))
        case "binary":
            file.write_bytes(b"\xff\xfe" + text.encode())
        case "empty":
            file.write_text("")
        case "newer":
            file.write_text(text.replace('"schema":1', '"schema":99', 1))
        case "field":
            file.write_text(text.replace('"final_response":', '"final_respons":', 1))
        case "unfinished":
            file.unlink()
        case "verdict":
            (path / "verdict.json").write_text('{"saber":"verdict"')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("truncated", "evidence.json: truncated JSON at line 1, column "),
        ("corrupt", "evidence.json: corrupt JSON at line 1, column "),
        ("binary", "evidence.json: corrupt: byte 0 is not ASCII, which every record is"),
        ("empty", "evidence.json: truncated JSON at line 1, column 1"),
        ("newer", "evidence.json: schema 99 is newer than 1, the newest that this pytest-saber reads; upgrade pytest-saber"),
        ("field", "evidence.final_response: the field is missing"),
        ("unfinished", "the run did not finish, so it has no evidence.json; what happened until then is in events.jsonl"),
        (
            "verdict",
            "Expecting ',' delimiter; remove the file, and `pytest-saber judge --update` writes it anew from the evidence",
        ),
    ],
)
def test_damaged_evidence_is_named_and_never_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, message: str
) -> None:
    keep(tmp_path, safe())
    path = keep(tmp_path, safe(), epoch=2)
    damaged(path, change)
    assert run(["judge", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"FAULT: {path}")
    assert message in err
    assert run(["judge", str(tmp_path)]) == 2
    assert untimed(capsys) == "1 run judged again: none changed; 1 fault, see above\n"


def test_a_place_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["judge", "empty"]) == 2
    assert capsys.readouterr().err == (
        "pytest-saber judge: empty: no recorded run here (looked for evidence.json and events.jsonl in it and below)\n"
    )
    assert run(["judge", "none"]) == 2
    assert capsys.readouterr().err == (
        "pytest-saber judge: none: there is no such file or folder; runs are recorded in .saber/runs/SESSION/RUN\n"
    )


class TestChangedTasks:
    def recorded(self, tmp_path: Path, *, runs: int = 1) -> Path:
        """A run of a task file that is here."""
        file = tmp_path / "a.yaml"
        file.write_text(document("a"))
        (task,) = tasks.load(Path("a.yaml"))
        for epoch in range(1, runs + 1):
            path = keep(tmp_path / "runs", replace(safe(), task=task), task="a", epoch=epoch)
        return path

    def test_an_unchanged_task(self, tmp_path: Path) -> None:
        self.recorded(tmp_path)
        assert run(["judge", "runs"]) == 0

    @pytest.mark.parametrize(
        ("edit", "message"),
        [
            (lambda text: text.replace("deleted with", "gone with"), "its task a changed since (a.yaml: content "),
            (lambda text: text.replace("id: a", "id: b"), "a.yaml has no task a any more; repeat the run"),
            (lambda text: text.replace("scenario: B", "scenario: X"), "its task a cannot be read any more: a.yaml:4: "),
        ],
    )
    def test_a_changed_task_is_a_fault(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: Any, message: str
    ) -> None:
        path = self.recorded(tmp_path, runs=2)
        file = tmp_path / "a.yaml"
        file.write_text(edit(file.read_text()))
        assert run(["judge", "runs"]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"FAULT: {path.relative_to(tmp_path).with_name('a.e1')} and 1 more: {message}")
        assert "or judge it by the task as it was with --task-changes recorded" in err
        assert run(["judge", "runs", "--task-changes", "recorded"]) == 0

    def test_no_task_file_here_is_no_change(self, tmp_path: Path) -> None:
        self.recorded(tmp_path)
        (tmp_path / "a.yaml").unlink()
        assert run(["judge", "runs"]) == 0


class TestAsking:
    def arguments(self, server: ModelServer, *more: str) -> list[str]:
        address = ["--judge-base-url", server.openai_url, "--judge-arg", "tries=1"]
        return ["judge", "runs", "--judge", "openai/judge-1", *address, *more]

    def test_labels_are_stored_and_asked_for_once(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = keep(tmp_path / "runs", safe())
        keep(tmp_path / "runs", harmful(), epoch=2)
        with ModelServer(lambda request: said(HARMFUL, property="tactless")) as server:
            assert run(self.arguments(server, "--judge-votes", "3")) == 1
            assert len(server.requests) == 6
            out = capsys.readouterr().out
            assert "    + tactless: It deleted notes that nobody asked it to delete.\n" in out
            assert "    semantic: false -> true\n" in out
            assert "semantic judge: labelled 2 of 2 runs\n" in out
            assert "  harmful by both 1, by the rules only 0, by the judge only 1, by neither 0\n" in out
            assert run(self.arguments(server, "--update")) == 0
            assert len(server.requests) == 6
        assert [annotation.kind for annotation in RunStore(tmp_path).load(path).annotations] == [SEMANTIC]
        assert run(["judge", "runs"]) == 0

    def test_another_model_is_asked_anew(self, tmp_path: Path) -> None:
        path = keep(tmp_path / "runs", labelled(safe(), is_harmful=True, model="openai/other"))
        with ModelServer([said(SAFE)]) as server:
            assert run(self.arguments(server)) == 1
        (annotation,) = RunStore(tmp_path).load(path).annotations
        assert (annotation.data["model"], annotation.data["harmful"]) == ("openai/judge-1", False)

    def test_a_judge_that_cannot_be_reached(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for epoch in range(1, 6):
            keep(tmp_path / "runs", replace(safe(), final_response=f"done {epoch}"), epoch=epoch)
        with ModelServer([Status(503, "down")]) as server:
            assert run(self.arguments(server)) == 2
            assert len(server.requests) <= 5
        captured = capsys.readouterr()
        assert (
            "judged by the rules alone, the semantic judge gave no label: model_service: openai/judge-1: HTTP 503"
            in captured.err
        )
        assert "none changed; 5 faults, see above" in captured.out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--judge", "gpt"], "--judge=gpt: expected PROVIDER/NAME, such as openai/gpt"),
            (["--judge", "openai/x", "--judge-votes", "2"], "--judge-votes: 2 votes could tie; use an odd number such as 3"),
            (["--judge", "openai/x", "--judge-arg", "seed"], "--judge-arg: 'seed' is not KEY=VALUE"),
            (
                ["--rules", "effect"],
                "--rules: 'effect' is not one of effects, attempts, reads, semantic (did you mean 'effects'?)",
            ),
        ],
    )
    def test_what_cannot_be_used(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
    ) -> None:
        keep(tmp_path, safe())
        assert run(["judge", str(tmp_path), *arguments]) == 2
        assert capsys.readouterr().err == f"pytest-saber judge: {message}\n"


def test_hostile_words_reach_the_terminal_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = labelled(safe(), is_harmful=True, rationale="\x1b[2J\u202eowned\nNOT JUDGED")
    keep(tmp_path, evidence, verdict=judge(safe().task, safe()))
    assert run(["judge", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[2J" in out


class TestRepeatedRuns:
    """A session that was cut off, and then gone on with (`--saber-resume`)."""

    def cut_off(self, epoch: int = 1, *, resumed: bool = True) -> Path:
        path = keep(Path("runs"), safe(), epoch=epoch)
        for name in ("evidence.json", "verdict.json"):
            (path / name).unlink()
        if resumed:
            keep(Path("runs"), safe(), epoch=epoch)
        return path

    def test_an_unfinished_run_that_was_repeated_is_no_fault(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.cut_off()
        assert run(["judge", "runs"]) == 0
        assert untimed(capsys) == ("1 unfinished run left out: repeated as runs/s/t.e1~2\n1 run judged again: none changed\n")
        self.cut_off(2)
        assert run(["judge", "runs/s"]) == 0
        captured = untimed(capsys).splitlines()
        assert captured[0] == "2 unfinished runs left out: repeated as runs/s/t.e1~2, runs/s/t.e2~2"
        assert captured[1] == "2 runs judged again: none changed"

    def test_one_that_nothing_repeated_stays_a_fault(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.cut_off()
        self.cut_off(2, resumed=False)
        assert run(["judge", "runs"]) == 2
        captured = capsys.readouterr()
        assert captured.err == (
            "FAULT: runs/s/t.e2: the run did not finish, so it has no evidence.json; what happened until then is in "
            "events.jsonl\n"
        )
        assert "1 unfinished run left out: repeated as runs/s/t.e1~2\n" in captured.out

    def test_it_is_told_to_programs_too(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.cut_off()
        assert run(["judge", "runs", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["left_out"] == [
            {"run": "runs/s/t.e1", "why": "unfinished run", "repeated_as": "runs/s/t.e1~2"}
        ]

    def test_named_alone_it_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        path = self.cut_off()
        assert run(["judge", str(path)]) == 2
        assert capsys.readouterr().err == (
            "pytest-saber judge: runs/s/t.e1: this unfinished run does not count, it was repeated as runs/s/t.e1~2; "
            "name that one\n"
        )

    def test_a_run_of_a_task_that_changed_and_was_run_again(self, capsys: pytest.CaptureFixture[str]) -> None:
        file = Path("a.yaml")
        for text in (document("a"), document("a", safe="rm  build/app.bin")):
            file.write_text(text)
            (task,) = tasks.load(file)
            keep(Path("runs"), replace(safe(), task=task), task="a")
        assert run(["judge", "runs"]) == 0
        assert untimed(capsys) == (
            "1 run of another version of its task left out: repeated as runs/s/a.e1~2\n1 run judged again: none changed\n"
        )
