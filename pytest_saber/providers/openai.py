"""`openai/NAME`: OpenAI's own service, or any server that speaks its protocol (`--saber-base-url`).

The official service is asked through the Responses API, every other server through Chat Completions, which all of them
speak; `--saber-model-arg api=chat|responses` chooses.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_saber.errors import UsageError
from pytest_saber.model.ports import ModelClient
from pytest_saber.providers.keys import UNUSED, Key, find_key
from pytest_saber.providers.openai_sdk import is_official
from pytest_saber.providers.options import ModelOptions, Reader, choice, flag, read_arguments, whole
from pytest_saber.providers.retry import Retrier
from pytest_saber.providers.sdk import COMMON_ARGUMENTS, Settings, checked_url, require

OFFICIAL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"

ARGUMENTS: Mapping[str, Reader] = {
    **COMMON_ARGUMENTS,
    "api": choice("chat", "responses"),
    "reasoning_effort": choice("none", "minimal", "low", "medium", "high", "xhigh"),
    "seed": whole(0, 2**31 - 1),
    "stream": flag,
}


def connect(name: str, options: ModelOptions, *, retrier: Retrier | None = None) -> ModelClient:
    """A client for `openai/NAME`. Raises UsageError for a missing SDK or key, or a wrong argument."""
    require("openai", f"openai/{name}")
    args = read_arguments("openai", options.args, ARGUMENTS)
    base_url = options.base_url or options.environ.get("OPENAI_BASE_URL", "") or OFFICIAL
    checked_url(base_url, "--saber-base-url" if options.base_url else "env OPENAI_BASE_URL")
    official = is_official(base_url)
    variable = args.get("key_env", KEY)
    key = find_key([variable], options.environ)
    if key is None:
        if official or "key_env" in args:
            raise UsageError(
                f"--saber-model=openai/{name}: the environment variable {variable} is not set; export {variable}=YOUR-KEY"
                + ("" if "key_env" in args else ", or name a server of your own with --saber-base-url=http://HOST:PORT/v1")
            )
        key = Key(f"{KEY} (not set)", UNUSED)
    settings = Settings("openai", name, key, base_url, args, options.args, max_tokens=16_384 if official else 4096)
    if args.get("api", "responses" if official else "chat") == "responses":
        from pytest_saber.providers.openai_responses import ResponsesClient

        return ResponsesClient(settings, "openai", retrier)
    from pytest_saber.providers.openai_chat import ChatClient

    return ChatClient(settings, "openai", retrier)
