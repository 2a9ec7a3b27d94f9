"""`pytest-saber audit`: the sample, a person's decisions from a file and on a real terminal, and the agreement."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.records import make_verdict
from support.stored import harmful, keep, labelled, safe

from pytest_saber.cli.main import run

RUNS = 20


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty labelled runs; every fourth is labelled harmful."""
    monkeypatch.chdir(tmp_path)
    for number in range(1, RUNS + 1):
        evidence = labelled(safe(), is_harmful=number % 4 == 0, rationale=f"Because of {number}.")
        keep(Path("runs"), evidence, task=f"t{number:02}")
    return Path("runs")


def sample(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Folders of the runs that are drawn."""
    assert run(["audit", "--template", *(arguments or ["runs"])]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]


def answers(*rows: tuple[str, ...]) -> str:
    Path("a.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return "a.tsv"


def audit(*arguments: str) -> int:
    return run(["audit", "runs", *arguments])


def document() -> Any:
    return json.loads(Path("runs/audit.json").read_text())


def test_the_sample_is_a_fifth_and_depends_on_the_seed_alone(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = sample(capsys)
    assert len(first) == 4
    assert sample(capsys) == first
    assert sample(capsys, "runs/s") == first
    everything = [str(path) for path in sorted(runs.glob("s/*"), reverse=True)]
    assert sample(capsys, *everything) == first
    assert sample(capsys, "runs", "--seed", "2") != first
    assert len(sample(capsys, "runs", "--sample", "0.01")) == 1
    assert len(sample(capsys, "runs", "--sample", "0.21")) == 5
    assert len(sample(capsys, "runs", "--sample", "1")) == RUNS


def test_a_template_says_what_is_to_be_decided(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit("--template", "--sample", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# run<TAB>confirm|overturn<TAB>note"
    assert "# t04 epoch 1: harmful: Because of 4." in lines
    assert lines[lines.index("# t05 epoch 1: harmless: Because of 5.") + 1] == "runs/s/t05.e1\t\t"
    Path("a.tsv").write_text("\n".join(lines))
    assert audit("--answers", "a.tsv", "--sample", "1") == 1
    assert "20 of 20 labels of the semantic judge were drawn (--sample 1 --seed 1), 0 decided" in capsys.readouterr().out


def test_agreement_with_its_interval(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = [f"t{number:02}.e1" for number in range(1, RUNS + 1)]
    wrong = {"t04.e1", "t05.e1"}
    rows = [(name, "overturn", "it\tdid not") if name in wrong else (name, "confirm") for name in drawn]
    assert audit("--sample", "1", "--answers", answers(*rows)) == 0
    first, second, *told, last = capsys.readouterr().out.splitlines()
    assert first == "20 of 20 labels of the semantic judge were drawn (--sample 1 --seed 1), 20 decided"
    assert second == "confirmed 18, overturned 2: agreement 90.0 % (95 % interval 69.9 to 97.2 %)"
    assert sorted(told) == [
        "  t04 epoch 1: harmful -> harmless: it    did not (runs/s/t04.e1)",
        "  t05 epoch 1: harmless -> harmful: it    did not (runs/s/t05.e1)",
    ]
    assert last == f"written: {Path('runs').resolve()}/audit.json"
    value = document()
    assert [value["agreement"][name] for name in ("decided", "agreed", "share")] == [20, 18, 0.9]
    # A person finds 5 harmful runs, the judge another 5, both 4 of them: kappa = (0.9 - 0.625) / 0.375
    assert value["agreement"]["kappa"] == pytest.approx(0.7333, abs=1e-4)


def test_missing_decisions_are_asked_for_later(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = sample(capsys)
    assert audit("--answers", answers((drawn[0], "confirm", "sure"))) == 1
    assert audit("--answers", answers((f"s/{Path(drawn[1]).name}", "overturn"), (drawn[2], ""))) == 1
    assert audit("--answers", answers(("",), ("# a comment",), *[(path, "confirm") for path in drawn[2:]])) == 0
    decisions = {item["run"]: (item["decision"], item["note"]) for item in document()["items"]}
    assert [decisions[path] for path in drawn] == [("confirm", "sure"), ("overturn", ""), ("confirm", ""), ("confirm", "")]


def test_earlier_decisions_are_not_lost(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = sample(capsys)
    assert audit("--answers", answers(*[(path, "confirm") for path in drawn])) == 0
    before = Path("runs/audit.json").read_bytes()
    capsys.readouterr()
    assert audit("--seed", "2", "--answers", answers()) == 2
    err = capsys.readouterr().err
    assert (
        "decisions on labels that are not in this sample (it was drawn with --sample 0.2 --seed 1); name another file with -o"
        in err
    )
    assert Path("runs/audit.json").read_bytes() == before
    assert audit("--seed", "2", "--answers", answers(), "-o", "other.json") == 1
    assert json.loads(Path("other.json").read_text())["seed"] == 2


def test_every_bad_line_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = sample(capsys)
    name = Path(drawn[0]).name
    rows = [
        (drawn[0], "confrm"),
        ("runs/s/nothere", "confirm"),
        (drawn[1], "confirm"),
        (drawn[1], "overturn"),
        (f"{name}x", "confirm"),
    ]
    assert audit("--answers", answers(*rows)) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("pytest-saber audit: a.tsv:1: 'confrm' is neither confirm nor overturn (did you mean 'confirm'?)")
    assert err[1].startswith("a.tsv:2: 'runs/s/nothere' is not in the sample")
    assert err[2] == f"a.tsv:4: '{drawn[1]}' was answered before"
    assert err[3] == f"a.tsv:5: '{name}x' is not in the sample (did you mean '{name}'?)"
    assert not Path("runs/audit.json").exists()


def test_a_name_of_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for session in ("one", "two"):
        keep(Path("runs"), safe()).parent.rename(f"runs/{session}")
    assert audit("--sample", "1", "--answers", answers(("t.e1", "confirm"))) == 2
    assert "a.tsv:1: 't.e1' is the name of several runs of the sample; write SESSION/RUN" in capsys.readouterr().err
    assert audit("--sample", "1", "--answers", answers(("one/t.e1", "confirm"), ("two/t.e1", "confirm"))) == 0


def test_without_semantic_labels_verdicts_are_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    keep(Path("runs"), harmful())
    keep(Path("runs"), safe(), epoch=2)
    assert audit("--template", "--sample", "1") == 0
    out = capsys.readouterr().out
    assert "# t epoch 1: harmful: harmful_completion. 1 file that the request does not name was deleted: notes/plan.md" in out
    assert audit("--sample", "1", "--answers", answers(("t.e1", "confirm"), ("t.e2", "confirm"))) == 0
    assert "2 of 2 verdicts were drawn" in capsys.readouterr().out
    assert document()["of"] == "verdicts"


def test_a_run_that_cannot_be_read_is_a_fault(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "s/t01.e1/evidence.json").write_text("{")
    assert audit("--sample", "1", "--answers", answers(*[(f"t{n:02}.e1", "confirm") for n in range(2, RUNS + 1)])) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("FAULT: runs/s/t01.e1/evidence.json: truncated JSON")
    assert "19 of 19 labels" in captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "this is no terminal to ask on: make a file with --template > answers.tsv, fill it in, and give it with --answers",
        ),
        (["--sample", "0", "--template"], "--sample: 0 is not a share above 0, and 1 at most"),
        (["--sample", "1.5", "--template"], "--sample: 1.5 is not a share above 0, and 1 at most"),
        (["--sample", "nan", "--template"], "--sample: nan is not a share above 0, and 1 at most"),
        (["--answers", "queue"], "--answers queue: it is a named pipe; name a file"),
        (["--answers", "runs"], "--answers runs: it is a folder; name a file in it"),
        (["--answers", "a.tsv", "-o", "queue"], "queue is a named pipe; name a file with -o"),
        (["--answers", "a.tsv", "-o", "runs"], "runs is a folder; name a file in it with -o"),
        (["--answers", "a.tsv", "-o", "/dev/null"], "/dev/null is a device; name a file with -o"),
        (["--answers", "none.tsv"], "--answers none.tsv: cannot be read: No such file or directory"),
        (["--answers", "b.tsv"], "--answers b.tsv: not UTF-8 text at byte 0"),
        (["--answers", "a.tsv", "-o", "nowhere/x.json"], "nowhere/x.json: cannot be written: No such file or directory"),
        (["--answers", "a.tsv", "-o", "b.json"], "b.json: not an audit of pytest-saber; name another file with -o"),
        (["--answers", "a.tsv", "-o", "c.json"], "c.json: a damaged audit (JSONDecodeError: "),
        (["--answers", "a.tsv", "-o", "d.json"], "d.json: a damaged audit (KeyError: 'items'); name another file with -o"),
        (["--answers", "a.tsv", "-o", "e.json"], "e.json: schema 2, and this pytest-saber reads 1"),
    ],
)
def test_what_cannot_be_used(
    runs: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        answers()
        os.mkfifo("queue")
        Path("b.tsv").write_bytes(b"\xff\n")
        Path("b.json").write_text("[]")
        Path("c.json").write_text("{")
        Path("d.json").write_text('{"saber": "audit", "schema": 1}')
        Path("e.json").write_text('{"saber": "audit", "schema": 2}')
        assert audit(*arguments) == 2
    assert capsys.readouterr().err.startswith(f"pytest-saber audit: {message}")


def test_nothing_to_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(tmp_path, safe(), verdict=False)
    assert run(["audit", str(tmp_path), "--template"]) == 2
    assert "there is nothing to audit: none of the runs has a label or a verdict" in capsys.readouterr().err


def test_only_runs_that_count_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels of runs that an incident ended, that were cut off, or that their session did again, say nothing of its result."""
    monkeypatch.chdir(tmp_path)
    label = labelled(safe(), is_harmful=False)
    error = make_verdict("error")
    keep(Path("runs"), label, task="again", verdict=error)
    keep(Path("runs"), label, task="again")
    keep(Path("runs"), label, task="lost", verdict=error)
    keep(Path("runs"), label, task="unjudged", verdict=False)
    (keep(Path("runs"), label, task="cut") / "evidence.json").unlink()
    keep(Path("runs"), label, task="cut")
    assert audit("--template", "--sample", "1") == 0
    captured = capsys.readouterr()
    assert sorted(line for line in captured.out.splitlines() if not line.startswith("#")) == [
        "runs/s/again.e1~2\t\t",
        "runs/s/cut.e1~2\t\t",
    ]
    assert captured.err.splitlines() == [
        "1 unfinished run left out: repeated as runs/s/cut.e1~2",
        "1 run without a verdict left out: repeated as runs/s/again.e1~2",
        "2 runs without a verdict left out",
    ]
    assert audit("--sample", "1", "--answers", answers(("again.e1~2", "confirm"), ("cut.e1~2", "confirm"))) == 0
    assert "2 of 2 labels of the semantic judge were drawn" in capsys.readouterr().out
    assert audit("--sample", "1", "--answers", answers(("lost.e1", "confirm"))) == 2
    assert "a.tsv:1: 'lost.e1' is not in the sample" in capsys.readouterr().err


def test_a_place_without_runs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "nope"]) == 2
    assert capsys.readouterr().err == (
        "pytest-saber audit: nope: there is no such file or folder; runs are recorded in .saber/runs/SESSION/RUN\n"
    )


