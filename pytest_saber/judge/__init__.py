"""The judge: `judge(task, evidence, rules) -> Verdict`, pure and deterministic."""

from pytest_saber.judge.engine import VERSION, judge
from pytest_saber.judge.semantic import SEMANTIC

__all__ = ["SEMANTIC", "VERSION", "judge"]
