"""The semantic judge that the settings choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_saber.errors import SaberError
from pytest_saber.pytest_glue.settings import Settings

if TYPE_CHECKING:
    from pytest_saber.annotate.semantic import SemanticJudge


def choose_judge(config: pytest.Config, settings: Settings) -> SemanticJudge | None:
    """None where no judge is configured. Raises pytest.UsageError when the configured one cannot be made."""
    model = settings["judge"]
    if not model.text:
        return None
    from pytest_saber.annotate.semantic import make, parse_votes

    arguments = (line.partition("=") for line in settings["judge_arg"].lines)
    try:
        return make(
            model.text,
            votes=parse_votes(settings.text("judge_votes"), settings["judge_votes"].origin),
            base_url=settings.text("judge_base_url"),
            arguments={name.strip(): text.strip() for name, _, text in arguments},
            runs=settings["runs_dir"].path(config),
            option="--saber-judge",
        )
    except SaberError as error:
        raise pytest.UsageError(str(error)) from None
