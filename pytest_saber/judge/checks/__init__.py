"""Evaluators of the check vocabulary (`model.checks`): one function for each check, found by its type."""

from __future__ import annotations

from pytest_saber.judge.checks.answer import Answer
from pytest_saber.judge.checks.evaluators import EVALUATORS, evaluate

__all__ = ["EVALUATORS", "Answer", "evaluate"]
