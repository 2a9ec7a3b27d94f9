"""The end of a session on the controller: summary, gate, synthetic test reports, files and the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_saber.errors import SaberError
from pytest_saber.pytest_glue import provider, shard, unfinished
from pytest_saber.pytest_glue.outputs import junit_file
from pytest_saber.pytest_glue.records import Ledger
from pytest_saber.pytest_glue.settings import Settings

if TYPE_CHECKING:
    from pytest_saber.gate.baseline import Baseline
    from pytest_saber.gate.policy import Policy
    from pytest_saber.gate.stopping import Decision as EarlyDecision
    from pytest_saber.model.evidence import AgentIdentity
    from pytest_saber.model.summary import GateResult, RunRecord, Summary
    from pytest_saber.reports.json_report import Shard

GATE = "saber-gate"
Mode = Literal["strict", "gate", "report"]


@dataclass(frozen=True, slots=True)
class Gate:
    """The policy and the baseline of a session, read before any run starts."""

    policy: Policy
    baseline: Baseline | None
    mode: Mode
    mode_origin: str

    def known(self, record: RunRecord) -> bool:
        """Whether the harm of a harmful run is in the baseline too. Only with a baseline."""
        from pytest_saber.gate.baseline import known

        assert self.baseline is not None  # noqa: S101 - asked by the callers
        return known(record, self.baseline)


def read_gate(config: pytest.Config, settings: Settings) -> Gate:
    """Raises pytest.UsageError for limits, slices and baselines that cannot be used."""
    from pytest_saber.gate import policy as policies

    try:
        policy = policies.from_settings(settings.for_policy())
        policy.check_epochs(settings["epochs"].count)
        path = settings["baseline"]
        update = settings["update_baseline"].flag
        baseline = _load(path.path(config), config.rootpath) if path.text and not update else None
        # A session that writes a baseline accepts the harm it finds.
        mode = policy.resolve_mode(baseline=bool(path.text))
    except SaberError as error:
        raise pytest.UsageError(str(error)) from None
    return Gate(policy, baseline, mode.value, mode.origin)


def _load(path: Path, root: Path) -> Baseline:
    """The baseline, named as people name it: relative to the root directory where it lies below it. Raises UsageError."""
    from pytest_saber.gate import baseline_file

    baseline = baseline_file.load(path)
    place = Path(os.path.normpath(path))
    return replace(baseline, path=str(place.relative_to(root))) if place.is_relative_to(root) else baseline


@dataclass(frozen=True, slots=True)
class Crash:
    """Where pytest's reporters look for the one line of a failure."""

    message: str
    path: str = GATE
    lineno: int = 0


class RuleText:
    """How a rule's failure prints itself: `headline` in lists, `text` in full."""

    def __init__(self, headline: str, text: str) -> None:
        self.reprcrash = Crash(headline)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def toterminal(self, writer: Any) -> None:
        """Called by pytest's terminal reporter."""
        writer.line(self._text)


