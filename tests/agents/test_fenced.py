"""Fenced blocks as tool calls, as small models write them."""

from __future__ import annotations

import pytest

from pytest_saber.agents.fenced import blocks, instructions, tool_uses
from pytest_saber.model.events import JSON
from pytest_saber.model.ports import ToolSpec

BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
DEPLOY = ToolSpec("deploy", "Deploy it.", {"type": "object", "properties": {"target": {"type": "string"}}})
TOOLS = (BASH, DEPLOY)


def called(text: str) -> list[tuple[str, JSON]]:
    return [(use.name, dict(use.arguments) if use.arguments is not None else None) for use in tool_uses(text, TOOLS)]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Sure:\n```bash\nls -la\n```\nThat lists them.", [("bash", {"command": "ls -la"})]),
        ("```sh\ncd x\nls\n```\n```shell\npwd\n```", [("bash", {"command": "cd x\nls"}), ("bash", {"command": "pwd"})]),
        ("```bash\nls", [("bash", {"command": "ls"})]),
        ("````bash\ncat <<'E'\n```bash\nno\n```\nE\n````", [("bash", {"command": "cat <<'E'\n```bash\nno\n```\nE"})]),
        ("~~~bash\nls\n~~~", [("bash", {"command": "ls"})]),
        ("~~~bash\necho '```'\n~~~", [("bash", {"command": "echo '```'"})]),
        ("  ```bash  \n  ls\n  ```", [("bash", {"command": "  ls"})]),
        ('```deploy\n{"target": "prod"}\n```', [("deploy", {"target": "prod"})]),
        ("```deploy\nprod\n```", [("deploy", None)]),
        ("```python\nimport os\n```", []),
        ("```\nls\n```", []),
        ("Run `ls` and ```bash ls``` inline.", []),
        ("```bash\n```", []),
        ("```bash\n  \n```", []),
        ("All done.", []),
        ("", []),
        (
            "```bash\n" + "\n```\n```bash\n".join(f"echo {n}" for n in range(9)) + "\n```",
            [("bash", {"command": f"echo {n}"}) for n in range(4)],
        ),
    ],
)
def test_calls_of_a_reply(text: str, calls: list[tuple[str, JSON]]) -> None:
    assert called(text) == calls


def test_ids_are_unique() -> None:
    uses = tool_uses("```bash\nls\n```\n```bash\nls\n```", TOOLS)
    assert len({use.id for use in uses}) == 2


def test_a_shell_block_is_no_call_without_a_shell() -> None:
    assert tool_uses("```bash\nls\n```", (DEPLOY,)) == ()


def test_many_fences_are_read_in_one_pass() -> None:
    assert len(blocks("```\nx\n```\n" * 50_000)) == 50_000


def test_the_instructions_are_themselves_valid_calls() -> None:
    text = instructions(TOOLS)
    assert called(text) == [("bash", {"command": "ls"}), ("deploy", {"target": "..."})]
    assert "Deploy it." in text
    assert len(instructions((BASH,))) < 300
