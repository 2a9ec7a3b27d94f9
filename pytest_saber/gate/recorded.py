"""Decisions that a report has, held against its runs: what can be computed from them is not believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.conclusion import OF_TESTS, concluded
from pytest_saber.gate.policy import Policy
from pytest_saber.gate.rules import evaluate, worst
from pytest_saber.model.summary import GateResult, RuleResult, Summary
from pytest_saber.model.words import agreeing, counted

STOPPED = "stopped"
"""The rule that says which runs were not started, as `stopping` makes it."""


def confirmed(recorded: GateResult, summary: Summary, policy: Policy, baseline: Baseline | None) -> GateResult:
    """The decision about a session by its own policy: computed, or the one that was made early, as long as its runs allow it.

    What a session that was decided early would have shown cannot be computed any more. But it cannot have been passed where the
    runs that there are fail a rule: whoever decides early counts on the rest being as harmless or as idle as can be, too.
    """
    result = evaluate(summary, policy, baseline)
    early = summary.skipped and not summary.problems and any(rule.name == STOPPED for rule in recorded.rules)
    if not early or (recorded.status == "passed" and any(rule.status == "failed" for rule in result.rules)):
        return result
    return replace(recorded, comparison=result.comparison)


def decided_anew(summary: Summary, policy: Policy, baseline: Baseline | None) -> GateResult:
    """The decision by another policy or baseline than the session was run with.

    Of a session that its own policy ended early it fails nothing: the runs that were not started could have made it good.
    """
    result = evaluate(summary, policy, baseline)
    if not summary.skipped:
        return result
    others = f"{counted(len(summary.skipped), 'run')} {agreeing(len(summary.skipped), 'was', 'were')} not started"
    rules = tuple(
        replace(rule, status="inconclusive", message=f"Inconclusive, as {others}. So far: {rule.message}")
        if rule.status == "failed"
        else rule
        for rule in result.rules
    )
    return replace(
        result, status=result.status if result.status == "off" else worst(rule.status for rule in rules), rules=rules
    )


def recomputed(
    recorded: GateResult, summary: Summary, policy: Policy, *, compared: bool = False, failures: Sequence[str] = ()
) -> tuple[GateResult, list[str]]:
    """The decision as a report has it, but for rules whose status its runs and its other `failures` contradict, and lines
    that say so.

    What was compared with a baseline (`compared`: whether there was one) stays as it was: the file may be another one today.
    """
    if not summary.runs:
        return recorded, []
    mode = policy.resolve_mode(baseline=compared)
    result = concluded(confirmed(recorded, summary, policy, None), summary, mode, failures)
    computed = {rule.name: rule for rule in result.rules}
    rules = [_chosen(rule, computed.pop(rule.name, rule)) for rule in recorded.rules]
    rules += computed.values()
    notes = [
        f"the report has gate rule {rule.name} as {rule.status}, its runs make it {now.status}: {now.message}"
        for rule, now in zip(recorded.rules, rules, strict=False)
        if rule.status != now.status
    ]
    notes += [f"the report lacks gate rule {rule.name}, its runs make it {rule.status}" for rule in computed.values()]
    decides = recorded.status != "off" or any(rule.name in OF_TESTS for rule in rules)
    status = worst(rule.status for rule in rules) if decides and rules else recorded.status
    if status != recorded.status:
        notes.append(f"the report has the gate as {recorded.status}, its runs make it {status}")
    return GateResult(status, tuple(rules), result.comparison), notes


def _chosen(recorded: RuleResult, computed: RuleResult) -> RuleResult:
    # How pytest itself ended is no longer known: of tests, a report knows worse than its runs.
    known_worse = recorded.name in OF_TESTS and worst((recorded.status, computed.status)) == recorded.status
    return recorded if known_worse or recorded.status == computed.status else computed
