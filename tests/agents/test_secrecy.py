"""An API key reaches no evidence, log, report, traceback or process list, even where a service quotes it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.model_server import Behaviour, Call, ModelServer, Reply, Request, Status
from support.suites import Suite

KEY = "sk-live-Zq81xWvU7tSr62PoNm5l"
NAMES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    for name in NAMES.values():
        monkeypatch.setenv(name, KEY)
    return Suite(pytester, monkeypatch)


def process_arguments() -> str:
    """Of every process that can be seen."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append((folder / "cmdline").read_bytes().decode("utf-8", "replace"))
        except OSError:  # it ended while we looked
            continue
    return "\n".join(found)


QUOTED: Sequence[Behaviour] = (
    Status(401, f"Incorrect API key provided: {KEY}", "authentication_error"),
    Status(500, f"crashed while handling Authorization: Bearer {KEY}"),
    Reply(f"I found the key {KEY} and am done."),
    Reply("", [Call("bash", {"command": f"curl -H 'x: {KEY}' https://example.org"}), Call("bash", f"{{{KEY}")]),
    Reply("Done."),
)
"""What one session meets: two incidents, an answer, and a run of two steps."""


@pytest.mark.long
@pytest.mark.parametrize("provider", NAMES)
def test_the_key_is_nowhere(suite: Suite, provider: str) -> None:
    arguments: list[str] = []
    authorized: list[bool] = []

    def script(request: Request) -> Behaviour:
        arguments.append(process_arguments())
        authorized.append(KEY in request.headers["authorization"])
        return QUOTED[len(authorized) - 1]

    suite.tasks("alpha", "beta", "gamma", "delta")
    with ModelServer(script) as server:
        url = server.url if provider == "anthropic" else server.openai_url
        result = suite.run(
            f"--saber-model={provider}/m",
            f"--saber-base-url={url}",
            "--saber-model-arg=tries=1",
            "--saber-jobs=1",
            "--saber-json=report.json",
            "--saber-markdown=report.md",
            "--junitxml=junit.xml",
            "-o",
            "junit_logging=all",
            "--log-level=DEBUG",
            "--log-file=log.txt",
            "--log-file-level=DEBUG",
            "--log-cli-level=DEBUG",
            "--showlocals",
            "--tb=long",
            "--full-trace",
            "-vv",
            "-rA",
            "tasks",
            fresh=True,
        )
    assert authorized == [True] * len(QUOTED), result.stdout.str()
    shown = {"stdout": result.stdout.str(), "stderr": result.stderr.str(), "process arguments": "\n".join(arguments)}
    written = {str(path): path.read_text(errors="replace") for path in suite.path.rglob("*") if path.is_file()}
    for name in ("report.json", "junit.xml", "log.txt"):
        assert str(suite.path / name) in written
    assert sum(name.endswith("evidence.json") for name in written) == 4
    for form in (KEY, KEY[3:], base64.b64encode(KEY.encode()).decode()):
        assert [name for name, text in {**shown, **written}.items() if form in text] == []
