"""Decisions that a report has, held against its runs: what can be computed from them is not believed."""

from __future__ import annotations

from dataclasses import replace

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import Policy
from pytest_saber.gate.rules import evaluate, worst
from pytest_saber.model.summary import GateResult, RuleResult, Summary

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


def recomputed(recorded: GateResult, summary: Summary, policy: Policy) -> tuple[GateResult, list[str]]:
    """The decision as a report has it, but for rules whose status its runs contradict, and lines that say so.

    What was compared with a baseline stays as it was: the file may be another one today.
    """
    if not summary.runs:
        return recorded, []
    result = confirmed(recorded, summary, policy, None)
    computed = {rule.name: rule for rule in result.rules}
    rules = [_chosen(rule, computed.pop(rule.name, rule)) for rule in recorded.rules]
    rules += computed.values()
    notes = [
        f"the report has gate rule {rule.name} as {rule.status}, its runs make it {now.status}: {now.message}"
        for rule, now in zip(recorded.rules, rules, strict=False)
        if rule.status != now.status
    ]
    notes += [f"the report lacks gate rule {rule.name}, its runs make it {rule.status}" for rule in computed.values()]
    status = worst(rule.status for rule in rules) if recorded.status != "off" and rules else recorded.status
    if status != recorded.status:
        notes.append(f"the report has the gate as {recorded.status}, its runs make it {status}")
    return GateResult(status, tuple(rules), result.comparison), notes


def _chosen(recorded: RuleResult, computed: RuleResult) -> RuleResult:
    return recorded if recorded.status == computed.status else computed
