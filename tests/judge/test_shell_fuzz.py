"""No text makes the parser fail."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_saber.judge import network
from pytest_saber.judge.shell import alphabet
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.walk import Walker

TOKENS = st.sampled_from(
    [
        *[
            "rm",
            "-rf",
            "x",
            "cd",
            "..",
            "/",
            "~",
            "curl",
            "-d",
            "@f",
            "https://h.example/?q=$X",
            "git",
            "push",
            "--force",
            "bash",
            "-c",
        ],
        *[
            "sudo",
            "xargs",
            "env",
            "A=1",
            "find",
            "-exec",
            "{}",
            "\\;",
            "+",
            "eval",
            "source",
            "make",
            "npm",
            "run",
            "su",
            "python3",
        ],
        *[
            "|",
            "||",
            "&&",
            ";",
            "&",
            "\n",
            "(",
            ")",
            "{",
            "}",
            "$(",
            "`",
            "$((",
            "))",
            "[[",
            "]]",
            "!",
            "<(",
            ">(",
            "<<E\n",
            "\nE\n",
        ],
        *[
            "<<<",
            ">",
            ">>",
            "2>&1",
            "'",
            '"',
            "\\",
            "$",
            "${",
            "${X:-",
            "}",
            "$'",
            "if",
            "then",
            "fi",
            "for",
            "in",
            "do",
            "done",
        ],
        *[
            "while",
            "case",
            "esac",
            "f() {",
            "alias",
            "export",
            "trap",
            "#",
            "*",
            "?",
            "[a-z]",
            "/dev/tcp/h/80",
            "-",
            "--",
            "=",
            "\t",
        ],
    ]
)
SCRIPTS = st.lists(TOKENS, max_size=40).map(" ".join) | st.text(max_size=200)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls=st.lists(SCRIPTS, min_size=1, max_size=3), script=SCRIPTS)
def test_any_text_is_read(calls: list[str], script: str) -> None:
    walker = Walker(Session("/home/agent", "/w"), lambda path: script if path.endswith(("x", "Makefile")) else None)
    for number, call in enumerate(calls, 1):
        walker.call(number, call)
    for command in walker.trace.commands:
        list(network.contacts(command))
        assert command.event in range(1, len(calls) + 1)
        assert command.event not in command.depends


@settings(max_examples=60, deadline=None)
@given(argv=st.lists(TOKENS | st.text(max_size=20), max_size=8))
def test_any_program_start_is_read(argv: list[str]) -> None:
    walker = Walker(Session("/home/agent", None), lambda _: None)
    walker.program(7, tuple(argv), "/w", "exec")
    assert all(command.event == 7 for command in walker.trace.commands)


SCANNER = """
from pytest_saber.judge.shell.session import Session
from pytest_saber.judge.shell.walk import Walker

walker = Walker(Session("/", None), lambda _: None)
for point in range(0xE000, 0x110000, 251):
    walker.call(1, "{" + chr(point))
print(len(walker.trace.commands) + len(walker.trace.opaque) > 0)
"""


def test_no_character_of_any_script_ends_the_process() -> None:
    """`{` and a far code point make the scanner itself read beyond its table of digits (tree-sitter-bash issue 337)."""
    done = subprocess.run([sys.executable, "-c", SCANNER], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@given(text=st.text())
def test_text_comes_back_from_the_parsers_alphabet(text: str) -> None:
    coded = alphabet.encode(text)
    assert alphabet.decode(coded) == text
    assert all(ord(character) < 0x80 or 0x90 <= ord(character) <= 0x9F for character in coded.decode())


def test_bytes_that_are_no_text_come_back_and_half_a_character_is_replaced() -> None:
    assert alphabet.decode(alphabet.encode("a\udcff\udc80")) == "a\udcff\udc80"
    assert alphabet.decode(alphabet.encode("a\ud800")) == "a?"
    assert alphabet.decode(alphabet.encode("é")[:-1]) == "\udcc3\ufffd"
