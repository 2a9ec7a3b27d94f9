"""Values of a session: one record a run, rates with intervals, and the gate's decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_saber.model.evidence import AgentIdentity, Usage
from pytest_saber.model.terms import Category, Scenario
from pytest_saber.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class SemanticLabel:
    """What the two layers said of a run, each on its own. Only where a semantic judge was configured."""

    rules: bool
    """Whether the rules alone find the run harmful."""
    harmful: bool | None
    """Whether the semantic judge does; None where it gave no label."""
    problem: str = ""
    """Why it gave none."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as reports and the gate see it."""

    nodeid: str
    task: str
    variant: str
    epoch: int
    scenario: Scenario
    category: Category
    template: str
    title: str
    path: str
    """Of the task file, relative to the root directory."""
    line: int
    task_hash: str
    agent: AgentIdentity
    verdict: Verdict
    seconds: float = 0.0
    steps: int = 0
    usage: Usage = Usage()
    evidence: str = ""
    """Where the evidence lies, relative to the root directory."""
    incident: str = ""
    """Of a run with outcome error, or of one that an incident stopped after a violation: what failed."""
    semantic: SemanticLabel | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """`value` is `count / n`, None where n is 0; `low` and `high` bound a 95 % interval, clustered by template."""

    count: int
    n: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """The paper's metrics over one slice of the runs (section 4.3)."""

    runs: int
    judged: int
    effective: int
    harmful: int
    errors: int
    hsr: Rate
    scr: Rate
    srr: Rate
    ir: Rate
    lrr: Rate
    phr: Rate
    cpr: Rate


@dataclass(frozen=True, slots=True)
class Summary:
    """Keys of the mappings: scenario `A`, category `persistence`, cell `A/persistence`, template, model, in the order named."""

    session: str
    agent: AgentIdentity
    runs: tuple[RunRecord, ...]
    overall: Metrics
    scenario: Mapping[str, Metrics] = field(default_factory=dict)
    category: Mapping[str, Metrics] = field(default_factory=dict)
    cell: Mapping[str, Metrics] = field(default_factory=dict)
    template: Mapping[str, Metrics] = field(default_factory=dict)
    model: Mapping[str, Metrics] = field(default_factory=dict)
    expected: int = 0
    """Runs that were collected for this session; fewer records mean that the rest did not happen."""
    problems: tuple[str, ...] = ()
    """Why the session is not whole: collection errors, crashed workers, an interrupt."""
    skipped: tuple[str, ...] = ()
    """Runs, as `task epoch 2`, that were not started because the gate was decided; `expected` counts them."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule of the gate. `status`: `passed`, `failed` or `inconclusive`; `message` stands alone."""

    name: str
    status: str
    message: str
    limit: float | None = None
    value: float | None = None
    origin: str = ""
    """Where the limit was set: `--saber-max-hsr`, `ini saber_max_hsr`, `env SABER_MAX_HSR`, `default`."""

    @property
    def beside_name(self) -> str:
        """The message for where the name stands beside it: without the model that, in a session of several, both have."""
        model, colon, text = self.message.partition(": ")
        return text if colon and self.name.endswith(f"@{model}") else self.message


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model of a session of several, over all runs or those of one scenario, beside the reference."""

    model: str
    slice: str
    """Empty for all runs, else a scenario."""
    hsr: Rate
    """Over all effective runs of the model, whether the reference ran these tasks or not."""
    tasks: int = 0
    """On which both had an effective run and were judged alike; what follows is about these."""
    templates: int = 0
    runs: int = 0
    """Effective runs of the model on these tasks."""
    reference_runs: int = 0
    unmatched_runs: int = 0
    """Effective runs of the model on other tasks: part of its HSR, and of no difference."""
    unmatched_reference_runs: int = 0
    change: float | None = None
    """Mean over the tasks of the model's harmful rate less the reference's, from -1 to 1; None for the reference itself and
    where no task can be compared."""
    low: float | None = None
    high: float | None = None
    """`low` and `high` bound a 95 % interval of `change`, clustered by template."""
    p: float | None = None
    """Two-sided, of this row alone."""
    adjusted: float | None = None
    """`p` corrected for the number of rows of its kind, by Holm's method."""
    note: str = ""
    """Why nothing is compared, where nothing is."""


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The models of a session against the reference, the one that was named first. `rows` begins with the reference."""

    reference: str
    rows: tuple[ModelRow, ...]


@dataclass(frozen=True, slots=True)
class GateResult:
    """`status`: `passed`, `failed`, `inconclusive` or `off`."""

    status: str
    rules: tuple[RuleResult, ...] = ()
    comparison: ModelComparison | None = None
    """Only in a session of several models. It is shown and decides nothing."""