class Decision:
    """What the session came to. Made once, in `pytest_sessionfinish`."""

    def __init__(self, config: pytest.Config, settings: Settings, gate: Gate, session: str) -> None:
        self._config = config
        self._settings = settings
        self._gate = gate
        self._session = session
        self.summary: Summary | None = None
        self.result: GateResult | None = None
        self.notes: list[str] = []
        """Lines for the terminal: files that were written, and those that could not be."""
        self._unwritten: list[str] = []

    def decide(
        self,
        session: pytest.Session,
        ledger: Ledger,
        expected: int,
        agent: AgentIdentity,
        stop: EarlyDecision | None,
        status: int,
    ) -> GateResult:
        """Summarise, evaluate, and report each rule as a test case.

        `stop` decided before every run was done; `status` is pytest's own exit code.
        """
        from pytest_saber import gate, metrics
        from pytest_saber.gate.conclusion import concluded
        from pytest_saber.gate.policy import Sourced
        from pytest_saber.reports import junit

        self.summary = metrics.summarize(
            ledger.records,
            session=self._session,
            agent=agent,
            expected=expected,
            problems=ledger.problems,
            skipped=ledger.not_started,
            models=self._settings["model"].lines,
        )
        part, mode = shard.parse(self._settings["shard"]), Sourced(self._gate.mode, self._gate.mode_origin)
        if stop is not None and not ledger.problems:
            result = stop.result
        else:
            # A shard that only reports does not compare its part with all the tasks of a baseline.
            only_reports = part is not None and mode.value == "report"
            result = gate.evaluate(self.summary, self._gate.policy, None if only_reports else self._gate.baseline)
        if self._settings["update_baseline"].flag:
            result = _of_making(result, self.summary, self._settings.text("baseline"))
        result = concluded(result, self.summary, mode, ledger.other_failures, pytest_status=status)
        self.result = _of_a_part(result, part)
        self._config.hook.pytest_saber_gate(config=self._config, summary=self.summary, gate=self.result)
        if self.result.status != "off":
            self._report(self.result, session)
        for plugin in self._config.pluginmanager.get_plugins():
            add = getattr(plugin, "add_global_property", None)
            if add is not None:
                of_shard = [junit.shard_property(part.index, part.of)] if part is not None else []
                for name, value in (*junit.suite_properties(self.summary, self.result), *of_shard):
                    add(name, value)
        return self.result

    def begin(self, environ: Mapping[str, str], suite: Mapping[str, str], expected: int, agent: AgentIdentity) -> None:
        """Put reports of a session without an end in the place of all that are asked for, and of those of a former session.

        Whoever reads them after this process was killed, or ended itself, is not fooled. Raises OSError.
        """
        from pytest_saber import metrics
        from pytest_saber.model.summary import GateResult, RuleResult
        from pytest_saber.reports import junit

        rule = RuleResult("session", "inconclusive", f"Inconclusive: {unfinished.REASON}.")
        summary = metrics.summarize((), session=self._session, agent=agent, expected=expected, problems=(unfinished.REASON,))
        result = GateResult("inconclusive", (rule,))
        for _, act in self._files(summary, result, environ, suite, (), ()):
            act()
        target = junit_file(self._config)
        if target is not None:
            _write(target, junit.render(summary, result))

    def _report(self, result: GateResult, session: pytest.Session) -> None:
        """Log each rule as a test case, so that the terminal, JUnit and other reporters show it as they show any test.

        Not those about tests, which are shown as failed themselves.
        """
        from pytest_saber.gate.conclusion import OF_TESTS
        from pytest_saber.reports import junit

        rules = [rule for rule in result.rules if rule.name not in OF_TESTS]
        if not rules:
            return
        # The line of the last item is full; progress is counted in items and must not pass 100 %.
        if self._config.pluginmanager.has_plugin("terminalreporter"):
            writer = self._config.get_terminal_writer()
            if writer.width_of_current_line:
                writer.line()
        session.testscollected += len(rules)
        for rule in rules:
            failed = rule.status != "passed"
            text = RuleText(f"{rule.status}: {rule.beside_name}", junit.rule_text(rule, result)) if failed else None
            for when in ("call", "teardown"):
                report = pytest.TestReport(
                    nodeid=f"{GATE}::{rule.name}",
                    location=(GATE, None, f"{GATE}::{rule.name}"),
                    keywords={GATE: 1},
                    outcome="failed" if failed and when == "call" else "passed",
                    longrepr=text if when == "call" else None,  # type: ignore[arg-type] # any object that prints itself
                    when="call" if when == "call" else "teardown",
                    saber_gate=rule.status,
                )
                self._config.hook.pytest_runtest_logreport(report=report)

    def write(
        self, environ: Mapping[str, str], suite: Mapping[str, str], failures: Sequence[str], notes: Sequence[str] = ()
    ) -> bool:
        """Write what was asked for. One that cannot be written is noted; False when there was one.

        `suite` maps every task of all shards to its contents' hash; `failures` are node ids of tests that failed, not of harm;
        `notes` are lines about the session that readers should see.
        """
        assert self.summary is not None  # noqa: S101 - called after `decide`
        assert self.result is not None  # noqa: S101
        for what, act in self._outputs(environ, suite, failures, notes):
            try:
                act()
            except (OSError, SaberError) as error:
                self._unwritten.append(f"{what} was NOT written: {error}")
                self.notes.append(self._unwritten[-1])
            else:
                self.notes.append(f"{what} written")
        return not self._unwritten

    def _outputs(
        self, environ: Mapping[str, str], suite: Mapping[str, str], failures: Sequence[str], notes: Sequence[str]
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        summary, result = self.summary, self.result
        assert summary is not None  # noqa: S101
        assert result is not None  # noqa: S101
        if self._settings["update_baseline"].flag:
            from pytest_saber.gate import baseline as baselines

            path = self._settings["baseline"].path(self._config)
            yield f"baseline {path}", lambda: baselines.save(baselines.make(summary), path)
            notes = (*notes, *self._unwritten)
        yield from self._files(summary, result, environ, suite, failures, notes)
        if environ.get("GITHUB_STEP_SUMMARY"):
            from pytest_saber.reports import github, markdown

            known = self._gate.known if self._gate.baseline is not None else None
            link = github.task_link(environ, prefix=_prefix(self._config.rootpath, environ))
            text = markdown.render(summary, result, known=known, link=link, failures=failures, notes=notes)
            yield "GitHub step summary", lambda: github.write_step_summary(text, environ)

    def _files(
        self,
        summary: Summary,
        result: GateResult,
        environ: Mapping[str, str],
        suite: Mapping[str, str],
        failures: Sequence[str],
        notes: Sequence[str],
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        """The reports that are files of their own, which a later session replaces."""
        if self._settings.text("json"):
            from pytest_saber.reports import json_report

            target = self._settings["json"].path(self._config)
            part = shard.parse(self._settings["shard"])
            document = json_report.document(
                summary,
                result,
                part,
                self._settings.for_policy(),
                overridden=self._settings.overridden_policy(),
                conditions=self._conditions(summary),
                suite=suite,
                root=_prefix(self._config.rootpath, environ),
                other_failures=failures,
                notes=notes,
            )
            yield f"results {target}", lambda: _write(target, json_report.dumps(document))
        if self._settings.text("markdown"):
            from pytest_saber.reports import markdown

            page = self._settings["markdown"].path(self._config)
            known = self._gate.known if self._gate.baseline is not None else None
            plain = markdown.render(summary, result, known=known, failures=failures, notes=notes)
            yield f"results {page}", lambda: _write(page, plain)

    def _conditions(self, summary: Summary) -> dict[str, str]:
        """What runs depend on; agents and models are those that ran where none of them is one that settings name."""
        conditions = self._settings.conditions() | {"agent": provider.agent_named(self._settings)}
        for name in ("agent", "model"):
            ran = {getattr(run.agent, name) for run in summary.runs}
            if ran and ran.isdisjoint(conditions[name].split(", ")):
                conditions[name] = ", ".join(sorted(ran))
        return conditions

    def workflow_commands(self, environ: Mapping[str, str]) -> list[str]:
        """Annotations for GitHub Actions, and nothing elsewhere."""
        from pytest_saber.reports import github

        if environ.get("GITHUB_ACTIONS") != "true" or self.summary is None or self.result is None:
            return []
        known = self._gate.known if self._gate.baseline is not None else None
        return github.commands(self.summary, self.result, known=known, prefix=_prefix(self._config.rootpath, environ))


def _of_making(result: GateResult, summary: Summary, path: str) -> GateResult:
    """With a rule that no baseline can be made of the session, if that is so: whoever asked for one sees it in every report."""
    from pytest_saber.gate import baseline
    from pytest_saber.gate.rules import worst
    from pytest_saber.model.summary import RuleResult

    try:
        baseline.make(summary)
    except SaberError as error:
        rules = (
            *result.rules,
            RuleResult("baseline", "inconclusive", f"Inconclusive: {path} is not written: {error}.", origin=path),
        )
        return replace(result, status=worst(rule.status for rule in rules), rules=rules)
    return result


def _of_a_part(result: GateResult, part: Shard | None) -> GateResult:
    """No shard passes a gate: what it has to say of the whole, only the merge of all shards says."""
    if part is None or result.status == "off":
        return result
    from pytest_saber.gate.rules import worst
    from pytest_saber.model.summary import RuleResult

    rule = RuleResult(
        "shard",
        "inconclusive",
        f"Inconclusive: this is shard {part.index} of {part.of}, a part of the suite. Run shards with --saber-policy=report, "
        "and decide about the whole with `pytest-saber merge`.",
    )
    rules = (*result.rules, rule)
    return replace(result, status=worst(rule.status for rule in rules), rules=rules)


def _prefix(root: Path, environ: Mapping[str, str]) -> str:
    """From the checkout on GitHub to pytest's root directory."""
    checkout = environ.get("GITHUB_WORKSPACE", "")
    if not checkout or not root.is_relative_to(checkout) or root == Path(checkout):
        return ""
    return f"{root.relative_to(checkout)}/"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
