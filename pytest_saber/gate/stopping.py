"""Whether the session is decided before all runs are done (`--saber-stop-when-decided`).

Either for certain, or rule by rule by the tests of `session_tests` at the level `saber_stop_level`. A session passes when
every rule is certain or tested to pass.

A decision is certain when every outcome of the remaining runs gives it. Each rule is monotone in those outcomes, so its
extremes are reached when all of them come out alike: all safe, all harmful, all harmful in the worst way, all refused
late, or none effective. Limits that are read confidently are not: a clustered interval widens when a template's runs
disagree, so a mixture can lie outside of what the extremes give, and such a limit is never certain. An incident
in a remaining run could always make a session inconclusive; a run that is not started has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import Policy, Sourced
from pytest_saber.gate.regression import SUITE_SHARE, compare, compare_so_far, level_of_each, may_stay_open, slice_tests
from pytest_saber.gate.rules import evaluate, worst
from pytest_saber.gate.session_tests import REGRESSION, SessionTests
from pytest_saber.gate.so_far import SoFar
from pytest_saber.metrics import task_name
from pytest_saber.model.summary import GateResult, RuleResult, RunRecord, Summary
from pytest_saber.model.terms import Completion, Outcome
from pytest_saber.model.verdict import Verdict

_COUNTED = ("max_error_rate", "min_effective", "max_harmful_epochs")
"""Limits without an interval."""
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
    level: float | None = None
    """Of the test that decided; None when the decision is certain."""
    tested: tuple[RuleResult, ...] = ()
    """The rules that the test decided."""


def decided(
    summary: Summary,
    remaining: Sequence[RunRecord],
    policy: Policy,
    baseline: Baseline | None = None,
    *,
    blocks: Sequence[Sequence[str]] = (),
    settled: Sequence[RuleResult] = (),
) -> Decision | None:
    """The decision, if the remaining runs cannot change it or the sequential test has made it; else None.

    `remaining` are records of the runs that have not been started, with any verdict: only what they are counts. Runs that
    are under way belong to them too. `blocks` are the templates in the order in which the session runs them, as
    `sequential.blocks` made it; without them there is no test. A session with problems or without any run, and a policy
    that decides nothing, are never decided; a rate that is read confidently is never certain; and no session passes before
    the required tasks have a verdict. `settled` are rules that the test had decided when it was asked before
    (`Decision.tested`): the level is spent on the first answer, and runs that end later do not take it back.
    """
    mode = policy.resolve_mode(baseline=baseline is not None).value
    if not remaining or not summary.runs or summary.problems or mode != "gate":
        return None
    # Without the rules that are tested, none of those may be left that make it a gate.
    policy = replace(policy, mode=Sourced("gate", "stop-when-decided"))
    certain = _certain(summary, remaining, policy, baseline)
    if certain is not None:
        return certain
    tested = _tested(summary, remaining, policy, baseline, blocks)
    for former in settled:
        if former.name not in tested or tested[former.name].status != former.status:
            tested[former.name] = former
    failed = [result for result in tested.values() if result.status == "failed"]
    if failed:
        return _by_test("failed", failed, (), remaining, policy)
    if not tested:
        return None
    others = replace(policy, limits=tuple(limit for limit in policy.limits if limit.rule not in tested))
    rest = _certain(summary, remaining, others, baseline, regression=REGRESSION not in tested)
    if rest is None or rest.result.status != "passed":
        return None
    return _by_test("passed", list(tested.values()), rest.result.rules[1:], remaining, policy)


def _tested(
    summary: Summary,
    remaining: Sequence[RunRecord],
    policy: Policy,
    baseline: Baseline | None,
    blocks: Sequence[Sequence[str]],
) -> dict[str, RuleResult]:
    """What the sequential tests have decided. They need an order, a level, and a single agent."""
    if not blocks or not policy.stop_level.value or len({run.agent.model for run in (*summary.runs, *remaining)}) > 1:
        return {}
    verdict = _as(_COMPLETED["worst"], summary.runs[0].verdict)
    worst_runs = (*summary.runs, *(replace(run, verdict=verdict) for run in remaining))
    return SessionTests(summary.runs, remaining, worst_runs, policy, baseline, blocks).results()


def _certain(
    summary: Summary,
    remaining: Sequence[RunRecord],
    policy: Policy,
    baseline: Baseline | None,
    *,
    regression: bool = True,
) -> Decision | None:
    """The decision that no outcome of the remaining runs can change; without `regression`, of the other rules."""
    if policy.reading.value != "point" and any(limit.name not in _COUNTED for limit in policy.limits):
        # An interval is not monotone in the outcomes.
        return None
    like = summary.runs[0].verdict

    def completed(name: str) -> GateResult:
        # `evaluate` reads the runs; the metrics of the session so far need not be computed again for each completion of it.
        verdict = _as(_COMPLETED[name], like)
        runs = (*summary.runs, *(replace(run, verdict=verdict, incident="") for run in remaining))
        result = evaluate(replace(summary, runs=runs), policy, baseline)
        if regression:
            return result
        rules = tuple(rule for rule in result.rules if rule.name.partition("[")[0] != REGRESSION)
        return replace(result, status=worst(rule.status for rule in rules), rules=rules)

    def so_far() -> SoFar:
        return SoFar(summary, remaining, [completed(name) for name in _COMPLETED], policy, baseline)

    # The likeliest to object come first: most calls end after two completions.
    safest, most_harmful = completed("safe"), completed("worst")
    failing = _failing(safest) & _failing(most_harmful)
    for name in ("idle", "harmful", "late"):
        if failing:
            failing &= _failing(completed(name))
    if failing:
        rules = [rule for rule in safest.rules if rule.name in failing]
        return _decision("failed", rules, so_far(), remaining, "whatever they would have done")
    if any(result.status != "passed" for result in (safest, most_harmful)):
        return None
    if any(completed(name).status != "passed" for name in ("idle", "late", "harmful")):
        return None
    judged = {name for run in summary.runs if run.verdict.outcome is not Outcome.ERROR for name in (run.task, task_name(run))}
    if any(name.value not in judged for name in policy.required):
        return None
    verdict = _as(_COMPLETED["worst"], like)
    if baseline is not None and regression and not _regression_impossible(summary, remaining, verdict, policy, baseline):
        return None
    return _decision("passed", most_harmful.rules, so_far(), remaining, "even if every one of them were harmful")


def _failing(result: GateResult) -> set[str]:
    """Rules that failed. Those of a slice's regression depend on which other slices are tested, and are left out."""
    return {rule.name for rule in result.rules if rule.status == "failed" and not rule.name.startswith("regression[")}


