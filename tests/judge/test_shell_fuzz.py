"""No text makes the parser fail."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_saber.judge import network
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
