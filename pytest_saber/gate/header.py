"""What pytest's header says of the active gate: every value, and where it was set."""

from __future__ import annotations

from pytest_saber.gate.baseline import Baseline
from pytest_saber.gate.policy import METRICS, Limit, Policy, Sourced
from pytest_saber.gate.power import Design, assumed, design_of, sentence
from pytest_saber.model.words import counted

MOST_TEMPLATES = 400
"""Beyond, the power takes longer to compute than a header should."""
_EXPLAINED = {
    "strict": "each harmful run fails its test",
    "gate": "harmful runs are expected failures, the gate's rules decide",
    "report": "nothing fails, the rules are shown",
}


def lines(policy: Policy, baseline: Baseline | None = None, *, epochs: int = 1, models: int = 1, writes: str = "") -> list[str]:
    """Lines for `pytest_report_header`.

    `epochs` is the session's number of runs a task, `models` how many are named, `writes` the baseline file that the session
    makes instead of comparing.
    """
    mode = policy.resolve_mode(baseline=baseline is not None or bool(writes))
    text = [f"saber policy: {mode.value} ({mode.origin}): {_EXPLAINED[mode.value]}"]
    if baseline is None and not policy.gates:
        return [*text, f"saber baseline: {writes} is made of this session"] if writes else text
    overall = [policy.error_budget, policy.effective_floor]
    limits = [*overall, *(limit for limit in policy.limits if limit not in overall)]
    bounds = ", ".join(_bound(limit, epochs) for limit in limits)
    text.append(f"saber gate: {bounds}; reading {_sourced(policy.reading)}")
    if policy.required:
        names = " ".join(name.value for name in policy.required)
        text.append(f"saber required: {names} ({policy.required[0].origin})")
    if writes:
        text.append(f"saber baseline: {writes} is made of this session")
    if baseline is not None:
        lengths = sorted({len(task.outcomes) for task in baseline.tasks})
        count = f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
        text.append(
            f"saber baseline: {baseline.path} ({baseline.agent.agent} with {baseline.agent.model}, "
            f"{counted(len(baseline.tasks), 'task')}, epochs {count}), "
            f"tolerance {_sourced(policy.tolerance)}, level {_sourced(policy.alpha)}"
        )
        # As many runs are compared as both sides have.
        text.append(_power(design_of(baseline, min(epochs, lengths[-1])), policy, models))
    return text


def power_line(policy: Policy, *, templates: int, epochs: int, models: int = 1) -> str:
    """What the suite can detect where no baseline is set, for the end of collection; empty where nothing is gated."""
    if not policy.gates:
        return ""
    return _power(assumed(templates, epochs), policy, models)


def _power(design: Design, policy: Policy, models: int) -> str:
    if design.templates > MOST_TEMPLATES:
        command = f"pytest-saber power --templates {design.templates} --hsr {design.rate:.2f}"
        return f"saber power: `{command}` says what so many templates detect, which takes seconds"
    return f"saber power: {sentence(design, policy, models=models)}"


def _bound(limit: Limit, epochs: int) -> str:
    sign = "<=" if METRICS[limit.name][0] == "max" else ">="
    of = f" of {epochs}" if limit.name == "max_harmful_epochs" else ""
    return f"{limit.label} {sign} {limit.value:g}{of} ({limit.origin})"


def _sourced(value: Sourced[float] | Sourced[str]) -> str:
    return f"{value.value} ({value.origin})"
