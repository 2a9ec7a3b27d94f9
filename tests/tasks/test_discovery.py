"""Finding task files, cheaply and within bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.suites import document

from pytest_saber.errors import TaskError, UsageError
from pytest_saber.tasks import discover, discovery, is_task_file, load


def write(path: Path, text: str = "saber: 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"saber: 1\n", True),
        (b"# comment\n\nsaber: 1\n", True),
        (b"id: x\nsaber : 1\n", True),
        (b"\xef\xbb\xbfsaber: 1\n", True),
        (b"saber: 1\n\xff\xfe broken", True),
        (b"  saber: 1\n", False),
        (b"sabers: 1\n", False),
        (b"x: saber: 1\n", False),
        (b"services: {web: {image: nginx}}\n", False),
        (b"", False),
        (b"#" * 5000 + b"\nsaber: 1\n", True),
        (b"agent: {}\njudging: {}\n" + b"notes: x\n" * 90_000 + b"saber: 1\n", True),
        (b'"saber": 1\n', True),
        (b"'saber' : 1\n", True),
        (b"\"saber': 1\n", False),
        ("id: x\nsaber: 1\n".encode("utf-16"), True),
        ("services: {}\n".encode("utf-16"), False),
        (b"sabre: 1\nagent: {}\njudging: {}\n", True),
        (b"agent: {}\nworkspace: {}\n", False),
        (b"agent: {}\nagent: {}\n", False),
        (b"job:\n  agent: {}\n  judging: {}\n", False),
    ],
)
def test_a_task_file_has_a_line_with_the_version_key_or_both_halves_of_a_task(
    tmp_path: Path, data: bytes, expected: bool
) -> None:
    (tmp_path / "x.yaml").write_bytes(data)
    assert is_task_file(tmp_path / "x.yaml") is expected


def test_what_is_no_regular_file_is_no_task_file_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    for path in (tmp_path / "pipe.yaml", tmp_path / "loop.yaml", tmp_path, tmp_path / "none.yaml", Path("a\0b")):
        assert not is_task_file(path)


def test_a_file_that_nobody_may_read_is_told_by_loading_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    path = write(tmp_path / "x.yaml")
    monkeypatch.setattr(os, "open", refused)
    assert is_task_file(path)
    with pytest.raises(TaskError, match=r"x\.yaml: the task file cannot be read: Permission denied"):
        load(path, root=tmp_path)


@pytest.mark.parametrize(
    ("edit", "encoding", "message"),
    [
        (("saber: 1", "sabre: 1"), "utf-8", "t.yaml:1: unknown key 'sabre' (did you mean 'saber'?)"),
        (("saber: 1\n", ""), "utf-8", "t.yaml:1: missing key 'saber'; a task starts with `saber: 1`"),
        (("", ""), "utf-16", "t.yaml:1: not UTF-8: byte 0xff (invalid start byte); save the file as UTF-8"),
    ],
)
def test_what_is_wrong_with_a_task_that_was_nearly_one(
    tmp_path: Path, edit: tuple[str, str], encoding: str, message: str
) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(document("t").replace(*edit).encode(encoding))
    assert discover([tmp_path]) == [path]
    with pytest.raises(TaskError) as caught:
        load(path, root=tmp_path)
    assert message in str(caught.value)


def test_a_folder_gives_its_task_files_sorted_and_no_other_yaml(tmp_path: Path) -> None:
    expected = [write(tmp_path / name) for name in ("a.yaml", "b/c.yml", "b/d.yaml")]
    write(tmp_path / "compose.yaml", "services: {}\n")
    write(tmp_path / "notes.txt")
    write(tmp_path / ".hidden.yaml")
    write(tmp_path / ".git/x.yaml")
    assert discover([tmp_path]) == expected


def test_links_out_of_the_folder_and_loops_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/x.yaml")
    inside = write(tmp_path / "tasks/a.yaml")
    (tmp_path / "tasks/out.yaml").symlink_to(outside)
    (tmp_path / "tasks/folder").symlink_to(tmp_path / "outside")
    (tmp_path / "tasks/again").symlink_to(tmp_path / "tasks")
    (tmp_path / "tasks/b.yaml").symlink_to(inside)
    assert discover([tmp_path / "tasks"]) == [inside]


def test_a_named_file_is_taken_as_it_is_and_once(tmp_path: Path) -> None:
    foreign = write(tmp_path / "compose.yaml", "services: {}\n")
    task = write(tmp_path / "a.yaml")
    assert discover([foreign, tmp_path, task]) == [foreign, task]


def test_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.yaml: no such file or directory"):
        discover([tmp_path / "nothing.yaml"])


def test_a_folder_with_too_many_files_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_FILES", 5)
    for number in range(6):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(UsageError, match="more than 5 files and folders; name the folder that holds the tasks"):
        discover([tmp_path])


def test_a_very_deep_folder_is_not_walked_to_its_end(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 40)
    write(deep / "x.yaml")
    task = write(tmp_path / "d/y.yaml")
    assert discover([tmp_path]) == [task]


def test_looking_for_task_files_imports_neither_yaml_nor_pydantic() -> None:
    code = (
        "import sys; from pathlib import Path; from pytest_saber.tasks import discover, is_task_file;"
        "discover([Path('.')]); is_task_file(Path('x.yaml'));"
        "print(sorted({'yaml', 'pydantic', 'docker', 'openai'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
