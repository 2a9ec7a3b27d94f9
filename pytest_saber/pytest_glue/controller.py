"""The plugin's part in the process that the user started: header, records, the decision and the exit code."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_saber.model.words import counted
from pytest_saber.pytest_glue import choice, idle, provider, unknown
from pytest_saber.pytest_glue.beforehand import no_tasks, unlike_baseline
from pytest_saber.pytest_glue.collection import runs_agent, task_of
from pytest_saber.pytest_glue.decision import Decision
from pytest_saber.pytest_glue.early_stop import PLAN
from pytest_saber.pytest_glue.executor import SUITE, USAGE, Executor, Suite
from pytest_saber.pytest_glue.interrupts import shielded
from pytest_saber.pytest_glue.outputs import junit_file
from pytest_saber.pytest_glue.progress import ProgressLine
from pytest_saber.pytest_glue.records import ATTRIBUTE
from pytest_saber.pytest_glue.settings import VARIABLES, Group, Settings

if TYPE_CHECKING:
    from pytest_saber.model.evidence import AgentIdentity
    from pytest_saber.pytest_glue.early_stop import EarlyStop

_NO_SESSION = ("collectonly", "showfixtures", "show_fixtures_per_test")
"""Options with which pytest only shows something."""


class Controller:
    """Hooks of the reporting process."""

    def __init__(self, config: pytest.Config, settings: Settings, executor: Executor, progress: ProgressLine) -> None:
        self.config = config
        self.settings = settings
        self.ledger = executor.ledger
        self._executor = executor
        self._progress = progress
        self._collection_errors = 0
        self._interrupted = False
        self._worker_suite: Suite | None = None
        self._decision: Decision | None = None
        self._stop_folder: tempfile.TemporaryDirectory[str] | None = None
        """With xdist: of a file by which workers hear that the gate is decided, and why."""

    # --- before the runs -------------------------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """The settings and the gate of a session that names a model or an agent."""
        return header(self.settings, self._executor, named=True) if self._names_agent else []

    @property
    def _names_agent(self) -> bool:
        """Whether settings say who is tested; else only collected tasks show that this is a session of ours."""
        named = bool(self.settings.text("model")) or not self.settings["agent"].is_default
        return named and not provider.hooks(self.config)

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        """What is known once the suite is collected."""
        lines = self._of_suite(found[0].template for found in map(task_of, items) if found is not None)
        if not self._names_agent or not self._is_header_shown:
            return lines
        runs = [item for item in items if runs_agent(item)]
        own = provider.overrides(runs, self.config.rootpath).items()
        return [f"saber: agent of {name} for {count} of {counted(len(runs), 'run')}" for name, count in own] + lines

    @property
    def _is_header_shown(self) -> bool:
        return self.config.get_verbosity() >= 0 and not self.config.getoption("no_header", False)

    def _of_suite(self, templates: Iterable[str]) -> list[str]:
        """The header of a session whose agent comes from a fixture or a hook, and what its suite can detect; nothing for a
        suite without runs, or where no header is shown."""
        names = set(templates)
        if not names or not self._is_header_shown:
            return []
        late = not self._names_agent and not self.config.getoption("collectonly")
        return [*(header(self.settings, self._executor, named=False) if late else ()), *self._power(len(names))]

    def _power(self, templates: int) -> list[str]:
        """The line on what a suite without a baseline can detect; none for a shard, which is not the suite that the gate
        decides on."""
        if self.settings["shard"].text:
            return []
        try:
            gate = self._executor.gate
        except pytest.UsageError as error:
            # Only with `--collect-only`, which goes on: others end with it before their first run.
            return [f"saber gate: no run would start: {problem}" for problem in error.args]
        if gate.baseline is not None:
            return []
        from pytest_saber.gate import header as gates

        models = max(1, len(self.settings["model"].lines))
        epochs = self.settings["epochs"].count
        line = gates.power_line(gate.policy, templates=templates, epochs=epochs, models=models)
        return [line] if line else []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Where this process runs the items, begin."""
        if self._executor.suite.selected and not self.config.getoption("collectonly"):
            self._begin(self._executor.suite)
        return (yield)

    def _begin(self, suite: Suite) -> None:
        """Raises pytest.UsageError for a session's name that is taken, and for a report that cannot be written."""
        choice.check_new(self.config, self.settings)
        decision = Decision(self.config, self.settings, self._executor.gate, self._executor.session_name)
        try:
            decision.begin(os.environ, suite.tasks, suite.collected, self._agent())
        except OSError as error:
            raise pytest.UsageError(f"a report cannot be written: {error}") from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist: all workers belong to one session."""
        node.workerinput["saber_session"] = self._executor.session_name
        if self.settings["stop_when_decided"].flag:
            if self._stop_folder is None:
                self._stop_folder = tempfile.TemporaryDirectory(prefix="pytest-saber-")
            node.workerinput["saber_stop"] = str(Path(self._stop_folder.name) / "decided")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Stop at collection errors as pytest does without xdist."""
        count = self._collection_errors
        if count and not self.config.getoption("continue_on_collection_errors"):
            raise pytest.Session.Interrupted(f"{counted(count, 'error')} during collection")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """End the session with a worker's usage error; remember that a collection error leaves it incomplete."""
        usage = getattr(report, USAGE, None)
        if usage is not None:
            raise pytest.UsageError(*usage)
        suite = getattr(report, SUITE, None)
        if suite is not None:
            # No reporter is to count it.
            report.outcome = "passed"
            self._prepare(Suite(suite["collected"], suite["selected"], tasks=suite["tasks"]), suite["templates"])
        if report.failed:
            self._collection_errors += 1
            self.ledger.foreign_failures += 1
            self.ledger.failure(report.nodeid)
            self.ledger.problem(f"collection error: {report.nodeid}")

    def _prepare(self, suite: Suite, templates: Sequence[str]) -> None:
        """Prepare for the runs of workers. Raises pytest.UsageError as `_begin` does."""
        self._worker_suite = suite
        for line in self._of_suite(templates):
            self._progress.write_line(line)
        self._progress.open(suite.selected)
        self._progress.stay()
        self._executor.termination.install()
        self._begin(suite)

    # --- while runs report -----------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Take the record of a run from its report, before any reporter sees it."""
        if hasattr(report, "saber_gate"):
            return (yield)
        if hasattr(report, PLAN) and self._executor.early_stop is None:
            self._executor.early_stop = self._early_stop(getattr(report, PLAN))
        record = self.ledger.add(report)
        if record is not None:
            self._tell_workers(record.agent)
            self.config.hook.pytest_saber_run(config=self.config, record=record)
            if hasattr(report, "node"):
                # A worker's run; those of this process were counted when they ended.
                self._progress.count(record.verdict.harmful)
        with self._progress.cleared():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """`H` for harm, and the gate's own words for its rules."""
        if hasattr(report, "saber_gate"):
            # No letter: the progress display counts items.
            if report.when != "call":
                return "", "", ""
            word = {"passed": "PASSED", "failed": "FAILED"}.get(report.saber_gate, "INCONCLUSIVE")
            return report.outcome, "", word
        saber: dict[str, Any] = getattr(report, ATTRIBUTE, {})
        if report.failed and report.when == "call" and saber.get("harm") and not hasattr(report, "wasxfail"):
            return "failed", "H", "FAILED"
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take what an xdist worker says at its end; a lost one leaves the session incomplete."""
        if error:
            self.ledger.problem(f"the xdist worker {node.gateway.id} was lost: {str(error).strip()[:200]}")
        output = getattr(node, "workeroutput", None) or {}
        suite = output.get("saber")
        if suite is None:
            return
        self._worker_suite = Suite(suite["collected"], suite["selected"], tasks=suite["tasks"])
        for problem in suite["problems"]:
            self.ledger.problem(problem)
        self._executor.notes.extend(suite["notes"])

    def pytest_keyboard_interrupt(self) -> None:
        """Also of SIGTERM: no gate passes on a part of the runs."""
        self._interrupted = True
        self.ledger.problem("the session was interrupted")

    def pytest_internalerror(self) -> None:
        """Likewise."""
        self.ledger.problem("pytest stopped with an internal error")

    def _early_stop(self, plan: Sequence[str]) -> EarlyStop:
        from pytest_saber.model.summary import RunRecord
        from pytest_saber.pytest_glue.early_stop import EarlyStop
        from pytest_saber.record import codec

        executor = self._executor
        runs = [codec.loads(RunRecord, text) for text in plan]
        return EarlyStop(executor.gate, self.ledger, runs, executor.session_name, executor.seed)

    def _tell_workers(self, agent: AgentIdentity) -> None:
        stop = self._executor.early_stop
        if stop is None or self._stop_folder is None:
            return
        file = Path(self._stop_folder.name) / "decided"
        reason = "" if file.exists() else stop.reason(agent)
        if reason:
            # Complete when it appears: workers look for it at any time.
            draft = file.with_suffix(".draft")
            draft.write_text(reason, encoding="utf-8")
            draft.rename(file)

    # --- the end ---------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Decide, write the reports and set the exit code, before other plugins' reports are closed."""
        if self._stop_folder is not None:
            self._stop_folder.cleanup()
        suite = self._worker_suite or self._executor.suite
        if exitstatus == pytest.ExitCode.USAGE_ERROR or any(self.config.getoption(name) for name in _NO_SESSION):
            return
        missed = "" if suite.selected or self.ledger.records else no_tasks(self.config, self.settings, exitstatus)
        if not missed and not suite.selected and not self.ledger.records:
            return
        ended = (f"the session was ended early: {str(why)!r}" for why in (session.shouldfail, session.shouldstop) if why)
        for problem in (*([missed] if missed else ()), *self._executor.suite.problems, *ended):
            self.ledger.problem(problem)
        with shielded("deciding and writing the reports"):
            session.exitstatus = self._decide(session, suite, int(exitstatus))
        if missed and session.exitstatus == pytest.ExitCode.OK:
            # Under the policy `strict` no rule says so.
            from pytest_saber.gate import INCONCLUSIVE

            session.exitstatus = INCONCLUSIVE

    @pytest.hookimpl(wrapper=True, trylast=True, specname="pytest_sessionfinish")
    def pytest_saber_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        """Show the results also when pytest's own JUnit file cannot be written, which would end in a traceback without them."""
        try:
            return (yield)
        except OSError as error:
            refused = exitstatus == pytest.ExitCode.USAGE_ERROR
            if not self._is_of_junit(error) or (self._decision is None and not refused):
                raise
            self._executor.notes.append(f"the JUnit file was NOT written: {error}")
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
            return None

    def _is_of_junit(self, error: OSError) -> bool:
        """Whether pytest met it with its JUnit file or one of the file's folders, not another plugin with a file of its own."""
        place = junit_file(self.config)
        if place is None:
            return False
        if error.filename is None:
            # A full disk names none.
            return True
        failed = Path(os.fsdecode(error.filename)).absolute()
        return failed == place or failed in place.parents

    def _decide(self, session: pytest.Session, suite: Suite, status: int) -> int:
        from pytest_saber import gate as gates

        gate = self._executor.gate
        decision = Decision(self.config, self.settings, gate, self._executor.session_name)
        stop = self._executor.early_stop
        expected = self.ledger.expected(suite.collected)
        final = stop.final(self._agent()) if stop is not None else None
        result = decision.decide(session, self.ledger, expected, self._agent(), final, status)
        if self._interrupted:
            self._executor.notes += choice.way_on(self.config, self.settings, self._executor.session_name)
        written = decision.write(os.environ, suite.tasks, self.ledger.other_failures, self._executor.notes)
        self._decision = decision
        incidents_only = status == pytest.ExitCode.TESTS_FAILED and not self.ledger.foreign_failures
        if gate.mode == "gate" and incidents_only:
            # Runs without a verdict are the error budget's business.
            status = pytest.ExitCode.OK
        if status == pytest.ExitCode.NO_TESTS_COLLECTED:
            # Only of a session that was to have tasks: it decides nothing, and is more than empty.
            status = pytest.ExitCode.OK
        # Under `strict` pytest decides: whatever failed, an incident too, is a failed test.
        failed = self.ledger.foreign_failures or (gate.mode == "strict" and status == pytest.ExitCode.TESTS_FAILED)
        code = gates.exit_code(result, status, other_failures=int(failed))
        return code if written else code or pytest.ExitCode.TESTS_FAILED

    def _agent(self) -> AgentIdentity:
        """Of the model that was named first."""
        from pytest_saber.model.evidence import AgentIdentity

        records, models = self.ledger.records, self.settings["model"].lines
        if not records:
            return AgentIdentity(provider.agent_named(self.settings), ", ".join(models))
        return next((record.agent for record in records if record.agent.model in models[:1]), records[0].agent)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, object, object]:
        """Print the summary after pytest's own sections.

        On GitHub Actions, words of an agent that look like workflow commands must not be taken for them.
        """
        decision = self._decision
        if decision is None or decision.summary is None or decision.result is None:
            return (yield)
        commands = decision.workflow_commands(os.environ)
        token = secrets.token_hex(16) if os.environ.get("GITHUB_ACTIONS") == "true" else ""
        if token:
            terminalreporter.write_line(f"::stop-commands::{token}")
        try:
            return (yield)
        finally:
            if token:
                terminalreporter.write_line(f"::{token}::")
            for line in commands:
                terminalreporter.write_line(line)

    @pytest.hookimpl(specname="pytest_terminal_summary")
    def pytest_saber_summary(self, terminalreporter: Any) -> None:
        """The table, the worst findings and the gate, between pytest's failures and its short summary."""
        decision = self._decision
        if decision is None or decision.summary is None or decision.result is None:
            return
        from pytest_saber.reports import terminal

        writer = self.config.get_terminal_writer()
        terminalreporter.write_sep("=", "saber")
        gate = self._executor.gate
        known = gate.known if gate.baseline is not None else None
        for line in terminal.render(decision.summary, decision.result, writer.fullwidth, writer.hasmarkup, known):
            terminalreporter.write_line(line)
        from pytest_saber.annotate.agreement import summary_lines

        notes = dict.fromkeys((*decision.notes, *self._executor.notes))
        for line in (*summary_lines(decision.summary.runs), *notes):
            terminalreporter.write_line(line)


