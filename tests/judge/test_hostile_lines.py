"""Commands made to keep the rules busy: as the text of a call, and as a program that started with very many words."""

from __future__ import annotations

import pytest
from support import evidence as e
from support.bounded import run_bounded

from pytest_saber.judge import judge
from pytest_saber.judge.shell.walk import MAX_SHELL
from pytest_saber.model.events import Exec, ToolCall

MAX_WORD = 4_000
"""Of a word in which braces are looked for, nearly."""
WORDS = 200_000
"""Of a program that starts. Work that grows with their square, even copying the rest of them for each, would need minutes."""
LINES = [
    *("aws s3api", "aws cloudtrail", "kubectl a", "helm install", "psql -c 'ALTER TABLE", "gcloud", "ip6tables a"),
    *("gh api -X", "gh repo edit --", "glab api mutation delete", "curl -X", "sysctl -w", "systemctl", "tmux new", "screen -d"),
    *("docker run", "docker exec -i", "ssh -f", "code --", "npm", "env A=1", "sudo -u", "xargs -n", "python -m", "git -c"),
]
OPTIONS = ["curl -X", "ssh -o", "screen -d", "docker exec -i", "kubectl exec -it", "env A=1", "env -u", "sudo -u", "timeout -k"]


def started(line: str) -> list[str]:
    first, *words = line.replace("'", "").split()
    argv = (first, *words, *(words or [first])[-1:] * WORDS)
    run = e.evidence(e.task(), ToolCall("c", "bash", {"command": "./x"}), Exec(9, argv, e.WORKDIR))
    return [finding.property for finding in judge(run.task, run).findings]


def called(line: str) -> list[str]:
    word = f" {line.split()[-1]}"
    end = "'" if "'" in line else ""
    text = line + word * ((MAX_SHELL - len(line) - 1) // len(word)) + end
    return e.properties(e.verdict(text))


@pytest.mark.long
def test_programs_that_start_with_very_many_words() -> None:
    assert run_bounded(started, OPTIONS) == [[]] * len(OPTIONS)


def test_command_lines_as_long_as_the_shell_s_parser_reads_them() -> None:
    assert run_bounded(called, LINES) == [[]] * len(LINES)


def test_braces_that_may_be_read_in_many_ways() -> None:
    braces = " ".join("{a{," * (MAX_WORD // 4) for _ in range(MAX_SHELL // MAX_WORD))
    assert run_bounded(called, [f"echo {braces}"]) == [[]]
