"""Settings that change nothing in this session, as what they are a part of is not there.

Typed on the command line, each is a usage error: whoever typed it expects something of it. In a configuration file, in the
environment or in `addopts` it serves other sessions of the project too, and the header says that this one does not go by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pytest_saber.errors import SaberError
from pytest_saber.pytest_glue import provider
from pytest_saber.pytest_glue.settings import Settings, Value

_LIMITS = ("max_hsr", "max_lrr", "max_phr", "max_cpr", "min_scr", "limits")
"""Those of rates, which have an interval."""
_OF_STOPPING = {"seed": "is the seed of its order", "stop_level": "is the level of its test"}
_OF_BASELINE = ("tolerance", "alpha")
_OF_JUDGE = ("judge_votes", "judge_base_url", "judge_arg")
_OF_MODEL = ("base_url", "model_arg")
_OF_AGENT = ("agent_arg", "tool_format")


@dataclass(frozen=True, slots=True)
class Idle:
    """A setting that somebody set, and why this session does not go by it."""

    value: Value
    why: str

    def __str__(self) -> str:
        return f"{self.value.origin}: {self.why}"


def check(config: pytest.Config, settings: Settings) -> None:
    """Raises pytest.UsageError naming every option that was typed and has no effect."""
    typed = {str(arg).partition("=")[0] for arg in config.invocation_params.args}
    problems = [str(found) for found in idle(config, settings) if found.value.origin in typed]
    if problems:
        raise pytest.UsageError(*problems)


def header(config: pytest.Config, settings: Settings) -> list[str]:
    """A line on each setting that has no effect."""
    return [f"saber: no effect in this session: {found}" for found in idle(config, settings)]


def idle(config: pytest.Config, settings: Settings) -> list[Idle]:
    """Every such setting, in the order of the table."""
    reasons = dict((*_of_agent(config, settings), *_of_runs(config, settings), *_of_gate(settings)))
    given = [value for value in settings.values.values() if not value.is_default and value.text.strip()]
    return [Idle(value, reasons[value.setting.name]) for value in given if value.setting.name in reasons]


def _of_agent(config: pytest.Config, settings: Settings) -> Iterator[tuple[str, str]]:
    agent, models = settings.text("agent"), settings["model"].lines
    if provider.hooks(config):
        # A hook may read any setting itself.
        return
    if ":" in agent:
        for name in (*_OF_MODEL, *_OF_AGENT):
            yield name, f"is not handed to the agent {agent}, which is called with the task alone"
    elif models and all(model.startswith(provider.REFERENCE) for model in models):
        for name in (*_OF_MODEL, *_OF_AGENT):
            yield name, f"has no effect with {', '.join(models)}, which replays calls that tasks hold and asks no model"


def _of_runs(config: pytest.Config, settings: Settings) -> Iterator[tuple[str, str]]:
    if not settings.text("judge"):
        for name in _OF_JUDGE:
            yield name, "there is no semantic judge; name one with --saber-judge"
    if config.getoption("numprocesses", None) or config.getoption("tx", None):
        yield "jobs", "has no effect with xdist, whose workers run one at a time each; say how many with -n, or leave out -n"


def _of_gate(settings: Settings) -> Iterator[tuple[str, str]]:
    if not settings["stop_when_decided"].flag:
        for name, what in _OF_STOPPING.items():
            yield name, f"has no effect without --saber-stop-when-decided: it {what}"
    else:
        match _mode(settings):
            case "report":
                yield "stop_when_decided", "has no effect with the policy report, under which nothing is decided"
            case "strict":
                yield (
                    "stop_when_decided",
                    "has no effect with the policy strict, where any run may be the harmful one; -x ends a session with its "
                    "first harmful run, and the policy gate decides about limits",
                )
    if settings.text("shard"):
        # A shard hands the whole policy on to the merge, which may have a baseline.
        return
    if not settings.text("baseline"):
        for name in _OF_BASELINE:
            yield name, "has no effect without a baseline to compare with; name one with --saber-baseline=FILE"
    if all(settings[name].is_default for name in _LIMITS):
        yield "reading", "has no effect without a limit on a rate, such as --saber-max-hsr=0.2"


def _mode(settings: Settings) -> str:
    """The policy that is in force; nothing for one that cannot be read, which is told when tasks are there."""
    from pytest_saber.gate import policy as policies

    try:
        return policies.from_settings(settings.for_policy()).resolve_mode(baseline=bool(settings.text("baseline"))).value
    except SaberError:
        return ""
