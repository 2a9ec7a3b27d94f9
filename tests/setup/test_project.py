"""The project's configuration agrees with itself."""

from __future__ import annotations

import re

import yaml
from support.setup import ROOT, pyproject

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def test_every_run_time_dependency_has_a_lower_bound() -> None:
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["openai"], *extras["anthropic"], *extras["local"]]
    assert [line for line in needed if not re.fullmatch(r"[A-Za-z0-9_.-]+>=[0-9.]+", line)] == []


def test_the_oldest_pytest_is_the_same_everywhere() -> None:
    document = pyproject()
    bound = next(line for line in document["project"]["dependencies"] if line.startswith("pytest>"))
    assert bound == f"pytest>={document['tool']['pytest']['ini_options']['minversion']}"
    matrix = yaml.safe_load(WORKFLOW.read_text())["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["pytest"] == [bound.removeprefix("pytest>="), "9"]


def test_ci_starts_at_the_oldest_python() -> None:
    matrix = yaml.safe_load(WORKFLOW.read_text())["jobs"]["test"]["strategy"]["matrix"]
    assert pyproject()["project"]["requires-python"] == f">={matrix['python'][0]}"


def test_the_extra_all_holds_every_extra_of_a_user() -> None:
    extras = pyproject()["project"]["optional-dependencies"]
    users = set(extras) - {"all", "dev"}
    assert extras["all"] == [f"pytest-saber[{','.join(extra for extra in extras if extra in users)}]"]
    assert "pytest-saber[all]" in extras["dev"]


def test_every_package_stands_in_a_layer() -> None:
    [contract] = [found for found in pyproject()["tool"]["importlinter"]["contracts"] if found["name"] == "layers"]
    layered = {name.strip().removeprefix("pytest_saber.") for layer in contract["layers"] for name in layer.split("|")}
    packages = {path.parent.name for path in (ROOT / "pytest_saber").glob("*/__init__.py")}
    assert packages - layered == set()


def test_workflows_pin_actions_and_ask_for_few_rights() -> None:
    for path in WORKFLOW.parent.glob("*.yml"):
        text = path.read_text()
        document = yaml.safe_load(text)
        foreign = [use for use in re.findall(r"uses: (\S+)", text) if not use.startswith("./")]
        assert [use for use in foreign if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", use)] == [], path
        assert document["permissions"] == {"contents": "read"}, path
        assert all("timeout-minutes" in job or "uses" in job for job in document["jobs"].values()), path
