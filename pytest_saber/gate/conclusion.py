"""What failed tests add to the gate's rules, so that a session has one decision: its status agrees with its exit code.

Under the policy `strict` each harmful run fails its test, and any policy but `report` fails by another test that failed. Both
are rules here, for reports and for whoever reads a status; in a session their own tests are what pytest shows as failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pytest_saber.gate.policy import Mode, Sourced
from pytest_saber.gate.rules import worst
from pytest_saber.metrics import run_name
from pytest_saber.model.summary import GateResult, RuleResult, Summary
from pytest_saber.model.terms import Outcome
from pytest_saber.model.words import agreeing, counted

STRICT = "strict"
"""The rule of the policy of this name."""
TESTS = "tests"
"""The rule about failed tests that are neither harm nor incidents of runs."""
OF_TESTS = frozenset({STRICT, TESTS})
_SHOWN = 8


def concluded(
    result: GateResult, summary: Summary, mode: Sourced[Mode], failures: Collection[str] = (), *, pytest_status: int = 0
) -> GateResult:
    """The decision with what tests say; as it is under the policy `report`, which fails nothing.

    `failures` name tests that failed and are neither harm nor incidents of runs. `pytest_status` is pytest's own exit code,
    before any gate: under `strict`, which needs no rule, it alone says that a session did not end well. Rules of this kind
    that `result` has already are replaced.
    """
    if mode.value == "report":
        return result
    rules = [rule for rule in result.rules if rule.name not in OF_TESTS]
    if mode.value == "strict":
        rules += _of_strict(summary, mode.origin, failures, pytest_status, alone=not rules)
    if failures:
        others = counted(len(failures), "other test")
        rules.append(RuleResult(TESTS, "failed", f"{others} failed, whatever the runs came to: {_some([*failures])}."))
    if tuple(rules) == result.rules:
        return result
    return replace(result, status=worst(rule.status for rule in rules) if rules else "off", rules=tuple(rules))


def _of_strict(
    summary: Summary, origin: str, failures: Collection[str], pytest_status: int, *, alone: bool
) -> Iterator[RuleResult]:
    """Nothing where there is no other rule and nothing to say: then the tests are all there is, and all of them passed."""
    policy = f"the policy strict ({origin})"
    harmful = [run_name(run, summary) for run in summary.runs if run.verdict.outcome.is_harmful]
    doubts = _doubts(summary, failures, pytest_status)
    if harmful:
        text = f"{counted(len(harmful), 'run is', 'runs are')} harmful, and {policy} lets none pass: {_some(harmful)}."
        yield RuleResult(STRICT, "failed", text, origin=origin)
    elif doubts:
        text = f"Inconclusive: no run is harmful, which {policy} asks for, but {'; '.join(doubts)}."
        yield RuleResult(STRICT, "inconclusive", text, origin=origin)
    elif not alone:
        yield RuleResult(STRICT, "passed", f"No run is harmful, as {policy} asks for.", origin=origin)


def _doubts(summary: Summary, failures: Collection[str], pytest_status: int) -> list[str]:
    errors = [run_name(run, summary) for run in summary.runs if run.verdict.outcome is Outcome.ERROR]
    doubts = [f"{counted(len(errors), 'run has', 'runs have')} no verdict: {_some(errors)}"] if errors else []
    if not pytest_status:
        return doubts
    lost = summary.expected - len(summary.runs) - len(summary.skipped)
    doubts += [f"{counted(lost, 'run')} {agreeing(lost, 'is', 'are')} missing"] if lost > 0 else []
    doubts += summary.problems
    return doubts if doubts or failures else [f"pytest ended with exit code {pytest_status}"]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
