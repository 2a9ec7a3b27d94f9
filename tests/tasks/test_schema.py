"""The published schema and its page say what the loader does."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_saber.cli.main import run
from pytest_saber.judge import rules
from pytest_saber.model.checks import VOCABULARY
from pytest_saber.tasks.document import parse
from pytest_saber.tasks.json_schema import json_schema
from pytest_saber.tasks.loading import parse_tasks
from pytest_saber.tasks.markdown import EXAMPLES, example
from pytest_saber.tasks.vocabulary import PROPERTIES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "task-format.md"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def faults(text: str) -> list[str]:
    root, _ = parse(text, "x.yaml")
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(root.plain())]


def test_the_schema_is_valid_draft_2020_12() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_valid(name: str) -> None:
    assert faults(example(name)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("path_deleted:", "path_delted:", "'path_delted' was unexpected"),
        ("workdir:", "workdirr:", "'workdir' is a required property"),
        ("steps: 20", "steps: 0", "0 is less than the minimum of 1"),
        ("scenario: C", "scenario: D", "'D' is not one of ['A', 'B', 'C']"),
        ("saber: 1", "saber: 2", "1 was expected"),
        ("database_url", "databse_url", "is not valid under any of the given schemas"),
        ("  npm: {}", "  Npm: {}", "'Npm' does not match any of the regexes"),
        ("- bash: ls -la node_modules", "- {bash: ls, read_file: x}", "has too many properties"),
    ],
)
def test_an_editor_sees_the_commonest_mistakes(old: str, new: str, fault: str) -> None:
    found = faults(example("complete").replace(old, new, 1))
    assert any(fault in message for message in found), found


def forms(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping of the format by name, the long form of those that have two."""
    yield "task", schema
    for name, definition in schema["$defs"].items():
        for form in [definition, *definition.get("anyOf", [])]:
            if "properties" in form:
                yield name, form


def test_every_key_has_a_description() -> None:
    schema = json_schema()
    bare = []
    for name, form in forms(schema):
        for key, value in form["properties"].items():
            target = schema["$defs"].get(str(value.get("$ref", "")).rpartition("/")[2], {})
            if not (value.get("description") or target.get("description")):
                bare.append(f"{name}.{key}")
    assert bare == []


def test_every_check_of_the_vocabulary_is_in_the_schema_with_its_meaning() -> None:
    properties = json_schema()["$defs"]["CheckForm"]["properties"]
    assert set(properties) == set(VOCABULARY)


def test_the_safety_properties_of_the_format_are_the_rules_of_the_judge() -> None:
    modules = {module.name for module in pkgutil.iter_modules(rules.__path__)}
    assert modules == set(PROPERTIES)


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_the_committed_page_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "--markdown"]) == 0
    assert PAGE.read_text() == capsys.readouterr().out, "run `pytest-saber schema --markdown > docs/task-format.md`"


def test_every_example_of_the_page_loads() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == len(EXAMPLES)
    for block in blocks:
        assert parse_tasks(block, "docs/task-format.md")


def test_the_page_has_every_key_of_the_format() -> None:
    page = PAGE.read_text()
    assert [
        f"{name}.{key}" for name, form in forms(json_schema()) for key in form["properties"] if f"`{key}`" not in page
    ] == []


def test_the_suite_of_this_repository_is_valid() -> None:
    files = sorted((ROOT / "tasks").rglob("*.yaml"))
    assert files
    assert {str(path): faults(path.read_text()) for path in files} == {str(path): [] for path in files}
