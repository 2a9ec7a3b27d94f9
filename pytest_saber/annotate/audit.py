"""A person's check of a random sample of labels, as the paper does with 20 % of its semantic judge's."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pytest_saber.annotate.agreement import Agreement, compare
from pytest_saber.errors import UsageError
from pytest_saber.judge.semantic import SEMANTIC
from pytest_saber.judge.text import plural
from pytest_saber.model.evidence import Evidence
from pytest_saber.model.terms import Outcome
from pytest_saber.model.verdict import Verdict
from pytest_saber.model.words import agreeing, part
from pytest_saber.record.shapes import did_you_mean
from pytest_saber.reports.escape import line

SCHEMA = 1
CONFIRM, OVERTURN = "confirm", "overturn"
DECISIONS = (CONFIRM, OVERTURN)
MAX_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Item:
    """One label to be checked, and what a person says of it. `run` is the run's folder."""

    run: str
    task: str
    epoch: int
    harmful: bool
    reason: str
    """The judge's words for its label."""
    decision: str = ""
    """`confirm`, `overturn`, or empty."""
    note: str = ""

    @property
    def key(self) -> str:
        """`SESSION/RUN`: the same from whatever folder the runs are named."""
        return _key(self.run)


@dataclass(frozen=True, slots=True)
class Audit:
    """`of` says whose labels are checked: `semantic` or `verdicts`. `population` is what `items` were drawn from."""

    of: str
    fraction: float
    seed: int
    population: int
    items: tuple[Item, ...]

    @property
    def decided(self) -> tuple[Item, ...]:
        """The items on which a person has decided."""
        return tuple(item for item in self.items if item.decision)

    @property
    def agreement(self) -> Agreement:
        """The judge first, the person second."""
        return compare((item.harmful, item.harmful == (item.decision == CONFIRM)) for item in self.decided)


def semantic_item(run: Path, evidence: Evidence) -> Item | None:
    """The semantic judge's label of a run; None where it has none."""
    data = next((annotation.data for annotation in evidence.annotations if annotation.kind == SEMANTIC), None)
    if data is None:
        return None
    harmful = data.get("harmful") is True
    return Item(str(run), evidence.task.name, evidence.key.epoch, harmful, str(data.get("rationale", "")))


def verdict_item(run: Path, evidence: Evidence, verdict: Verdict | None) -> Item | None:
    """The verdict of a run; None where it has none."""
    if verdict is None or verdict.outcome is Outcome.ERROR:
        return None
    reason = f"{verdict.outcome.value}. {' '.join(finding.message for finding in verdict.findings) or verdict.reason}"
    return Item(str(run), evidence.task.name, evidence.key.epoch, verdict.harmful, reason)


def draw(semantic: Sequence[Item], verdicts: Sequence[Item], fraction: float, seed: int) -> Audit:
    """A random sample of the semantic labels, or of the verdicts where there is no semantic label at all.

    The same runs, fraction and seed give the same sample, in whatever order they are given. Raises UsageError when there is
    nothing to draw from.
    """
    of, population = ("semantic", semantic) if semantic else ("verdicts", verdicts)
    if not population:
        raise UsageError("there is nothing to audit: none of the runs has a label or a verdict")
    size = max(1, math.ceil(fraction * len(population) - 1e-9))
    ordered = sorted(population, key=lambda item: (item.task, item.epoch, item.run))
    chosen = random.Random(seed).sample(ordered, size)  # noqa: S311 - has to be repeatable
    return Audit(of, fraction, seed, len(population), tuple(chosen))


def answered(audit: Audit, text: str, origin: str) -> Audit:
    """`audit` with the decisions of a file of lines `run<TAB>confirm|overturn<TAB>note`.

    A run is named by its folder, by SESSION/RUN, or by RUN where only one of the sample has that name. Blank lines, lines
    that begin with `#`, and runs without a decision are passed over. Raises UsageError with every line that cannot be used.
    """
    names: dict[str, str] = {}
    for item in audit.items:
        short = Path(item.run).name
        names[short] = "" if short in names else item.key
    names |= {item.key: item.key for item in audit.items}
    found: dict[str, tuple[str, str]] = {}
    problems: list[str] = []
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        name, decision, note = ([part.strip() for part in row.split("\t", 2)] + ["", ""])[:3]
        key, where = names.get(_key(name)), f"{origin}:{number}"
        if key is None:
            problems.append(f"{where}: {line(name)!r} is not in the sample{did_you_mean(_key(name), names)}")
        elif not key:
            problems.append(f"{where}: {line(name)!r} is the name of several runs of the sample; write SESSION/RUN")
        elif decision and decision not in DECISIONS:
            problems.append(f"{where}: {line(decision)!r} is neither confirm nor overturn{did_you_mean(decision, DECISIONS)}")
        elif key in found:
            problems.append(f"{where}: {line(name)!r} was answered before")
        elif decision:
            found[key] = (decision, note)
    if problems:
        raise UsageError("\n".join(problems))
    # Earlier decisions stay where the file says nothing.
    return replace(audit, items=tuple(_with(item, *found.get(item.key, ("", ""))) for item in audit.items))


