"""The agent under test and the session, as settings choose them."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

import pytest

from pytest_saber.errors import SaberError
from pytest_saber.model.words import agreeing, counted
from pytest_saber.pytest_glue.settings import Settings, Value

if TYPE_CHECKING:
    from pytest_saber.model.ports import AgentFactory


def choose_agent(settings: Settings, model: str) -> AgentFactory:
    """The factory of the agent that works with `model`, as settings name it.

    Raises pytest.UsageError, naming the option to use, when no agent is chosen or the chosen one cannot be made.
    """
    if not model:
        raise pytest.UsageError(
            "saber tasks were collected and no model is chosen: use --saber-model=PROVIDER/NAME, SABER_MODEL or the ini "
            "value saber_model (--saber-model=reference/safe to try), or leave the tasks out of this session"
        )
    from pytest_saber.agents import AgentOptions, resolve
    from pytest_saber.providers.options import ModelOptions

    service = ModelOptions(settings.text("base_url"), _pairs(settings["model_arg"]))
    options = AgentOptions(service, _pairs(settings["agent_arg"]), settings.text("tool_format"))
    try:
        return resolve(settings.text("agent"), model, options)
    except SaberError as error:
        raise pytest.UsageError(str(error)) from None


def choose_session(config: pytest.Config, settings: Settings) -> str:
    """A new session's name, or that of the session to go on with. Raises pytest.UsageError when there is no such session."""
    from pytest_saber.runner.session import new_session

    wanted = settings.text("session")
    if wanted and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", wanted):
        raise pytest.UsageError(
            f"{settings['session'].origin}: {wanted!r} is not a name of letters, digits and _.-, 63 at most"
        )
    if not settings["resume"].flag:
        return wanted or new_session()
    from pytest_saber.record.store import RunStore

    store = RunStore(settings["runs_dir"].path(config))
    if not wanted:
        return store.newest_session() or new_session()
    known = store.sessions()
    if wanted not in known:
        close = difflib.get_close_matches(wanted, known, n=1)
        there = f"there {agreeing(len(known), 'is', 'are')} {counted(len(known), 'session')} in {settings.text('runs_dir')}"
        hint = f"did you mean {close[0]}?" if close else there
        raise pytest.UsageError(f"{settings['session'].origin}: there is no session {wanted} to resume; {hint}")
    return wanted


def check_new(config: pytest.Config, settings: Settings) -> None:
    """Raises pytest.UsageError for a new session with the name of one that has runs, which would be taken for its own.

    Not for a shard: it is a part of its session, whose other parts may have run here.
    """
    name = settings.text("session")
    if not name or settings["resume"].flag or settings.text("shard"):
        return
    count = _recorded(config, settings, name)
    if count:
        raise pytest.UsageError(
            f"{settings['session'].origin}={name}: this session has {counted(count, 'run')} in "
            f"{settings.text('runs_dir')}/{name}; go on with it by --saber-resume, or choose another name"
        )


def begins_anew(config: pytest.Config, settings: Settings) -> list[str]:
    """A line for the header where `--saber-resume` finds no session to go on with."""
    if not settings["resume"].flag or settings.text("session"):
        return []
    from pytest_saber.record.store import RunStore

    if RunStore(settings["runs_dir"].path(config)).newest_session() is not None:
        return []
    return [f"saber resume: no session to go on with in {settings.text('runs_dir')}, a new one begins"]


def way_on(config: pytest.Config, settings: Settings, session: str) -> list[str]:
    """A line that says how to go on with an interrupted session; none where no run of it was recorded."""
    if not _recorded(config, settings, session):
        return []
    return [f"the session was interrupted; go on with: --saber-resume --saber-session={session}"]


def _recorded(config: pytest.Config, settings: Settings, session: str) -> int:
    from pytest_saber.record.store import RunStore

    return len(RunStore(settings["runs_dir"].path(config)).recorded(session))


def _pairs(value: Value) -> dict[str, str]:
    parted = (line.partition("=") for line in value.lines)
    return {name.strip(): text.strip() for name, _, text in parted}
