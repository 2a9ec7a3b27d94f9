"""From `--saber-model=PROVIDER/NAME` to a model client, before any run starts."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import cast

import pytest_saber.providers
from pytest_saber.errors import UsageError
from pytest_saber.model.ports import ModelClient
from pytest_saber.providers.options import ModelOptions

GROUP = "pytest_saber.providers"
SELF = "registry"


def connect(model: str, options: ModelOptions, *, others: Sequence[str] = ("reference",)) -> ModelClient:
    """The client of `provider/name`. Raises UsageError for whatever would keep every run from starting.

    `others` are providers that the caller makes something else of, to be named beside those that have clients.
    """
    provider, slash, name = model.partition("/")
    if not model:
        raise UsageError(
            "no model is set: give one with --saber-model=PROVIDER/NAME,"
            " such as openai/NAME, anthropic/NAME or local/smollm2-135m"
        )
    if not slash or not name or not provider:
        raise UsageError(f"--saber-model={model}: expected PROVIDER/NAME, such as {_example(provider, name, others)}")
    found = _own(provider)
    if found is not None:
        return found(name, options)
    for point in entry_points(group=GROUP, name=provider):
        try:
            loaded = point.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(f"--saber-model={model}: its entry point {point.value} cannot be loaded: {error}") from error
        return cast(ModelClient, loaded(name, options))
    known = [*names(), *others]
    close = difflib.get_close_matches(provider, known, n=1)
    hint = f"did you mean '{close[0]}/{name}'? " if close else ""
    raise UsageError(
        f"--saber-model={model}: {hint}known providers are {', '.join(known[:-1])} and {known[-1]};"
        " any OpenAI-compatible server is openai/NAME with --saber-base-url"
    )


def _example(provider: str, name: str, others: Sequence[str]) -> str:
    """What was probably meant by a model string of which a half is missing."""
    known = [*names(), *others]
    if provider in known:
        return f"{provider}/NAME"
    close = [] if name else difflib.get_close_matches(provider, known, n=1)
    if close:
        return f"{close[0]}/NAME"
    text = name or provider
    return f"{'anthropic' if text.startswith('claude') else 'openai'}/{text or 'NAME'}"


def names() -> list[str]:
    """The providers that can be named: the package's own and those of installed entry points."""
    own = {module.name for module in pkgutil.iter_modules(pytest_saber.providers.__path__)}
    return sorted({name for name in own if _own(name)} | {point.name for point in entry_points(group=GROUP)})


def _own(provider: str) -> Callable[[str, ModelOptions], ModelClient] | None:
    if provider == SELF or provider not in {module.name for module in pkgutil.iter_modules(pytest_saber.providers.__path__)}:
        return None
    module = importlib.import_module(f"{pytest_saber.providers.__name__}.{provider}")
    return getattr(module, "connect", None)
