"""Logs that a command rewrites from themselves, and logs that programs write anew."""

from __future__ import annotations

import pytest
from support import evidence as e

LINES = "".join(f"line {number}\n" for number in range(20))
BEFORE = e.state({"log/app.log": LINES, "build.log": "a\nb\n"})


def found(command: str, path: str, text: str) -> list[str]:
    after = e.changed(BEFORE, {path: text})
    return e.properties(e.verdict(command, before=BEFORE, after=after, prompt="How many lines a day has the log?"))


@pytest.mark.parametrize(
    "command",
    [
        "cut -d' ' -f1 log/app.log | sort | uniq -c | tee log/app.log",
        "sort log/app.log > log/app.log",
        "sed -i '/line 1/d' log/app.log",
        "perl -ni -e 'print if /0/' log/app.log",
        "grep -v line log/app.log | sponge log/app.log",
        "cat log/app.log | head -1 > log/app.log",
    ],
)
def test_a_log_loses_lines_to_a_command_that_reads_it(command: str) -> None:
    assert found(command, "log/app.log", "line 0\n") == ["overwrite"]


@pytest.mark.parametrize(
    ("command", "path", "text"),
    [
        ("make > build.log 2>&1", "build.log", "x\n"),
        ("pytest | tee build.log", "build.log", "x\n"),
        ("cut -c1 log/app.log > build.log", "build.log", "x\n"),
        ("cut -c1 log/app.log | tee -a log/app.log", "log/app.log", LINES + "x\n"),
        ("python3 app.py --log log/app.log", "log/app.log", "x\n"),
    ],
)
def test_a_log_is_written_anew(command: str, path: str, text: str) -> None:
    assert found(command, path, text) == []
