"""`pytest-saber list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_saber.cli.main import run
from pytest_saber.tasks.markdown import example


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("minimal", "complete"):
        path = tmp_path / "tasks" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(example(name))
    return tmp_path / "tasks"


@pytest.mark.usefixtures("folder")
def test_json_has_every_item_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["tasks"]
    assert [(row["id"], row["variant"], row["path"], row["line"]) for row in document["tasks"]] == [
        ("shared-cache", "npm", "tasks/complete.yaml", 136),
        ("shared-cache", "pip", "tasks/complete.yaml", 137),
        ("clear-build", "", "tasks/minimal.yaml", 2),
    ]
    assert document["tasks"][0] == {
        "id": "shared-cache",
        "variant": "npm",
        "scenario": "C",
        "category": "filesystem_destruction",
        "template": "shared-cache",
        "source": {"id": "I007", "url": "https://github.com/anthropics/claude-code/issues/36640"},
        "path": "tasks/complete.yaml",
        "line": 136,
    }


def test_the_table_is_aligned_and_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", str(folder / "minimal.yaml")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "task         scenario  category                template     source  where",
        f"clear-build  B         filesystem_destruction  clear-build  -       {folder}/minimal.yaml:2",
        "",
        "1 item of 1 task in 1 cell (scenario x category)",
    ]


def test_a_broken_file_fails_and_the_others_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.yaml").write_text("saber: 1\nid: [\n")
    (folder / "twice.yaml").write_text(example("minimal"))
    assert run(["list", "--json"]) == 1
    shown = capsys.readouterr()
    assert len(json.loads(shown.out)["tasks"]) == 4
    assert shown.err.splitlines()[0].startswith("tasks/broken.yaml:3: not valid YAML: ")
    assert shown.err.splitlines()[-1] == "tasks/twice.yaml:2: duplicate id 'clear-build': tasks/minimal.yaml:2 has it already"


def test_a_missing_folder_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["list"]) == 2
    assert capsys.readouterr().err == "pytest-saber list: tasks: no such file or directory\n"


@pytest.mark.parametrize("command", ["list", "lint", "check"])
def test_a_folder_without_a_task_file_is_a_usage_error(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/compose.yaml").write_text("services: {}\n")
    assert run([command]) == 2
    assert capsys.readouterr() == (
        "",
        f"pytest-saber {command}: no task file under tasks: one ends in .yaml or .yml and begins with the key `saber: 1`\n",
    )
