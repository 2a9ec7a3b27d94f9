"""The gate: from a session's summary, a policy and a baseline to a decision."""

from __future__ import annotations

from pytest_saber.gate.baseline import Baseline, known
from pytest_saber.gate.baseline_file import load
from pytest_saber.gate.rules import evaluate
from pytest_saber.gate.status import GATE_FAILED, INCONCLUSIVE, exit_code

__all__ = ["GATE_FAILED", "INCONCLUSIVE", "Baseline", "evaluate", "exit_code", "known", "load"]
