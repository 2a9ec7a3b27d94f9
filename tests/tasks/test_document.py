"""Reading hostile files: each is refused with its reason, within bounds, and without blocking."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_saber.errors import TaskError
from pytest_saber.tasks import document, load
from pytest_saber.tasks.document import parse
from pytest_saber.tasks.loading import parse_tasks
from pytest_saber.tasks.markdown import example


def refusal(path: Path) -> str:
    """The text of the error, with the folder of the test left out."""
    with pytest.raises(TaskError) as caught:
        load(path, root=path.parent)
    return str(caught.value)


def parse_error(text: str) -> str:
    with pytest.raises(TaskError) as caught:
        parse_tasks(text, "x.yaml")
    return str(caught.value)


def test_a_file_of_50_mb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    tracemalloc.start()
    try:
        text = refusal(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert text == (
        "big.yaml: the file is 47.7 MiB, a task may have 1 MiB; use `size` in `mock_fs` or a `setup` step for large files"
    )
    assert peak < 5_000_000


def test_a_fifo_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert refusal(tmp_path / "pipe.yaml") == "pipe.yaml: a task must be a regular file, this is a FIFO"


def test_a_device_and_a_directory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "dir.yaml").mkdir()
    assert refusal(tmp_path / "zero.yaml") == "zero.yaml: a task must be a regular file, this is a device"
    assert refusal(tmp_path / "dir.yaml") == "dir.yaml: a task must be a regular file, this is a directory"


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "b.yaml")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "a.yaml")
    assert refusal(tmp_path / "a.yaml") == "a.yaml: the task file cannot be read: it is a loop of symbolic links"


def test_a_missing_file_and_a_path_with_nul_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.yaml") == "no.yaml: the task file cannot be read: No such file or directory"
    assert refusal(tmp_path / "n\0.yaml") == "n\\0.yaml: the task file cannot be read: its path holds a NUL byte"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"saber: 1\nid: caf\xe9\n", "x.yaml:2: not UTF-8: byte 0xe9 (invalid continuation byte); save the file as UTF-8"),
        ("saber: 1\n".encode("utf-16"), "x.yaml:1: not UTF-8: byte 0xff (invalid start byte); save the file as UTF-8"),
        (b"", "x.yaml: the file is empty; a task starts with `saber: 1`"),
        (b"# nothing\n", "x.yaml: the file is empty; a task starts with `saber: 1`"),
        (b"- a\n", "x.yaml:1: a task is a mapping that starts with `saber: 1`"),
        (b"saber: 1\nid: \x07\n", "x.yaml:2: not valid YAML: control characters are not allowed"),
        (b'saber: "a\\0b"\n', "x.yaml:1: a NUL byte in text; give binary content as `encoding: base64`"),
        (b'saber: "\\uD800"\n', None),
    ],
)
def test_what_is_no_text_or_no_mapping_is_refused(tmp_path: Path, data: bytes, message: str | None) -> None:
    (tmp_path / "x.yaml").write_bytes(data)
    text = refusal(tmp_path / "x.yaml")
    assert text == message if message else text.startswith("x.yaml:1: ")


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbf" + example("minimal").encode())
    assert [task.name for task in load(tmp_path / "x.yaml")] == ["clear-build"]


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    first, second, *rest = parse_error("\n".join(lines)).split("\n")
    assert first == "x.yaml:1: anchor '&a0': anchors and aliases are not supported; write the value out"
    assert second == "x.yaml:2: anchor '&a1': anchors and aliases are not supported; write the value out"
    assert rest[0] == "x.yaml:2: alias '*a0': anchors and aliases are not supported; write the value out"


def test_an_alias_to_itself_is_refused() -> None:
    assert parse_error("a: &a [*a]\n").split("\n")[-1].endswith("write the value out")


def test_merge_keys_tags_and_second_documents_are_refused() -> None:
    assert parse_error("<<: {a: 1}\n").startswith("x.yaml:1: merge key '<<': anchors and aliases are not supported")
    assert parse_error("a: !!python/object/apply:os.system [id]\n").startswith(
        "x.yaml:1: tag '!!python/object/apply:os.system': tags are not supported; quote the value to make it text"
    )
    assert (
        parse_error("a: 1\n---\nb: 2\n") == "x.yaml:2: a second YAML document; write one task in each file, or use `variants`"
    )


def test_duplicate_keys_are_refused_at_every_level() -> None:
    text = "saber: 1\nid: x\nid: y\nagent: {user_prompt: a, user_prompt: b}\n"
    found = parse_error(text).split("\n")
    assert "x.yaml:3: duplicate key 'id'; it is already set in line 2" in found
    assert "x.yaml:4: duplicate key 'user_prompt'; it is already set in line 4" in found


def test_depth_and_number_of_values_are_bounded() -> None:
    assert parse_error("a: " + "[" * 60) == "x.yaml:1: nested deeper than 40 levels"
    assert "nest" in parse_error("a: " + "[" * 100_000)
    assert parse_error("a: [" + "1, " * 30_000 + "]") == "x.yaml:1: more than 10000 values in one file"


def test_a_flood_of_duplicate_keys_is_cut() -> None:
    assert len(parse_error("a: b\n" * 5000).split("\n")) < 120


def test_unquoted_braces_are_explained() -> None:
    assert parse_error("saber: 1\nid: {{param:x}}\n") == (
        "x.yaml:2: a key must be text, not a mapping or a list; text that starts with {{ must be quoted"
    )


def test_a_syntax_error_has_its_line_and_a_hint() -> None:
    assert parse_error("saber: 1\ntitle: a: b\n") == "x.yaml:2: not valid YAML: mapping values are not allowed in this context"
    assert parse_error("saber: 1\nid: [\n").startswith("x.yaml:3: not valid YAML: while parsing a flow node, did not find")


def test_scalars_hold_no_surprise() -> None:
    text = """\
{no: NO, on: on, mode: 0755, date: 2026-01-02, sexagesimal: 1:30,
 hex: 0x1f, exp: 1e3, int: 12, neg: -3, t: true, n: null, q: 'x'}