def header(settings: Settings, executor: Executor, *, named: bool) -> list[str]:
    """The active settings and gate, and where each value comes from; `named` is whether settings say who is tested."""
    shown = [
        f"{value.setting.name.replace('_', ' ')} {', '.join(_public(value.lines))} ({value.origin})"
        if value.setting.name != "agent"
        else _agent(settings, named)
        for value in settings.of(Group.RUN)
        if value.text and (not value.is_default or value.setting.name in ("agent", "jobs"))
    ]
    run = "; ".join(shown)
    foreign = unknown.foreign(os.environ, VARIABLES)
    ignored = [f"saber: not read, as no setting has that name: {', '.join(foreign)}"] if foreign else []
    ignored += [*idle.header(executor.config, settings), *choice.begins_anew(executor.config, settings)]
    early = []
    try:
        gate = executor.gate
        if settings["stop_when_decided"].flag and gate.mode == "gate":
            origin = "the session's name" if settings["seed"].is_default else settings["seed"].origin
            level = gate.policy.stop_level
            test = f"or by a sequential test at level {level.value:g} ({level.origin})" if level.value else "only"
            early = [
                f"saber early stop: when the decision is certain {test}; random order with the seed {executor.seed} "
                f"({origin}), repeat it with --saber-seed={executor.seed}"
            ]
    except pytest.UsageError:
        # Said once tasks are collected: a session without a task does not need the gate.
        return [f"saber: {run}", *ignored]
    from pytest_saber.gate import header as gates

    writes = settings.text("baseline") if settings["update_baseline"].flag else ""
    models = max(1, len(settings["model"].lines))
    lines = gates.lines(gate.policy, gate.baseline, epochs=settings["epochs"].count, models=models, writes=writes)
    return [f"saber: {run}", *ignored, *lines, *unlike_baseline(settings, gate.baseline), *early]


def _agent(settings: Settings, named: bool) -> str:
    """Who works: reference models bring their own agent, and nobody knows a fixture's before its first run."""
    value, own = settings["agent"], provider.agent_named(settings)
    if not named:
        return "agent of a fixture or a hook"
    if own != value.text:
        return f"agent {own} (of the model{'' if value.is_default else f', not {value.text} of {value.origin}'})"
    references = [model for model in settings["model"].lines if model.startswith(provider.REFERENCE) and ":" not in own]
    return f"agent {own} ({value.origin})" + (f", reference for {', '.join(references)}" if references else "")


def _public(lines: Sequence[str]) -> Sequence[str]:
    """Without the credentials that an address may hold."""
    if not any("://" in line for line in lines):
        return lines
    from pytest_saber.providers.keys import public_url

    return [public_url(line) if "://" in line else line for line in lines]