class Terminal:
    """The command on a real terminal."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-c", "from pytest_saber.cli import main; raise SystemExit(main())", "audit", *arguments]
        self._process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.text = ""

    def expect(self, text: str) -> None:
        """Wait for the text after what was waited for before."""
        while text not in self.text:
            if not select.select([self._ours], [], [], 60)[0]:
                raise AssertionError(f"no {text!r} in {self.text!r}")
            self.text += os.read(self._ours, 65536).decode("utf-8", "replace")
        self.text = self.text.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self, *, stop: bool = False) -> int:
        """The exit code, waited for or forced."""
        if stop:
            self._process.terminate()
        try:
            return self._process.wait(60)
        finally:
            os.close(self._ours)


def test_a_person_on_a_terminal(runs: Path) -> None:
    """Confirms one, mistypes, overturns one with a note, skips one, and leaves; then goes on with the other two."""
    terminal = Terminal("runs")
    terminal.expect("tool call bash")
    terminal.expect("[1 of 4] ")
    terminal.expect("[q]uit: ")
    terminal.type("c\n")
    terminal.expect("note (may be empty): ")
    terminal.type("\n")
    terminal.expect("[2 of 4] ")
    terminal.expect("[q]uit: ")
    terminal.type("what\n")
    terminal.expect("[q]uit: ")
    terminal.type("o\n")
    terminal.expect("note (may be empty): ")
    terminal.type("it asked first\n")
    terminal.expect("[3 of 4] ")
    terminal.expect("[q]uit: ")
    terminal.type("s\n")
    terminal.expect("[4 of 4] ")
    terminal.expect("[q]uit: ")
    terminal.type("\x04")
    terminal.expect("confirmed 1, overturned 1: agreement 50.0 % (95 % interval 9.5 to 90.5 %)")
    assert terminal.end() == 1
    assert sorted((item["decision"], item["note"]) for item in document()["items"]) == [
        ("", ""),
        ("", ""),
        ("confirm", ""),
        ("overturn", "it asked first"),
    ]
    terminal = Terminal("runs")
    for number in (1, 2):
        terminal.expect(f"[{number} of 2] ")
        terminal.expect("[q]uit: ")
        terminal.type("confirm\n")
        terminal.expect("note (may be empty): ")
        terminal.type("\n")
    terminal.expect("4 decided")
    assert terminal.end() == 0


def test_an_interrupted_audit_keeps_what_was_decided(runs: Path) -> None:
    terminal = Terminal("runs")
    terminal.expect("[q]uit: ")
    terminal.type("c\n")
    terminal.expect("note (may be empty): ")
    terminal.type("\n")
    terminal.expect("[2 of 4] ")
    terminal.expect("[q]uit: ")
    assert terminal.end(stop=True) != 0
    assert [item["decision"] for item in document()["items"]].count("confirm") == 1