def continued(audit: Audit, former: Audit, origin: str) -> Audit:
    """`audit` with the decisions of a former one on the same labels.

    Raises UsageError when a decision of the former one would be lost: a person's work is not overwritten.
    """
    now = {item.key: (item.harmful, item.reason) for item in audit.items}
    kept = [item for item in former.decided if now.get(item.key) == (item.harmful, item.reason)]
    lost = len(former.decided) - len(kept)
    if lost:
        raise UsageError(
            f"{origin} holds {plural(lost, 'decision')} on labels that are not in this sample (it was drawn with --sample "
            f"{former.fraction:g} --seed {former.seed}); name another file with -o"
        )
    known = {item.key: (item.decision, item.note) for item in kept}
    return replace(audit, items=tuple(_with(item, *known.get(item.key, ("", ""))) for item in audit.items))


def _key(run: str) -> str:
    return "/".join(Path(run).parts[-2:])


def _with(item: Item, decision: str, note: str) -> Item:
    return replace(item, decision=decision, note=note) if decision else item


def template(audit: Audit) -> Iterable[str]:
    """Lines to be filled in for `answered`."""
    yield "# run<TAB>confirm|overturn<TAB>note"
    for item in audit.items:
        yield f"# {line(item.task)} epoch {item.epoch}: {'harmful' if item.harmful else 'harmless'}: {line(item.reason)}"
        yield f"{item.run}\t\t"


def result_lines(audit: Audit) -> list[str]:
    """What the audit came to."""
    decided, found = audit.decided, audit.agreement
    judge = " of the semantic judge"
    whose = (f"label{judge}", f"labels{judge}") if audit.of == "semantic" else ("verdict", "verdicts")
    count = f"{part(len(audit.items), audit.population, *whose)} {agreeing(len(audit.items), 'was', 'were')}"
    drawn = f"{count} drawn (--sample {audit.fraction:g} --seed {audit.seed})"
    lines = [f"{drawn}, {len(decided)} decided"]
    interval = found.interval
    if interval is None:
        return lines
    lines.append(
        f"confirmed {found.agreed}, overturned {found.n - found.agreed}: agreement {found.percent:.1f} % "
        f"(95 % interval {100 * interval[0]:.1f} to {100 * interval[1]:.1f} %)"
    )
    overturned = [item for item in decided if item.decision == OVERTURN]
    for item in overturned:
        was, now = ("harmful", "harmless") if item.harmful else ("harmless", "harmful")
        note = f": {line(item.note)}" if item.note else ""
        lines.append(f"  {line(item.task)} epoch {item.epoch}: {was} -> {now}{note} ({line(item.run)})")
    return lines


def document(audit: Audit) -> Mapping[str, object]:
    """The audit as a value of JSON."""
    found = audit.agreement
    interval = found.interval
    return {
        "saber": "audit",
        "schema": SCHEMA,
        "of": audit.of,
        "fraction": audit.fraction,
        "seed": audit.seed,
        "population": audit.population,
        "items": [asdict(item) for item in audit.items],
        "agreement": {
            "decided": found.n,
            "agreed": found.agreed,
            "share": found.agreed / found.n if found.n else None,
            "low": interval[0] if interval else None,
            "high": interval[1] if interval else None,
            "kappa": found.kappa,
        },
    }


def load(path: Path) -> Audit:
    """Read an audit back. Raises UsageError for a file that is none."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path}: larger than {MAX_BYTES} bytes, so it is no audit")
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict) or value.get("saber") != "audit":
            raise UsageError(f"{path}: not an audit of pytest-saber; name another file with -o")
        if value["schema"] != SCHEMA:
            raise UsageError(f"{path}: schema {value['schema']!r}, and this pytest-saber reads {SCHEMA}")
        items = tuple(_item(item) for item in value["items"])
        return Audit(str(value["of"]), float(value["fraction"]), int(value["seed"]), int(value["population"]), items)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"{path}: a damaged audit ({type(error).__name__}: {error}); name another file with -o") from error


def _item(value: Mapping[str, object]) -> Item:
    item = Item(**value)  # type: ignore[arg-type] # checked here
    for name in Item.__dataclass_fields__:
        kind = {"epoch": int, "harmful": bool}.get(name, str)
        if type(getattr(item, name)) is not kind:
            raise TypeError(f"{name} of the run {str(item.run)[:80]!r}")
    if item.decision not in ("", *DECISIONS):
        raise ValueError(f"decision {item.decision!r}")
    return item
