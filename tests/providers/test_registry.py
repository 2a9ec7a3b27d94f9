"""Model strings, keys and arguments: every mistake is a usage error before a run starts."""
# ruff: noqa: E501 - a table of messages reads better unbroken

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_saber.errors import UsageError
from pytest_saber.providers import ModelOptions, connect, names, secrets
from pytest_saber.providers.keys import Key, public_url

KEYS = {"OPENAI_API_KEY": "sk-0123456789abcdef", "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
URL = "http://127.0.0.1:9/v1"


def test_providers_are_found_by_name() -> None:
    assert names() == ["anthropic", "local", "openai", "scripted"]


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("", {}, "no model is set: give one with --saber-model=PROVIDER/NAME, such as openai/NAME, anthropic/NAME or local/smollm2-135m"),
        ("gpt-5", {}, "--saber-model=gpt-5: expected PROVIDER/NAME, such as openai/gpt-5"),
        ("claude-x", {}, "--saber-model=claude-x: expected PROVIDER/NAME, such as anthropic/claude-x"),
        ("opneai", {}, "--saber-model=opneai: expected PROVIDER/NAME, such as openai/NAME"),
        ("local", {}, "--saber-model=local: expected PROVIDER/NAME, such as local/NAME"),
        ("openai/", {}, "--saber-model=openai/: expected PROVIDER/NAME, such as openai/NAME"),
        ("/gpt", {}, "--saber-model=/gpt: expected PROVIDER/NAME, such as openai/gpt"),
        (
            "opnai/gpt",
            {},
            "--saber-model=opnai/gpt: did you mean 'openai/gpt'? known providers are anthropic, local, openai, scripted and reference;"
            " any OpenAI-compatible server is openai/NAME with --saber-base-url",
        ),
        ("retry/x", {}, "--saber-model=retry/x: known providers are anthropic"),
        ("registry/x", {}, "--saber-model=registry/x: known providers are anthropic"),
        (
            "openai/gpt",
            {"environ": {}},
            "--saber-model=openai/gpt: the environment variable OPENAI_API_KEY is not set; export OPENAI_API_KEY=YOUR-KEY,"
            " or name a server of your own with --saber-base-url=http://HOST:PORT/v1",
        ),
        ("openai/gpt", {"environ": {"OPENAI_API_KEY": "  "}}, "OPENAI_API_KEY is not set"),
        ("openai/gpt", {"args": {"key_env": "MY_KEY"}}, "the environment variable MY_KEY is not set; export MY_KEY=YOUR-KEY"),
        (
            "openai/gpt",
            {"args": {"key_env": "MY_KEY"}, "base_url": URL},
            "the environment variable MY_KEY is not set; export MY_KEY=YOUR-KEY",
        ),
        (
            "anthropic/claude",
            {"environ": {}},
            "--saber-model=anthropic/claude: the environment variable ANTHROPIC_API_KEY is not set; export ANTHROPIC_API_KEY=YOUR-KEY",
        ),
        ("openai/gpt", {"base_url": "localhost:8000"}, "--saber-base-url: 'localhost:8000' is not an address such as https://host:port/v1"),
        ("openai/gpt", {"base_url": "ftp://x/v1"}, "--saber-base-url: 'ftp://x/v1' is not an address"),
        ("openai/gpt", {"base_url": "http://x:99999/v1"}, "--saber-base-url: 'http://x:99999/v1' is not an address"),
        ("openai/gpt", {"environ": {**KEYS, "OPENAI_BASE_URL": "nope"}}, "env OPENAI_BASE_URL: 'nope' is not an address"),
        ("anthropic/c", {"environ": {**KEYS, "ANTHROPIC_BASE_URL": "nope"}}, "env ANTHROPIC_BASE_URL: 'nope' is not an address"),
        ("openai/gpt", {"args": {"temprature": "0"}}, "--saber-model-arg temprature=0: did you mean 'temperature'? openai knows api, extra_body, key_env, "),
        ("openai/gpt", {"args": {"temperature": "hot"}}, "--saber-model-arg temperature=hot: expected a number from 0 to 2"),
        ("openai/gpt", {"args": {"temperature": "nan"}}, "--saber-model-arg temperature=nan: expected a number from 0 to 2"),
        ("openai/gpt", {"args": {"max_tokens": "0"}}, "--saber-model-arg max_tokens=0: expected a whole number from 1 to 1000000"),
        ("openai/gpt", {"args": {"max_tokens": "1e3"}}, "expected a whole number"),
        ("openai/gpt", {"args": {"api": "response"}}, "--saber-model-arg api=response: expected chat or responses; did you mean 'responses'?"),
        ("openai/gpt", {"args": {"stream": "yes"}}, "--saber-model-arg stream=yes: expected true or false"),
        ("openai/gpt", {"args": {"extra_body": "[1]"}}, "--saber-model-arg extra_body=[1]: expected a JSON object"),
        ("openai/gpt", {"args": {"key_env": ""}}, "--saber-model-arg key_env=: expected a value"),
        ("anthropic/c", {"args": {"api": "chat"}}, "--saber-model-arg api=chat: anthropic knows cache, effort, "),
        ("local/llama", {}, "--saber-model=local/llama: known local models are smollm2-135m; any other is local/llama with --saber-model-arg path=FILE.gguf"),
        ("local/x", {"args": {"path": "/nowhere.gguf"}}, "--saber-model=local/x: no weights at /nowhere.gguf (No such file or directory); give the path"),
        ("local/x", {"args": {"path": __file__}}, "is not a GGUF file; give the path of a GGUF file with --saber-model-arg path=FILE"),
        ("local/smollm2-135m", {"base_url": URL}, "--saber-base-url: a local model has none"),
        ("scripted/x.json", {"base_url": URL}, "--saber-base-url: a scripted model has none, its replies are in the file"),
        ("scripted/no.json", {}, "--saber-model=scripted/no.json: cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_the_remedy(model: str, options: Mapping[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(model, ModelOptions(**{"environ": KEYS, **options}))  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert not any(value in str(caught.value) for value in KEYS.values())


@pytest.mark.parametrize(
    ("package", "model", "extra"),
    [
        ("openai", "openai/gpt", "openai"),
        ("anthropic", "anthropic/claude", "anthropic"),
        ("xllamacpp", "local/smollm2-135m", "local"),
    ],
)
def test_a_missing_sdk_names_the_pip_command(package: str, model: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == package else found(name, *rest))
    with pytest.raises(UsageError) as caught:
        connect(model, ModelOptions(environ=KEYS))
    assert str(caught.value) == (
        f"--saber-model={model}: the package '{package}' is not installed; run: pip install 'pytest-saber[{extra}]'"
    )


def test_missing_weights_name_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SABER_CACHE", str(tmp_path))
    with pytest.raises(
        UsageError,
        match=r"no weights at .*SmolLM2-135M-Instruct\.Q4_1\.gguf \(No such file or directory\); run: pytest-saber model$",
    ):
        connect("local/smollm2-135m", ModelOptions())


def test_a_server_of_one_s_own_needs_no_key() -> None:
    client = connect("openai/qwen", ModelOptions(URL, {}, {}))
    assert client.model == "openai/qwen"
    assert client.native_tools
    client.close()


def test_models_without_tool_calls_can_be_told() -> None:
    client = connect("openai/qwen", ModelOptions(URL, {"native_tools": "false"}, {}))
    assert not client.native_tools


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (ModelOptions(environ=KEYS), "ResponsesClient"),
        (ModelOptions(URL, environ=KEYS), "ChatClient"),
        (ModelOptions("https://eu.api.openai.com/v1", environ=KEYS), "ResponsesClient"),
        (ModelOptions("https://api.openai.com.evil.example/v1", environ=KEYS), "ChatClient"),
        (ModelOptions(URL, {"api": "responses"}, KEYS), "ResponsesClient"),
        (ModelOptions(args={"api": "chat"}, environ=KEYS), "ChatClient"),
        (ModelOptions(environ={**KEYS, "OPENAI_BASE_URL": URL}), "ChatClient"),
    ],
)
def test_the_api_that_fits_the_server(options: ModelOptions, kind: str) -> None:
    assert type(connect("openai/m", options)).__name__ == kind


