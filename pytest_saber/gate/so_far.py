"""What the rules of a session say that was decided for certain before all its runs were done.

A rule's status is that of the whole session, whatever the runs would have done that were not started. Its words are about
those that were: `stopping` imagines outcomes to see what could still come, and nobody is told of them as if they had happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import METRICS, Policy
from pytest_saber.gate.regression import Pair, compare_so_far, difference
from pytest_saber.gate.rules import culprit_pairs, evaluate
from pytest_saber.model.summary import GateResult, RuleResult, RunRecord, Summary
from pytest_saber.model.words import agreeing, counted, part

_BOUNDED = {label: bound for name, (bound, label, _) in METRICS.items() if name not in ("max_error_rate", "min_effective")}
"""Rules whose value the other runs can change, by the first word of their names: a run that is not started has no incident."""


class SoFar:
    """The rules of one session.

    `remaining` are records of the runs that were not started, `imagined` what the session came to with each of their extremes.
    """

    def __init__(
        self,
        summary: Summary,
        remaining: Sequence[RunRecord],
        imagined: Sequence[GateResult],
        policy: Policy,
        baseline: Baseline | None,
    ) -> None:
        self._summary = summary
        self._remaining = remaining
        self._imagined = [rule for result in imagined for rule in result.rules]
        self._baseline = baseline
        self._rules = {rule.name: rule for rule in evaluate(summary, policy, baseline).rules}
        self._pairs = () if baseline is None else compare_so_far(summary.runs, remaining, baseline).pairs
        self._others = f"the {counted(len(remaining), 'run')} that {agreeing(len(remaining), 'was', 'were')} not started"

    def of(self, extreme: RuleResult) -> RuleResult:
        """`extreme` is the rule as one of the extremes makes it."""
        name, _, rest = extreme.name.partition("[")
        if name == "coverage":
            return self._coverage(extreme)
        if name == "baseline":
            return replace(extreme, message=f"{self._compared()}; the others have not all run.")
        if name == "regression":
            where = rest.partition("]")[0]
            return self._regression(extreme, [p for p in self._pairs if where in ("", p.scenario, p.category)], where)
        actual = self._rules[extreme.name]
        sure = f"whatever {self._others} would have done"
        values = [rule.value for rule in self._imagined if rule.name == extreme.name and rule.value is not None]
        if name in _BOUNDED and values:
            most = (_BOUNDED[name] == "max") == (extreme.status == "passed")
            bound = f"at {'most' if most else 'least'} {(max if most else min)(values):.3g}"
            return replace(actual, message=f"{actual.message} Of the whole session it is {bound}, {sure}.")
        return actual if extreme.status == "passed" else replace(actual, message=f"{actual.message} It stays so, {sure}.")

    def _coverage(self, extreme: RuleResult) -> RuleResult:
        done, expected = len(self._summary.runs), self._summary.expected
        have = f"{part(done, expected, 'expected run')} {agreeing(done, 'has', 'have')} a record"
        other = len(self._remaining)
        value = done / expected if expected else 0.0
        return replace(
            extreme, message=f"{have}; {counted(other, 'run')} {agreeing(other, 'was', 'were')} not started.", value=value
        )

    def _compared(self) -> str:
        assert self._baseline is not None  # noqa: S101 - the rule is there with one only
        name, count = self._baseline.path or "the baseline", len(self._pairs)
        compared = f"{counted(count, 'task')} {agreeing(count, 'is', 'are')} compared with {name}"
        return f"So far {compared} ({self._baseline.agent.model})"

    def _regression(self, extreme: RuleResult, pairs: Sequence[Pair], where: str) -> RuleResult:
        assert self._baseline is not None  # noqa: S101 - as above
        inside = f" in {where}" if where else ""
        name = self._baseline.path or "the baseline"
        if extreme.status == "failed":
            text = f"Regression: the rise of HSR{inside} against {name} is significant"
        else:
            text = f"HSR{inside} cannot have risen significantly against {name}"
        text += f", whatever {self._others} would have done. So far it changed by {100 * difference(pairs):+.1f} points over "
        text += f"{counted(len(pairs), 'task')}.{culprit_pairs(pairs)}"
        return replace(extreme, message=text, value=difference(pairs))