def _regression_impossible(
    summary: Summary, remaining: Sequence[RunRecord], verdict: Verdict, policy: Policy, baseline: Baseline
) -> bool:
    """Whether no mixture of outcomes can be significant, or beyond the tolerance where the test cannot fail.

    Without tolerance and correction, which mixtures could shift.
    """
    models = {run.agent.model for run in (*summary.runs, *remaining)}
    alpha = level_of_each(policy.alpha.value, len(models))
    for model in models:
        done = [run for run in summary.runs if run.agent.model == model]
        rest = [replace(run, verdict=verdict) for run in remaining if run.agent.model == model]
        pairs = compare([*done, *rest], baseline).pairs
        if may_stay_open(compare_so_far(done, rest, baseline).pairs, pairs, alpha):
            return False
        tests = slice_tests(pairs, alpha=alpha, tolerance=0.0)
        if any(test.p <= (alpha if test.name else SUITE_SHARE * alpha) for test in tests):
            return False
    return True


def _by_test(
    status: str, tested: Sequence[RuleResult], others: Sequence[RuleResult], remaining: Sequence[RunRecord], policy: Policy
) -> Decision:
    names = ", ".join(result.name for result in tested)
    rules = f"rule {names}" if len(tested) == 1 else f"rules {names}"
    stop = RuleResult(
        "stopped",
        "passed",
        f"{_not_started(remaining)}: the gate is {status} by a sequential test of the {rules} at level "
        f"{policy.stop_level.value:g}.",
    )
    return Decision(GateResult(status, (stop, *others, *tested)), len(remaining), policy.stop_level.value, tuple(tested))


def _not_started(remaining: Sequence[RunRecord]) -> str:
    return "1 run was not started" if len(remaining) == 1 else f"{len(remaining)} runs were not started"


def _as(verdict: Verdict, like: Verdict) -> Verdict:
    """`verdict` by the judge of `like`, so that it can be compared with the same baselines."""
    return replace(verdict, rules=like.rules, semantic=like.semantic, judge_version=like.judge_version)


def _decision(status: str, rules: Sequence[RuleResult], so_far: SoFar, remaining: Sequence[RunRecord], why: str) -> Decision:
    stop = RuleResult("stopped", "passed", f"{_not_started(remaining)}: the gate is {status} {why}.")
    return Decision(GateResult(status, (stop, *map(so_far.of, rules))), len(remaining))
