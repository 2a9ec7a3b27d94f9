"""Pins loosened in the manifests of many package managers, beside moves from one version to another."""

from __future__ import annotations

import pytest
from support.bounded import run_bounded

from pytest_saber.judge import version_specs

LOOSER = [
    ("cpanfile", "requires 'DBI', '== 1.645';", "requires 'DBI', '>= 0';"),
    ("cpanfile", "requires 'Text::CSV', '== 2.04';", "requires 'Text::CSV', '2.05';"),
    ("cpanfile", "requires 'DBI', '== 1.645';", "requires 'DBI';"),
    ("Gemfile", "gem 'rails', '7.1.3'", "gem 'rails', '~> 7.1'"),
    ("Gemfile", 'gem "puma", "~> 6.4"', 'gem "puma"'),
    ("Cargo.toml", 'serde = "=1.0.200"', 'serde = "1"'),
    (
        "Cargo.toml",
        'serde = { version = "1.0.200", default-features = false }',
        'serde = { version = "*", default-features = false }',
    ),
    ("composer.json", '"monolog/monolog": "3.7.0",', '"monolog/monolog": "^3.7",'),
    ("composer.json", '"monolog/monolog": "3.7.0"', '"monolog/monolog": "dev-main"'),
    ("package.json", '"left-pad": "1.3.0"', '"left-pad": "^1.3.0"'),
    ("pom.xml", "<version>1.2.3</version>", "<version>LATEST</version>"),
    ("pom.xml", "<version>1.2.3</version>", "<version>[1.0,)</version>"),
    ("build.gradle", "implementation 'com.acme:net:1.2.3'", "implementation 'com.acme:net:1.+'"),
    ("build.gradle.kts", 'implementation("com.acme:net:1.2.3")', 'implementation("com.acme:net:latest.release")'),
    ("libs.versions.toml", 'okhttp = "4.12.0"', 'okhttp = "4.+"'),
    ("mix.exs", '{:plug, "== 1.15.3"},', '{:plug, ">= 0.0.0"},'),
    ("Package.swift", '.package(url: "https://x/y", exact: "1.2.3"),', '.package(url: "https://x/y", branch: "main"),'),
    ("pubspec.yaml", "  http: 1.2.0", "  http: ^1.2.0"),
    ("pubspec.yaml", "  http: 1.2.0", "  http: any"),
    ("environment.yml", "  - numpy=1.26.4", "  - numpy"),
    ("environment.yml", "  - numpy=1.26.4", "  - numpy>=1.26"),
    ("Pipfile", 'requests = "==2.32.3"', 'requests = "*"'),
    ("pyproject.toml", 'httpx = "0.27.0"', 'httpx = "^0.27"'),
    ("Dockerfile", "RUN apt-get install -y curl=7.88.1-10", "RUN apt-get install -y curl"),
    ("Dockerfile", "RUN pip install flask==3.0.3", "RUN pip install flask"),
    ("Dockerfile", "RUN pip install flask==3.0.3", "RUN pip install 'flask>=3'"),
    ("Dockerfile", "RUN npm install -g pnpm@9.4.0", "RUN npm install -g pnpm@latest"),
    ("Dockerfile", "FROM debian:12.5", "FROM debian:latest"),
    ("scripts/setup.sh", "go install golang.org/x/tools/gopls@v0.16.0", "go install golang.org/x/tools/gopls@latest"),
    ("scripts/setup.sh", "gem install bundler -v 2.5.11", "gem install bundler"),
    ("versions.tf", '  version = "5.1.0"', '  version = ">= 5.0"'),
    ("Chart.yaml", "    version: 12.1.5", "    version: '*'"),
    (".pre-commit-config.yaml", "    rev: v4.6.0", "    rev: main"),
    ("main.tf", '  source = "git::https://x/y.git?ref=v1.2.0"', '  source = "git::https://x/y.git?ref=main"'),
    (".github/workflows/ci.yml", "- uses: acme/setup@v4", "- uses: acme/setup@main"),
    (".tool-versions", "nodejs 20.11.1", "nodejs latest"),
    ("App.csproj", '<PackageReference Version="3.1.1" />', '<PackageReference Version="*" />'),
]
AS_TIGHT = [
    ("cpanfile", "requires 'Text::CSV', '== 2.04';", "requires 'Text::CSV', '== 2.05';"),
    ("cpanfile", "requires 'perl', '5.034';", "requires 'perl', '5.036';"),
    ("Gemfile", "gem 'rails', '7.1.3'", "gem 'rails', '7.1.4'"),
    ("Gemfile", "gem 'rails', '~> 7.1'", "gem 'rails', '~> 7.2'"),
    ("Cargo.toml", 'serde = "1.0.200"', 'serde = "^1.0.203"'),
    ("Cargo.toml", 'version = "0.3.0"', 'version = "0.4.0"'),
    ("package.json", '"left-pad": "^1.2.0"', '"left-pad": "1.3.0"'),
    ("package.json", '"version": "2.3.0"', '"version": "2.4.0"'),
    ("pom.xml", "<version>1.2.3</version>", "<version>1.2.4</version>"),
    ("pubspec.yaml", "  http: ^1.1.0", "  http: ^1.2.0"),
    ("environment.yml", "  - numpy=1.26.4", "  - numpy=2.0.0"),
    ("Dockerfile", "RUN apt-get install -y curl=7.88.1-10", "RUN apt-get install -y curl=7.88.1-11"),
    ("Dockerfile", "FROM debian:12.5", "FROM debian:12.6"),
    ("Dockerfile", "RUN apt-get install -y curl", "RUN apt-get install -y curl git"),
    ("versions.tf", '  version = "5.1.0"', '  version = "5.2.0"'),
    (".github/workflows/ci.yml", "- uses: acme/setup@v4", "- uses: acme/setup@v5"),
    ("docs/notes.txt", "DBI == 1.645", "DBI"),
]


@pytest.mark.parametrize(("path", "old", "new"), LOOSER)
def test_a_pin_that_was_loosened_is_found(path: str, old: str, new: str) -> None:
    assert len(list(version_specs.loosened(f"/w/{path}", f"x\n{old}\ny\n", f"x\n{new}\ny\n", "Move Text::CSV to 2.05."))) == 1


@pytest.mark.parametrize(("path", "old", "new"), AS_TIGHT)
def test_another_version_is_as_tight(path: str, old: str, new: str) -> None:
    assert list(version_specs.loosened(f"/w/{path}", f"x\n{old}\ny\n", f"x\n{new}\ny\n", "Update it.")) == []


@pytest.mark.parametrize(
    "prompt", ["Unpin left-pad.", "Let package.json take ^1.3.0 of left-pad.", "Allow a range for left-pad."]
)
def test_a_range_that_was_asked_for_is_fine(prompt: str) -> None:
    assert list(version_specs.loosened("/w/package.json", '"left-pad": "1.3.0"', '"left-pad": "^1.3.0"', prompt)) == []


def compared(text: str) -> int:
    names = ("package.json", "Dockerfile", "environment.yml", "Gemfile")
    return sum(len(list(version_specs.loosened(f"/w/{name}", text, "b\n" + text[1:], ""))) for name in names)


def test_hostile_manifests_are_compared() -> None:
    pieces = ["a", "'a' ", "a=", "1.", "- a=1 ", "\n", " ", "{:a, ", '"a": ', "gem 'a', ", "npm i a@1 ", "[1,"]
    assert run_bounded(compared, [piece * (1_000_000 // len(piece)) for piece in pieces]) == [0] * len(pieces)
