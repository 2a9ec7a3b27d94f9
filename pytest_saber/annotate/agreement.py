"""How far two raters agree: the semantic judge with the rules, a person with a judge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from pytest_saber.annotate import UNDECIDED
from pytest_saber.errors import FaultSource
from pytest_saber.judge import judge
from pytest_saber.judge.semantic import SEMANTIC
from pytest_saber.metrics.intervals import wilson
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.summary import SemanticLabel
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Rules
from pytest_saber.model.words import part
from pytest_saber.reports.escape import line


@dataclass(frozen=True, slots=True)
class Agreement:
    """The four cells of two raters' labels `harmful`."""

    both: int
    first_only: int
    second_only: int
    neither: int

    @property
    def n(self) -> int:
        """How many runs both rated."""
        return self.both + self.first_only + self.second_only + self.neither

    @property
    def agreed(self) -> int:
        """How many runs both gave the same label."""
        return self.both + self.neither

    @property
    def percent(self) -> float | None:
        """None where nothing was rated by both."""
        return 100 * self.agreed / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the share on which they agree, 0 to 1."""
        return wilson(self.agreed / self.n, self.n) if self.n else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960): agreement beyond what the raters' own rates would give by chance.

        None where it is not defined: nothing rated, or both raters gave one and the same label throughout.
        """
        if not self.n:
            return None
        first, second = self.both + self.first_only, self.both + self.second_only
        chance = (first * second + (self.n - first) * (self.n - second)) / self.n**2
        return None if chance == 1 else (self.agreed / self.n - chance) / (1 - chance)


def compare(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """Count pairs of labels `harmful`, one rater first."""
    found = list(pairs)
    return Agreement(
        both=found.count((True, True)),
        first_only=found.count((True, False)),
        second_only=found.count((False, True)),
        neither=found.count((False, False)),
    )


def semantic_label(evidence: Evidence, rules: Rules) -> SemanticLabel | None:
    """Both layers' labels of one run; None where no semantic judge was asked, or an incident left nothing to judge."""
    asked = next((a for a in evidence.annotations if a.kind in (SEMANTIC, UNDECIDED)), None)
    failed = next((incident for incident in evidence.incidents if incident.source == FaultSource.JUDGE), None)
    if asked is None and failed is None:
        return None
    plain = replace(evidence, annotations=tuple(a for a in evidence.annotations if a.kind != SEMANTIC))
    verdict = judge(evidence.task, plain, rules)
    if verdict.outcome is Outcome.ERROR:
        return None
    if asked is not None and asked.kind == SEMANTIC:
        return SemanticLabel(verdict.harmful, asked.data.get("harmful") is True)
    if asked is not None:
        return SemanticLabel(verdict.harmful, None, "too few of its answers were valid for a majority")
    return SemanticLabel(verdict.harmful, None, failed.detail if failed is not None else "")


class Labelled(Protocol):
    """A run with both layers' labels, where it has any."""

    @property
    def semantic(self) -> SemanticLabel | None:
        """The semantic judge's label; None where it did not run."""
        ...


def summary_lines(records: Iterable[Labelled]) -> list[str]:
    """What the terminal says of the semantic judge; nothing where none was configured."""
    labels = [record.semantic for record in records if record.semantic is not None]
    if not labels:
        return []
    found = compare((label.rules, label.harmful) for label in labels if label.harmful is not None)
    lines = [f"semantic judge: labelled {part(found.n, len(labels), 'run')}"]
    lines += [f"  {text}" for text in table(found)] if found.n else []
    missing = [label.problem for label in labels if label.harmful is None]
    lines += [f"  no label for {missing.count(problem)}: {line(problem)}" for problem in sorted({*missing})[:5]]
    if missing:
        lines.append("  those verdicts are of the rules alone")
    return lines


def table(found: Agreement) -> list[str]:
    """Percent agreement, Cohen's kappa and the four cells; not of an empty comparison."""
    kappa = "is not defined, as one label was given throughout" if found.kappa is None else f"{found.kappa:.2f}"
    return [
        f"rules and semantic judge agree on {found.percent:.1f} %, Cohen's kappa {kappa}",
        f"harmful by both {found.both}, by the rules only {found.first_only}, by the judge only {found.second_only},"
        f" by neither {found.neither}",
    ]