"""
    root, problems = parse(text, "x.yaml")
    assert not problems
    assert root.plain() == {
        "no": "NO",
        "on": "on",
        "mode": "0755",
        "date": "2026-01-02",
        "sexagesimal": "1:30",
        "hex": "0x1f",
        "exp": 1000.0,
        "int": 12,
        "neg": -3,
        "t": True,
        "n": None,
        "q": "x",
    }


def test_the_python_and_the_c_parser_give_the_same_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = []
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        monkeypatch.setattr(document, "_LOADER", loader)
        trees.append(parse(example("complete"), "x.yaml"))
        assert parse_error("a: \x07") == "x.yaml:1: not valid YAML: " + (
            "special characters are not allowed" if loader is yaml.SafeLoader else "control characters are not allowed"
        )
    assert trees[0] == trees[1]


def test_norway_is_a_country() -> None:
    text = example("minimal").replace("    build/app.bin: compiled", "    build/app.bin: NO")
    (loaded,) = parse_tasks(text, "x.yaml")
    assert loaded.task.workspace.files[1].content == "NO"


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_a_task_or_a_task_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(data)
    with pytest.raises(TaskError):  # no short random text is a task
        load(path)


MINIMAL_LINES = example("minimal").splitlines()
VALUES = st.sampled_from(
    [
        "",
        "1",
        "true",
        "null",
        "[]",
        "{}",
        "[[1], {a: b}]",
        "{x: {y: [z]}}",
        "-5",
        "1e9",
        "'{{secret:x}}'",
        "'{{param:x}}'",
        "!x y",
        "&a b",
        "*a",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(MINIMAL_LINES) - 1), VALUES, st.booleans())
def test_any_value_in_any_place_is_a_task_or_a_task_error(number: int, value: str, whole: bool) -> None:
    lines = list(MINIMAL_LINES)
    indent, _, _ = lines[number].partition(lines[number].strip())
    key = lines[number].strip().partition(":")[0]
    lines[number] = f"{indent}{value}" if whole else f"{indent}{key}: {value}"
    try:
        loaded = parse_tasks("\n".join(lines) + "\n", "x.yaml")
    except TaskError as error:
        assert all(problem.path == "x.yaml" for problem in error.problems)  # noqa: PT017
        assert all(0 <= problem.line <= len(lines) + 1 for problem in error.problems)  # noqa: PT017
    else:
        assert loaded
