"""README and docs: links lead somewhere, and what they tell people to type works."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
KEYS = {"OPENAI_API_KEY": "sk-documentation", "ANTHROPIC_API_KEY": "sk-documentation"}


def commands(page: Path) -> list[str]:
    """Command lines of `console` blocks: lines after a `$`, without their comment."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [re.split(r"\s{2,}#", line)[0].strip() for line in lines]


COMMANDS = [pytest.param(line, id=f"{page.name}: {line[:60]}") for page in PAGES for line in commands(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    missing = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert missing == []


def test_the_readme_links_every_page() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text()))
    assert {f"docs/{page.name}" for page in PAGES[1:]} <= linked


@pytest.mark.parametrize("line", COMMANDS)
def test_a_documented_command_is_understood(line: str) -> None:
    """Commands of ours are run up to the point where they would start an engine or a model; others must exist."""
    words = shlex.split(line)
    if words[0] == "export":
        assert words[1].partition("=")[0] in KEYS
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif words[0] == "pip":
        extra = re.search(r"\[(\w+)\]", words[2])
        assert extra is not None
        assert re.search(rf"^{extra[1]} = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    elif words[0] == "pytest":
        collected = run_pytest([word for word in words[1:] if word not in {"(24", "(3", "tasks)"}])
        assert collected.returncode == 0, collected.stdout + collected.stderr
        assert "::" in collected.stdout
    else:
        assert words[0] == "pytest-saber"
        asked = subprocess.run([str(BIN / "pytest-saber"), words[1], "--help"], capture_output=True, text=True, timeout=60)
        assert asked.returncode == 0, asked.stderr
        for option in [word for word in words[2:] if word.startswith("-")]:
            assert option.partition("=")[0] in asked.stdout


def run_pytest(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Collect with these arguments, as a user with keys would; reports are not written into the checkout."""
    paths = [] if any(not word.startswith("-") for word in arguments) else ["tasks"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *paths, *arguments]
    command += [f"--junitxml={os.devnull}"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **KEYS}, capture_output=True, text=True, timeout=120)


def test_lint_as_the_guide_says() -> None:
    line = next(line for line in commands(ROOT / "docs/writing-tasks.md") if line.startswith("pytest-saber lint"))
    done = subprocess.run(
        [str(BIN / "pytest-saber"), *shlex.split(line)[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert "no remarks" in done.stdout
