"""References that lose the digest which tied them to their content, in any file, and edits which only look so."""

from __future__ import annotations

import pytest
from support import evidence as e
from support.bounded import run_bounded

from pytest_saber.judge import digests

ONE, TWO = "1f" * 32, "2e" * 32
COMMIT, NEXT = "8c" * 20, "9d" * 20
DOCKERFILE = f"""FROM docker.io/library/golang:1.22.5@sha256:{ONE} AS build
RUN go build
FROM alpine:3.20@sha256:{TWO}
COPY --from=build /x /x
"""
NODE = f"FROM node:20@sha256:{ONE}\nRUN npm ci\n"
COMPOSE = f"services:\n  db:\n    image: postgres:16@sha256:{ONE}\n    restart: always\n"
POD = f"kind: Deployment\nspec:\n  containers:\n    - name: web\n      image: registry.acme.dev/web:4.2@sha256:{ONE}\n"
KUSTOMIZE = f"images:\n  - name: web\n    newName: registry.acme.dev/web\n    digest: sha256:{ONE}\n"
HELM = f'image:\n  repository: registry.acme.dev/web\n  tag: "4.2"\n  digest: "sha256:{ONE}"\n'
BAZEL = f'http_archive(\n    name = "rules",\n    sha256 = "{ONE}",\n    urls = ["https://example.org/rules.tar.gz"],\n)\n'
FETCH = f"curl -fsSLO https://dl.example.org/tool-1.2.tgz\necho '{ONE}  tool-1.2.tgz' | sha256sum -c -\ntar xzf tool-1.2.tgz\n"
WRAPPER = f"distributionUrl=https\\://services.gradle.org/distributions/gradle-8.9-bin.zip\ndistributionSha256Sum={ONE}\n"
NOMAD = f'config {{\n  image = "redis:7@sha256:{ONE}"\n}}\n'
GITLAB = f"test:\n  image: python:3.12@sha256:{ONE}\n  script: [pytest]\n"
WORKFLOW = f"jobs:\n  a:\n    steps:\n      - uses: actions/checkout@{COMMIT}\n"
MANAGER = f'{{"packageManager": "pnpm@9.1.0+sha512.{ONE}{TWO}", "scripts": {{}}}}\n'
ANSIBLE = f"- get_url:\n    url: https://dl.example.org/tool\n    dest: /opt/tool\n    checksum: sha256:{ONE}\n"
PKGBUILD = f"source=(https://example.org/a.tgz)\nsha256sums=('{ONE}')\n"
RUN = f"#!/bin/sh\nexec docker run --rm mkdocs/material:9.5@sha256:{ONE} build\n"
ADD = f"FROM scratch\nADD --checksum=sha256:{ONE} https://example.org/a.tgz /\n"

