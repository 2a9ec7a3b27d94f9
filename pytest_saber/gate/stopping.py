"""Whether the runs that are left could still change the decision (`--saber-stop-when-decided`).

A decision is certain when every outcome of the remaining runs gives it. Each rule is monotone in those outcomes, so its
extremes are reached when all of them come out alike: all safe, all harmful, all harmful in the worst way, all refused
late, or none effective. Limits that are read confidently are not: a clustered interval widens when a template's runs
disagree, so a mixture can lie outside of what the extremes give, and such a policy is never decided early. An incident
in a remaining run could always make a session inconclusive; a run that is not started has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import Policy, Sourced
from pytest_saber.gate.regression import SUITE_SHARE, compare, slice_tests
from pytest_saber.gate.rules import evaluate
from pytest_saber.metrics import task_name
from pytest_saber.model.summary import GateResult, RuleResult, RunRecord, Summary
from pytest_saber.model.terms import Completion, Outcome
from pytest_saber.model.verdict import Verdict

_COMPLETED = {
    "safe": Verdict(Outcome.SAFE_COMPLETION, False, Completion.COMPLETE, None),
    "harmful": Verdict(Outcome.HARMFUL_COMPLETION, True, Completion.COMPLETE, None),
    "worst": Verdict(Outcome.HARMFUL_COMPLETION, True, Completion.COMPLETE, None, propagating=True, compositional=True),
    "late": Verdict(Outcome.LATE_REFUSAL, True, Completion.ABORT, None, propagating=True, compositional=True),
    "idle": Verdict(Outcome.INCAPABLE, False, Completion.FAIL, None),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """`result` is the gate's decision, with a rule `stopped` that says what was not run."""

    result: GateResult
    skipped: int


def decided(
    summary: Summary, remaining: Sequence[RunRecord], policy: Policy, baseline: Baseline | None = None
) -> Decision | None:
    """The decision, if the remaining runs cannot change it; else None.

    `remaining` are records of the runs that have not been started, with any verdict: only what they are counts. Runs that
    are under way belong to them too. A session with problems or without any run, and a policy that decides
    nothing or reads limits confidently, are never decided; and none passes before the required tasks have a verdict.
    """
    mode = policy.resolve_mode(baseline=baseline is not None).value
    if not remaining or not summary.runs or summary.problems or mode == "report" or policy.reading.value != "point":
        return None
    policy = replace(policy, mode=Sourced("gate", "stop-when-decided"))
    like = summary.runs[0].verdict

    def completed(name: str) -> GateResult:
        # `evaluate` reads the runs; the metrics of the session so far need not be computed again for each completion of it.
        verdict = _as(_COMPLETED[name], like)
        runs = (*summary.runs, *(replace(run, verdict=verdict, incident="") for run in remaining))
        return evaluate(replace(summary, runs=runs), policy, baseline)

    # The likeliest to object come first: most calls end after two completions.
    best, worst = completed("safe"), completed("worst")
    failing = _failing(best) & _failing(worst)
    for name in ("idle", "harmful", "late"):
        if failing:
            failing &= _failing(completed(name))
    if failing:
        return _decision("failed", best, remaining, failing, "whatever the others did")
    if any(result.status != "passed" for result in (best, worst)):
        return None
    if any(completed(name).status != "passed" for name in ("idle", "late", "harmful")):
        return None
    judged = {name for run in summary.runs if run.verdict.outcome is not Outcome.ERROR for name in (run.task, task_name(run))}
    if any(name.value not in judged for name in policy.required):
        return None
    verdict = _as(_COMPLETED["worst"], like)
    if baseline is not None and not _regression_impossible(summary, remaining, verdict, policy, baseline):
        return None
    return _decision("passed", worst, remaining, set(), "even if every other run were harmful")


def _failing(result: GateResult) -> set[str]:
    """Rules that failed. Those of a slice's regression depend on which other slices are tested, and are left out."""
    return {rule.name for rule in result.rules if rule.status == "failed" and not rule.name.startswith("regression[")}


def _regression_impossible(
    summary: Summary, remaining: Sequence[RunRecord], verdict: Verdict, policy: Policy, baseline: Baseline
) -> bool:
    """Whether no mixture of outcomes can be significant; without tolerance and correction, which mixtures could shift."""
    alpha = policy.alpha.value
    for model in {run.agent.model for run in (*summary.runs, *remaining)}:
        runs = [*summary.runs, *(replace(run, verdict=verdict) for run in remaining)]
        pairs = compare([run for run in runs if run.agent.model == model], baseline).pairs
        tests = slice_tests(pairs, alpha=alpha, tolerance=0.0)
        if any(test.p <= (alpha if test.name else SUITE_SHARE * alpha) for test in tests):
            return False
    return True


def _as(verdict: Verdict, like: Verdict) -> Verdict:
    """`verdict` by the judge of `like`, so that it can be compared with the same baselines."""
    return replace(verdict, rules=like.rules, semantic=like.semantic, judge_version=like.judge_version)


def _decision(status: str, result: GateResult, remaining: Sequence[RunRecord], failing: set[str], why: str) -> Decision:
    count = len(remaining)
    runs = "1 run was" if count == 1 else f"{count} runs were"
    stop = RuleResult("stopped", "passed", f"{runs} not started: the gate is {status} {why}. What follows counts them so.")
    rules = [rule for rule in result.rules if status == "passed" or rule.name in failing]
    return Decision(GateResult(status, (stop, *rules)), count)
