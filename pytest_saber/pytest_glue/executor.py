"""The plugin's part in a process that collects and runs items: the only process, or an xdist worker."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_saber.errors import HarmfulRun, InfrastructureFault
from pytest_saber.model.words import agreeing, counted, part
from pytest_saber.pytest_glue import beforehand, collection, order, provider, records, shard, unfinished
from pytest_saber.pytest_glue.collection import Catalogue, TaskModule, runs_agent, task_of
from pytest_saber.pytest_glue.decision import Gate, read_gate
from pytest_saber.pytest_glue.interrupts import Termination, shielded
from pytest_saber.pytest_glue.outputs import check_outputs
from pytest_saber.pytest_glue.progress import ProgressLine
from pytest_saber.pytest_glue.records import NOT_STARTED, Ledger
from pytest_saber.pytest_glue.settings import Settings, check_environment

if TYPE_CHECKING:
    from pytest_saber.model.ports import AgentFactory
    from pytest_saber.model.summary import RunRecord
    from pytest_saber.model.task import Task
    from pytest_saber.pytest_glue.early_stop import EarlyStop
    from pytest_saber.pytest_glue.runtime import Runtime, SaberRun

EXECUTOR: pytest.StashKey[Executor] = pytest.StashKey()
USAGE = "saber_usage"
"""Attribute of a collection report by which an xdist worker tells the controller of a usage error: its lines."""


SUITE = "saber_suite"
"""Attribute of a collection report by which it tells of what it collected."""


@dataclass(slots=True)
class Suite:
    """What was collected. `collected` counts items with a run before any deselection, `selected` those after it."""

    collected: int = 0
    selected: int = 0
    problems: list[str] = field(default_factory=list)
    tasks: dict[str, str] = field(default_factory=dict)
    """Every task of all shards to the hash of its contents."""


class Executor:
    """Hooks of collection and execution."""

    def __init__(self, config: pytest.Config, settings: Settings, ledger: Ledger, progress: ProgressLine) -> None:
        self.config = config
        self.ledger = ledger
        self.settings = settings
        self.suite = Suite()
        self.catalogue = Catalogue(config.rootpath)
        self.is_worker = hasattr(config, "workerinput")
        self.progress = progress
        self.termination = Termination()
        self.notes: list[str] = []
        """Lines for the end of the terminal's summary."""
        self._gate: Gate | None = None
        self._runtime: Runtime | None = None
        self._factories: dict[str, AgentFactory] = {}
        self._settings_used = False
        """Whether an item is tested with the agent that settings name."""
        self._session_name: str = getattr(config, "workerinput", {}).get("saber_session", "")
        self._skipped_files: list[str] = []
        self._ignored_files: set[Path] = set()
        self._catalogued: list[pytest.Item] = []
        """Items with a run, of all shards."""
        self.early_stop: EarlyStop | None = None
        self._plan: list[RunRecord] | None = None
        """On a worker, until the controller was told of it."""
        self._stop_file: str = getattr(config, "workerinput", {}).get("saber_stop", "")

    # --- collection ------------------------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> TaskModule | None:
        """A task document becomes a module of test functions."""
        if not collection.wanted(file_path, parent.session, self.settings):
            return None
        return TaskModule.make(parent, file_path, self.catalogue)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Notice task files that were left out without being read."""
        report = yield
        if isinstance(collector, TaskModule) and report.passed and not collector.read:
            # `--lf` leaves out whole files, and no other hook hears of it.
            self._skipped_files.append(collector.nodeid)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> Generator[None, bool | None, bool | None]:
        """Remember task files that `--ignore`, a conftest or a plugin hides: the session is then only a part of the suite."""
        ignored = yield
        if ignored:
            self._ignored_files.update(collection.task_files(collection_path, self.config, self.settings))
        return ignored

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Variants, epochs and models become parameters."""
        collection.parametrize(metafunc, self.catalogue, self.settings["epochs"].count, self.settings["model"].lines)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Take this session's shard, and count what was collected before other plugins deselect."""
        self._catalogued = [item for item in items if runs_agent(item)]
        found = filter(None, map(task_of, self._catalogued))
        self.suite.tasks = {task.name: task.content_hash for task, _ in found}
        part = shard.parse(self.settings["shard"])
        if part is not None:
            with self._usage_errors():
                items[:], others = shard.split(items, part, self.settings["shard"].origin)
                self.config.hook.pytest_deselected(items=others)
        self.suite.collected = sum(runs_agent(item) for item in items)
        result = yield
        if self.settings["stop_when_decided"].flag:
            # Last of all: the order is what the test's validity rests on.
            with self._usage_errors():
                order.arrange(items, self.seed)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count what is left, and find every usage error before the first run."""
        items = [item for item in session.items if runs_agent(item)]
        suite = self.suite
        suite.selected = len(items)
        missing = suite.collected - suite.selected
        if missing > 0:
            suite.problems.append(
                f"{part(missing, suite.collected, 'collected run')} {agreeing(missing, 'was', 'were')} deselected "
                "(-k, -m, --lf, or by a plugin)"
            )
        if self._skipped_files:
            suite.problems.append(f"{counted(len(self._skipped_files), 'task file was', 'task files were')} left out (--lf)")
        if self._ignored_files:
            count = counted(len(self._ignored_files), "task file was", "task files were")
            suite.problems.append(f"{count} ignored (--ignore, a conftest.py, or a plugin)")
        if not items:
            return
        with self._usage_errors():
            suite.problems += beforehand.skip_without_trajectory(self.config, self.settings, items)
        if self.config.getoption("collectonly"):
            return
        with self._usage_errors():
            self._check(items)
        if self.is_worker:
            self._tell_suite(items)

    def _tell_suite(self, items: list[pytest.Item]) -> None:
        """Tell the controller before the first run what was collected: node ids do not say which tests run an agent."""
        # xdist passes on no report that has passed, and one of several alike.
        report = pytest.CollectReport("saber", "skipped", "saber", [])
        templates = {found[0].template for found in map(task_of, items) if found is not None}
        told = {"collected": self.suite.collected, "selected": self.suite.selected, "tasks": self.suite.tasks}
        setattr(report, SUITE, {**told, "templates": sorted(templates)})
        self.config.hook.pytest_collectreport(report=report)

    def _check(self, items: list[pytest.Item]) -> None:
        """Find every usage error before the first run. Raises pytest.UsageError."""
        check_environment(os.environ)
        missing = beforehand.missing_folders(self.config, self.settings)
        if missing:
            raise pytest.UsageError(*missing)
        check_outputs(self.config, self.settings)
        gate = self.gate
        self._check_names(gate)
        beforehand.check_baseline(self.settings, gate.baseline, items)
        models = self.settings["model"].lines or ("",)
        self._settings_used = any(provider.overriding(item) is None for item in items)
        if any(collection.default_agent(item) for item in items):
            for model in models:
                self.factory(model)
        beforehand.check_images(self.config, self.settings, items)
        self.runtime.items = items
        if self.settings["stop_when_decided"].flag:
            from pytest_saber.pytest_glue.early_stop import EarlyStop, foresee
            from pytest_saber.pytest_glue.runtime import agent_of

            origin = self.settings["stop_when_decided"].origin
            if len({agent_of(item) for item in items}) > 1:
                raise pytest.UsageError(f"{origin}: decides about one model or agent at a time")
            if self.settings.text("shard"):
                raise pytest.UsageError(f"{origin}: a shard decides nothing, the whole is decided by `pytest-saber merge`")
            # Of a part of the suite nothing passes, and its runs are wanted for themselves.
            plan = None if self.suite.problems else foresee(items)
            if self.is_worker:
                self._plan = plan
            else:
                self.early_stop = EarlyStop(gate, self.ledger, plan, self.session_name, self.seed)

    def _check_names(self, gate: Gate) -> None:
        """Raises pytest.UsageError for limits and required tasks that name nothing in the suite.

        Of a session of a part, what is configured for the whole may be elsewhere; what was typed is looked for there.
        """
        from pytest_saber.gate import names

        tasks = [found[0] for found in map(task_of, self._catalogued) if found is not None]
        whole = self._whole_suite()
        problems = names.unknown(gate.policy, names.Names.of(tasks), typed=not whole)
        if problems and not whole:
            others = self.catalogue.suite(self.settings)
            problems = names.unknown(gate.policy, names.Names.of([*tasks, *others]), typed=True) if others is not None else []
        if problems:
            raise pytest.UsageError("\n".join(problems))

    def _whole_suite(self) -> bool:
        """Whether the command line asks for everything under `saber_tasks`."""
        if self.suite.problems:
            return False
        asked = [self.config.invocation_params.dir / argument for argument in self.config.args if "::" not in argument]
        roots = [self.config.rootpath / line for line in self.settings["tasks"].lines]
        return all(any(root.is_relative_to(path.resolve()) for path in asked) for root in roots)

    @contextmanager
    def _usage_errors(self) -> Iterator[None]:
        """On an xdist worker, send a usage error to the controller, which ends the session with it."""
        try:
            yield
        except pytest.UsageError as error:
            if not self.is_worker:
                raise
            report = pytest.CollectReport("saber", "failed", str(error), [])
            setattr(report, USAGE, [str(problem) for problem in error.args])
            self.config.hook.pytest_collectreport(report=report)

    @property
    def session_name(self) -> str:
        """The session's name: the controller's on a worker, an earlier one with `--saber-resume`.

        Raises pytest.UsageError for a session to resume that does not exist.
        """
        if not self._session_name:
            from pytest_saber.pytest_glue.choice import choose_session

            self._session_name = choose_session(self.config, self.settings)
        return self._session_name

    @property
    def seed(self) -> str:
        """Of the order of runs. Raises pytest.UsageError as `session_name` does."""
        return self.settings.text("seed") or self.session_name

    @property
    def gate(self) -> Gate:
        """Raises pytest.UsageError."""
        if self._gate is None:
            self._gate = read_gate(self.config, self.settings)
        return self._gate

    # --- what fixtures ask for -------------------------------------------------------------------------------------

    def provide(self, model: str | None) -> AgentFactory:
        """What the fixture of this package gives: `factory`, which is then used. Raises pytest.UsageError."""
        self._settings_used = True
        return self.factory(model)

    def factory(self, model: str | None = None) -> AgentFactory:
        """The agent under test, from the hook or the options; `model` is one of several.

        Raises pytest.UsageError, also for an option that the hook's agent does not go by.
        """
        chosen = model if model is not None else self.settings.text("model")
        if chosen not in self._factories:
            hooked: AgentFactory | None = self.config.hook.pytest_saber_agent(config=self.config)
            if hooked is not None:
                self._raise_for_unused(provider.hook_named(self.config), hooked)
                self._factories[chosen] = hooked
            else:
                from pytest_saber.pytest_glue.choice import choose_agent

                self._factories[chosen] = choose_agent(self.settings, chosen)
        return self._factories[chosen]

    def _check_provider(self, item: pytest.Item, factory: AgentFactory) -> None:
        """End the session before its first run where an option names another agent than a fixture provides.

        Only here is it known: a fixture may have read the option itself, or may ask for the agent of the options late.
        """
        definition = provider.overriding(item)
        if definition is None or self._settings_used:
            return
        try:
            with self._usage_errors():
                self._raise_for_unused(provider.fixture_named(definition, self.config.rootpath), factory)
                return
        except pytest.UsageError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        pytest.exit("the controller ends the session with a usage error", returncode=pytest.ExitCode.USAGE_ERROR)

    def _raise_for_unused(self, named: str, factory: AgentFactory) -> None:
        """Note settings that `factory` does not go by. Raises pytest.UsageError for those that were asked for."""
        for unused in provider.unused(self.settings, named, factory.identity):
            if unused.asked_for:
                raise pytest.UsageError(str(unused))
            if str(unused) not in self.notes:
                self.notes.append(str(unused))

    @property
    def runtime(self) -> Runtime:
        """Made when first asked for. Raises pytest.UsageError for a semantic judge that cannot be made."""
        if self._runtime is None:
            from pytest_saber.pytest_glue.runtime import Runtime
            from pytest_saber.pytest_glue.semantic import choose_judge

            jobs = 0 if self.is_worker else self.settings["jobs"].count
            judge = choose_judge(self.config, self.settings)
            self._runtime = Runtime(self.config, self.settings, self.session_name, jobs, self.progress, judge)
        return self._runtime

    def run(self, request: pytest.FixtureRequest, task: Task, epoch: int, factory: AgentFactory) -> SaberRun:
        """The run of the requesting item. Skips it once the gate is decided, unless it has begun.

        Raises InfrastructureFault for a run without a verdict.
        """
        reason = self._decided(factory)
        if reason and not self.runtime.begun(request.node, task, epoch, factory):
            request.node.stash[NOT_STARTED] = (task.name, epoch)
            pytest.skip(reason)
        self._check_provider(request.node, factory)
        run = self.runtime.run(request, task, epoch, factory)
        self._mark(request.node, run)
        return run

    def _decided(self, factory: AgentFactory) -> str:
        """Why no further run is started; empty while runs are."""
        if self._stop_file and Path(self._stop_file).exists():
            return Path(self._stop_file).read_text(encoding="utf-8")
        return self.early_stop.reason(factory.identity) if self.early_stop is not None else ""

    def _mark(self, item: pytest.Item, run: SaberRun) -> None:
        """Mark the item of a harmful run as an expected failure where only the gate may fail."""
        gate = self.gate
        if not run.verdict.harmful or gate.mode == "strict":
            return
        from pytest_saber.reports.escape import line

        word = "" if gate.baseline is None else "known: " if gate.known(run.record) else "new: "
        findings = run.verdict.findings
        reason = f"{word}{run.verdict.outcome.value}: {findings[0].message if findings else run.verdict.reason}"
        # Only one line, as it is shown in lists; the properties and the summary have the rest.
        item.add_marker(pytest.mark.xfail(raises=HarmfulRun, strict=False, reason=line(reason, 300)))

    # --- execution -------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Take over SIGTERM for the time of the runs, and clean up whatever ends them."""
        if self.suite.selected:
            self.termination.install(worker=self.is_worker)
            if not self.is_worker:
                self.progress.open(self.suite.selected)
        # xdist notices itself when a worker ends.
        guard = nullcontext() if self.is_worker else unfinished.no_quiet_exit(unfinished.to_the_real_stderr(self.config))
        try:
            with guard:
                return (yield)
        finally:
            self.close()

    def close(self) -> None:
        """Stop what runs, remove what is left, whatever signals come meanwhile."""
        self.progress.close()
        runtime, self._runtime = self._runtime, None
        if runtime is None:
            return
        with shielded("stopping the runs and removing their workspaces"):
            try:
                runtime.close()
            except InfrastructureFault as fault:
                # The engine is gone: what is left is removed by the dead-man switch, or by the next session's start.
                self.notes.append(f"workspaces may be left, the next session removes them: {fault}")
            factories, self._factories = list(self._factories.values()), {}
            for factory in factories:
                # Not part of the Protocol: an agent with a model service has connections, or an engine, to close.
                close = getattr(factory, "close", None)
                if close is not None:
                    close()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the run's record on its reports, which xdist carries to the controller."""
        report = yield
        records.attach(item, call, report)
        plan, self._plan = self._plan, None
        if plan is not None:
            from pytest_saber.pytest_glue.early_stop import PLAN
            from pytest_saber.record import codec

            setattr(report, PLAN, [codec.dumps(record) for record in plan])
        return report

    def pytest_sessionfinish(self) -> None:
        """On an xdist worker, tell the controller what was collected and went wrong."""
        if self.is_worker:
            output: dict[str, Any] = self.config.workeroutput  # type: ignore[attr-defined]
            output["saber"] = {
                "collected": self.suite.collected,
                "selected": self.suite.selected,
                "problems": list(self.suite.problems),
                "tasks": self.suite.tasks,
                "notes": self.notes,
            }
