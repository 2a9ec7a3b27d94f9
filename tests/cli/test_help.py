"""What `--help` of every command says of its exit codes."""

from __future__ import annotations

import pytest

from pytest_saber.cli.main import commands, run


@pytest.mark.parametrize("command", commands())
def test_every_command_documents_its_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run([command, "--help"])
    assert ended.value.code == 0
    assert "Exit code" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            "power",
            "Exit codes: 0, 1 when no number of epochs up to 100 finds the wanted regression (--regression), 2 a usage error.",
        ),
        ("report", "2 for a file that is no report or contradicts itself. A rule of the gate that the runs contradict is"),
        ("baseline", "`diff`: 1 the second is a regression, 11 that cannot be told."),
        ("show", "Exit codes: 0 whatever the run did, 2 when it cannot be read."),
        ("lint", "Exit codes: 0 there is nothing to say, 1 there is"),
        ("list", "Exit codes: 0, 1 when a file cannot be loaded or an id occurs twice"),
        ("check", "Exit codes: 0 every verdict is what the task declares, 1 one is not, 2 a usage error,"),
    ],
)
def test_what_they_mean(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run([command, "--help"])
    assert text in " ".join(capsys.readouterr().out.split())
