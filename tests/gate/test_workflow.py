"""The reusable workflow: its scripts are run as they stand, with the real command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.records import make_records, make_summary

from pytest_saber.model.summary import GateResult
from pytest_saber.reports import json_report
from pytest_saber.reports.json_report import Shard

WORKFLOW: Any = yaml.safe_load((Path(__file__).parents[2] / ".github/workflows/agent-gate.yml").read_text())


def script(job: str, name: str) -> str:
    return str(next(step["run"] for step in WORKFLOW["jobs"][job]["steps"] if name in (step.get("id"), step.get("name"))))


def bash(text: str, folder: Path, **environ: str) -> tuple[int, str, str]:
    """Exit code, output, and what was written to GITHUB_OUTPUT; flags as GitHub sets them."""
    output = folder / "github-output"
    output.touch()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=folder,
        env={"PATH": path, "GITHUB_OUTPUT": str(output), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, output.read_text()


@pytest.mark.parametrize(("shards", "listed"), [("1", "[1]"), ("3", "[1,2,3]")])
def test_the_plan_lists_the_shards(tmp_path: Path, shards: str, listed: str) -> None:
    assert bash(script("plan", "list"), tmp_path, SHARDS=shards) == (0, "", f"shards={listed}\n")


@pytest.mark.parametrize("shards", ["0", "257", "-1", "2.5", "$(id)", "1; id"])
def test_the_plan_refuses_other_numbers(tmp_path: Path, shards: str) -> None:
    code, output, written = bash(script("plan", "list"), tmp_path, SHARDS=shards)
    assert (code, written) == (1, "")
    assert output == f"::error title=agent-gate::shards is {shards}, not a number from 1 to 256\n"


def test_a_shard_passes_its_inputs_as_single_words(tmp_path: Path) -> None:
    (tmp_path / "python").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    text = f"PATH={tmp_path}:$PATH\n" + script("shard", "Run the shard")
    inputs = {"MODEL": "openai/x; id", "AGENT": "react", "TASKS": "tasks more", "EPOCHS": "3", "SHARD": "2", "SHARDS": "4"}
    code, output, _ = bash(text, tmp_path, POLICY="--saber-max-hsr=0.2 --saber-max-phr=0", **inputs)
    assert code == 0
    assert output.splitlines() == [
        "-m",
        "pytest",
        "tasks",
        "more",
        "--saber-model=openai/x; id",
        "--saber-agent=react",
        "--saber-epochs=3",
        "--saber-max-hsr=0.2",
        "--saber-max-phr=0",
        "--saber-policy=report",
        "--saber-shard=2/4",
        "--saber-json=saber-report/shard-2.json",
        "--junitxml=saber-report/shard-2.xml",
    ]


def test_a_project_whose_fixture_provides_the_agent_names_none(tmp_path: Path) -> None:
    """An option that names another agent than the fixture's would be a usage error."""
    (tmp_path / "python").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    text = f"PATH={tmp_path}:$PATH\n" + script("shard", "Run the shard")
    inputs = {"MODEL": "", "AGENT": "", "TASKS": "tasks", "EPOCHS": "1", "SHARD": "1", "SHARDS": "1", "POLICY": ""}
    code, output, _ = bash(text, tmp_path, **inputs)
    assert code == 0
    assert output.splitlines()[2:5] == ["tasks", "--saber-epochs=1", "--saber-policy=report"]


@pytest.mark.parametrize(("ended", "code"), [(0, 0), (1, 0), (2, 2), (4, 4), (5, 5)])
def test_a_shard_leaves_its_failures_to_the_decision(tmp_path: Path, ended: int, code: int) -> None:
    (tmp_path / "python").write_text(f"#!/bin/bash\nexit {ended}\n")
    (tmp_path / "python").chmod(0o755)
    text = f"PATH={tmp_path}:$PATH\n" + script("shard", "Run the shard")
    inputs = dict.fromkeys(("MODEL", "AGENT", "TASKS", "EPOCHS", "SHARD", "SHARDS", "POLICY"), "1")
    assert bash(text, tmp_path, **inputs)[0] == code


@pytest.mark.parametrize(
    ("outcome", "written", "code", "status"),
    [
        ("safe_completion", (1, 2), 0, "passed"),
        ("harmful_completion", (1, 2), 10, "failed"),
        ("safe_completion", (2,), 11, "inconclusive"),
        ("safe_completion", (), 11, "inconclusive"),
    ],
)
def test_the_decision(tmp_path: Path, outcome: str, written: tuple[int, ...], code: int, status: str) -> None:
    (tmp_path / "shards").mkdir()
    runs = make_records([outcome] * 6)
    settings = {"saber_max_hsr": ("0.2", "--saber-max-hsr"), "saber_policy": ("report", "--saber-policy")}
    for index in written:
        summary = make_summary(runs[index - 1 :: 2])
        document = json_report.document(summary, GateResult("off"), Shard(index, 2), settings)
        (tmp_path / f"shards/shard-{index}.json").write_text(json_report.dumps(document))
    done, output, github = bash(script("decide", "merge"), tmp_path, BASELINE="")
    assert (done, github) == (code, f"status={status}\n")
    assert "inconclusive" in output or status != "inconclusive"
    assert (tmp_path / "merged/saber.md").exists() == bool(written)


def test_no_script_holds_an_expression() -> None:
    """Inputs reach scripts through the environment, so that no input can become script text."""
    scripts = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    assert len(scripts) == 5
    assert not any("${{" in text for text in scripts)
