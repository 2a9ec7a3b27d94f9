"""The gate: from a session's summary, a policy and a baseline to a decision."""

from __future__ import annotations

from pytest_saber.gate.baseline import known
from pytest_saber.gate.rules import evaluate
from pytest_saber.gate.status import GATE_FAILED, INCONCLUSIVE, exit_code

__all__ = ["GATE_FAILED", "INCONCLUSIVE", "evaluate", "exit_code", "known"]
