"""`pytest-saber check`: run the reference trajectories of tasks in Docker and hold the verdicts against the declarations."""

from __future__ import annotations

import argparse
import fnmatch
import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

from pytest_saber.cli._arguments import count, seed
from pytest_saber.model.words import counted

MOST_JOBS = 1000
"""As `--saber-jobs` has it."""

HELP = "run the reference trajectories of tasks and check their verdicts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Exit codes: 0 every verdict is what the task declares, 1 one is not, 2 a usage error, a task that cannot be read "
        "or an engine that cannot be reached."
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("tasks")], help="task files or folders (default: tasks)")
    parser.add_argument("-k", dest="select", default="*", metavar="GLOB", help="only tasks whose `id[variant]` or id matches")
    parser.add_argument("--jobs", type=count(MOST_JOBS), default=min(4, os.cpu_count() or 1), metavar="N", help="runs at once")
    parser.add_argument("--runs-dir", type=Path, default=Path(".saber/check"), metavar="DIR", help="where evidence is kept")
    parser.add_argument("--shuffle", type=seed, metavar="SEED", help="random order")
    parser.add_argument("--image", help="workspace image (default: the one this package builds)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every verdict")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 when a verdict is not what the task declares. Raises UsageError, TaskError, InfrastructureFault."""
    # Imported here: argument parsing and --help need neither Docker nor pydantic.
    from pytest_saber import tasks
    from pytest_saber.agents import AgentOptions, resolve
    from pytest_saber.errors import UsageError
    from pytest_saber.record.store import RunStore
    from pytest_saber.runner import images
    from pytest_saber.runner.pipeline import Completed, Pipeline
    from pytest_saber.runner.reference_check import faults, probes, unreached
    from pytest_saber.runner.scheduler import Scheduler
    from pytest_saber.runner.session import new_session
    from pytest_saber.sandbox.docker import DockerSandbox

    selected = [
        task
        for path in tasks.discover_some(args.paths)
        for task in tasks.load(path)
        if fnmatch.fnmatchcase(task.name, args.select) or fnmatch.fnmatchcase(task.id, args.select) or task.name == args.select
    ]
    if not selected:
        raise UsageError(f"no task under {', '.join(map(str, args.paths))} matches '{args.select}'")
    missing = images.absent(selected, args.image or "", "--image", root=Path())
    if missing:
        raise UsageError("\n".join(missing))
    work = [probe for task in selected for probe in probes(task)]
    if args.shuffle is not None:
        random.Random(args.shuffle).shuffle(work)  # noqa: S311 - an order, not a secret
    # Ends like Ctrl-C: the workspaces are removed on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begin = time.monotonic()
    session = new_session()
    sandbox = DockerSandbox(session, image=args.image)
    pipeline = Pipeline(session, sandbox, RunStore(args.runs_dir))
    scheduler: Scheduler[Completed] = Scheduler(args.jobs)
    by_task: dict[str, list[Completed]] = {task.name: [] for task in selected}
    bad = 0
    try:
        sandbox.reap()
        scheduler.start(
            [
                (probe.name, partial(pipeline.run, probe.task, 1, resolve("react", probe.model, AgentOptions())))
                for probe in work
            ]
        )
        for probe in work:
            completed = scheduler.result(probe.name)
            by_task[probe.task.name].append(completed)
            wrong = faults(probe, completed)
            bad += bool(wrong)
            if wrong:
                print(f"{probe.task.path}:{probe.line}: {probe.task.name} {probe.model}: " + "\n    ".join(wrong))
                print(f"    evidence: {completed.path}")
            elif args.verbose:
                print(f"ok   {probe.task.name} {probe.model}: {completed.verdict.outcome.value}")
            sys.stdout.flush()
        for task in selected:
            for line in unreached(task, by_task[task.name]):
                bad += 1
                print(line)
    finally:
        scheduler.close()
        sandbox.close()
    seconds = time.monotonic() - begin
    of = f"{counted(len(work), 'run')} of {counted(len(selected), 'item')}"
    print(f"{of} in {seconds:.1f} s: {f'{bad} wrong' if bad else 'all as declared'}")
    return 1 if bad else 0