def test_connecting_imports_no_sdk() -> None:
    code = (
        "import sys; from pytest_saber.providers import connect, ModelOptions\n"
        f"for model in ('openai/x', 'anthropic/x'): connect(model, ModelOptions(environ={KEYS!r}))\n"
        "print([name for name in ('openai', 'anthropic', 'httpx2', 'xllamacpp', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_an_identity_tells_of_a_client() -> None:
    args = {"temperature": "0", "extra_body": '{"token": "sk-0123456789abcdef"}'}
    client = connect("openai/m", ModelOptions("https://user:pass@host.example:8443/v1?key=1#x", args, KEYS))
    details = dict(client.details)  # type: ignore[attr-defined]
    assert details.pop("openai").count(".") == 2
    assert details == {
        "base_url": "https://host.example:8443/v1",
        "model_arg.extra_body": '{"token": "[redacted]"}',
        "model_arg.temperature": "0",
    }


def test_a_key_shows_itself_to_nobody() -> None:
    key = Key("OPENAI_API_KEY", KEYS["OPENAI_API_KEY"])
    assert key.reveal() == KEYS["OPENAI_API_KEY"]
    assert repr(key) == str(key) == f"{key}" == "Key(OPENAI_API_KEY)"
    assert key.clean(f"bad key {KEYS['OPENAI_API_KEY']}, see sk-proj-********abcd") == "bad key [redacted], see [redacted]"
    with pytest.raises(TypeError, match="never serialised"):
        pickle.dumps(key)
    assert KEYS["OPENAI_API_KEY"] not in repr(ModelOptions(environ=KEYS))


def test_the_operator_s_secrets_are_found_by_name() -> None:
    environ = {
        **KEYS,
        "GITHUB_TOKEN": "ghp_0123456789",
        "DB_PASSWORD": "correct horse",
        "AWS_SECRET_ACCESS_KEY": "abcdefghij",
        "aws_credentials": "lower case",
        "PATH": "/usr/bin:/bin",
        "KEYBOARD": "long enough",
        "TOKENIZERS_PARALLELISM": "false-false",
        "DUMMY_API_KEY": "EMPTY",
    }
    assert secrets(environ) == (
        "abcdefghij", "correct horse", "ghp_0123456789", "lower case", "sk-0123456789abcdef", "sk-ant-0123456789",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("url", "shown"),
    [("http://[::1]:80/v1", "http://[::1]:80/v1"), ("https://a.b", "https://a.b"), ("https://key@a.b/x?y=z", "https://a.b/x")],
)
def test_addresses_are_shown_without_credentials(url: str, shown: str) -> None:
    assert public_url(url) == shown