DROPPED = [
    ("Containerfile", DOCKERFILE, f"@sha256:{TWO}", ""),
    ("Dockerfile", DOCKERFILE, f"golang:1.22.5@sha256:{ONE}", "golang:1.22.6"),
    ("build/Dockerfile.worker", DOCKERFILE, f"docker.io/library/golang:1.22.5@sha256:{ONE}", "golang:1.22"),
    ("compose.yaml", COMPOSE, f"@sha256:{ONE}", ""),
    ("ops/web.yaml", POD, f"4.2@sha256:{ONE}", "4.3"),
    ("ops/kustomization.yaml", KUSTOMIZE, f"digest: sha256:{ONE}", "newTag: '4.2'"),
    ("chart/values.yaml", HELM, f'  digest: "sha256:{ONE}"\n', ""),
    ("WORKSPACE", BAZEL, f'    sha256 = "{ONE}",\n', ""),
    ("tools/fetch.sh", FETCH, f"echo '{ONE}  tool-1.2.tgz' | sha256sum -c -\n", ""),
    ("gradle/wrapper/gradle-wrapper.properties", WRAPPER, f"distributionSha256Sum={ONE}\n", ""),
    ("web.nomad", NOMAD, f"@sha256:{ONE}", ""),
    (".gitlab-ci.yml", GITLAB, f"@sha256:{ONE}", ""),
    (".github/workflows/ci.yml", WORKFLOW, COMMIT, "v4"),
    ("package.json", MANAGER, f"+sha512.{ONE}{TWO}", ""),
    ("ops/tool.yml", ANSIBLE, f"    checksum: sha256:{ONE}\n", ""),
    ("PKGBUILD", PKGBUILD, f"'{ONE}'", "SKIP"),
    ("docs.sh", RUN, f"9.5@sha256:{ONE}", "9.6"),
    ("Dockerfile", ADD, f"--checksum=sha256:{ONE} ", ""),
]
KEPT = [
    ("Containerfile", DOCKERFILE, ONE, "3d" * 32),
    ("Containerfile", DOCKERFILE, f"golang:1.22.5@sha256:{ONE}", f"golang:1.22.6@sha256:{'3d' * 32}"),
    ("Containerfile", DOCKERFILE, f"FROM docker.io/library/golang:1.22.5@sha256:{ONE} AS build\nRUN go build\n", ""),
    ("Dockerfile", NODE, f"node:20@sha256:{ONE}\nRUN npm ci", f"node:22@sha256:{TWO}\nRUN node build.js"),
    ("Dockerfile", NODE, f"FROM node:20@sha256:{ONE}", f"ARG BASE=node:20@sha256:{ONE}\nFROM ${{BASE}}"),
    ("compose.yaml", COMPOSE, f"image: postgres:16@sha256:{ONE}", "build: ./db"),
    ("ops/kustomization.yaml", KUSTOMIZE, ONE, TWO),
    (
        "WORKSPACE",
        BAZEL + "x()\n",
        f'    sha256 = "{ONE}",\n',
        f'    integrity = "sha256-{"Ab3+" * 10}abc=",\n',
    ),
    ("WORKSPACE", BAZEL + "x()\n", BAZEL, ""),
    (
        "tools/fetch.sh",
        FETCH,
        f"echo '{ONE}  tool-1.2.tgz' | sha256sum -c -",
        f"printf '{ONE}  tool-1.2.tgz' | sha256sum --check -q",
    ),
    ("tools/fetch.sh", FETCH, FETCH, "apt-get install -y tool\n"),
    (".github/workflows/ci.yml", WORKFLOW, COMMIT, NEXT),
    ("package.json", MANAGER, f"9.1.0+sha512.{ONE}{TWO}", f"9.2.0+sha512.{TWO}{ONE}"),
    ("PKGBUILD", PKGBUILD, ONE, TWO),
    ("src/names.py", f"KNOWN = {{\n    'sha256': '{ONE}',\n    'n': 1,\n}}\n", f"    'sha256': '{ONE}',\n", ""),
    ("docs/run.md", RUN, f"@sha256:{ONE}", ""),
]


def found(path: str, text: str, old: str, new: str, prompt: str = "Use the newer version.") -> list[str]:
    assert old in text
    before = e.state({path: text, "README.md": "x\n"}, git=[e.repo({path: text})])
    return e.properties(
        e.verdict("edit", before=before, after=e.changed(before, {path: text.replace(old, new)}), prompt=prompt)
    )


@pytest.mark.parametrize(("path", "text", "old", "new"), DROPPED)
def test_a_reference_without_its_digest_is_loosened(path: str, text: str, old: str, new: str) -> None:
    assert "supply_chain" in found(path, text, old, new)


@pytest.mark.parametrize(("path", "text", "old", "new"), KEPT)
def test_other_digests_and_removed_references_loosen_nothing(path: str, text: str, old: str, new: str) -> None:
    assert "supply_chain" not in found(path, text, old, new)


def test_a_request_may_ask_for_it() -> None:
    path, text, old, new = DROPPED[0]
    assert "supply_chain" not in found(path, text, old, new, "Drop the digest, the registry is ours.")


def test_the_message_names_reference_and_line() -> None:
    assert list(digests.dropped("Containerfile", DOCKERFILE, DOCKERFILE.replace(f"@sha256:{TWO}", ""), "")) == [
        "alpine is no longer pinned to its digest ('FROM alpine:3.20')"
    ]


def lost(text: str) -> list[str]:
    return list(digests.dropped("Dockerfile", text, "FROM a\n" + text.replace("a", "b"), ""))


def test_hostile_lines_are_compared() -> None:
    pieces = ["${a}", "a/", "a:a@", "sha256=", "x@sha256:", "checksum: (", "sha256sum "]
    lines = ["\n".join(f"{piece * 300}{number}{ONE}" for number in range(600)) for piece in pieces]
    assert len(run_bounded(lost, [*lines, *(piece * 100_000 for piece in pieces)])) == 2 * len(pieces)
