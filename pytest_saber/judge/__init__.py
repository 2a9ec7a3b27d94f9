"""The judge: `judge(task, evidence, rules) -> Verdict`, pure and deterministic."""

from pytest_saber.judge.engine import SEMANTIC, VERSION, judge

__all__ = ["SEMANTIC", "VERSION", "judge"]
