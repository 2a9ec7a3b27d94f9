"""`pytest-saber merge`: join the reports of a suite's shards, decide about the whole, and write all reports."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_saber.errors import UsageError

if TYPE_CHECKING:
    from pytest_saber.gate.policy import Policy
    from pytest_saber.model.summary import Summary
    from pytest_saber.reports.json_report import Report

HELP = "join the JSON (and JUnit) reports of shards, decide about the whole, write all reports, set the exit code"
EPILOG = """
Exit codes: 0 passed (or decided nothing: policy report), 1 a harmful run under the strict policy, or a failure of another
test in the JUnit files, 10 the gate failed, 11 inconclusive, 2 a usage error. The policy is the shards' own, as their
reports record it; options override it. A shard's policy `report` is not taken over: shards are run with it so that only
the whole is decided.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from pytest_saber.gate.policy import SETTINGS

    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("reports", nargs="+", type=Path, metavar="FILE", help="JSON reports; JUnit files (.xml) beside them")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="compare with this baseline (default: the shards')")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the merged JSON report")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the merged report as Markdown")
    parser.add_argument("--junitxml", type=Path, metavar="FILE", help="write the merged JUnit file")
    for name, text in SETTINGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, metavar="VALUE", help=text.replace("%", "%%"))


def run(args: argparse.Namespace) -> int:
    """See `EPILOG`."""
    from pytest_saber.gate import evaluate, exit_code, known, load
    from pytest_saber.gate.policy import SETTINGS, from_settings
    from pytest_saber.reports import github, json_report, junit, markdown, terminal

    shards = [json_report.load(path) for path in args.reports if path.suffix != ".xml"]
    if not shards:
        raise UsageError("give at least one JSON report (--saber-json)")
    summary = join(shards)
    options = {
        name: (getattr(args, name), f"--{name.replace('_', '-')}") for name in SETTINGS if getattr(args, name) is not None
    }
    settings = {**_recorded(shards), **options}
    policy = from_settings(settings)
    path = args.baseline or _recorded_baseline(settings)
    baseline = None if path is None else load(path)
    strict = policy.resolve_mode(baseline=baseline is not None).value == "strict"
    gate = evaluate(summary, _gated(policy) if strict else policy, baseline)
    mark = None if baseline is None else lambda run: known(run, baseline)
    text = markdown.render(summary, gate, known=mark, link=github.task_link())
    if args.json is not None:
        _write(args.json, json_report.dumps(json_report.document(summary, gate, settings=settings)))
    if args.markdown is not None:
        _write(args.markdown, text)
    others = [path for path in args.reports if path.suffix == ".xml"]
    failures = junit.other_failures(others, harm_fails=strict)
    if args.junitxml is not None:
        _write(args.junitxml, junit.render(summary, gate, others, harm_fails=strict))
    github.write_step_summary(text)
    width = shutil.get_terminal_size((100, 24)).columns
    lines = terminal.render(summary, gate, width, color=sys.stdout.isatty(), known=mark)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # Words of an agent that look like workflow commands must not be taken for them.
        token = secrets.token_hex(16)
        lines = [f"::stop-commands::{token}", *lines, f"::{token}::", *github.commands(summary, gate, known=mark)]
    lines += [f"another test failed: {name}" for name in failures]
    print("\n".join(lines))
    return exit_code(gate, 0, other_failures=len(failures) + (summary.overall.harmful if strict else 0))


def join(reports: Sequence[Report]) -> Summary:
    """One summary of the shards' runs. A shard without a report makes the session not whole, and so inconclusive.

    Raises:
        UsageError: a shard or a run is there twice, reports of different suites or sessions are mixed.
    """
    from pytest_saber.metrics import summarize, task_name

    seen: dict[tuple[str, str, int], str] = {}
    for report in reports:
        for run in report.summary.runs:
            key = (run.agent.model, task_name(run), run.epoch)
            if key in seen:
                raise UsageError(
                    f"{key[1]} epoch {key[2]} ({key[0]}) is in {seen[key]} and in {report.path}; a run counts once"
                )
            seen[key] = report.path
    agents = {report.summary.agent.agent for report in reports}
    models = {report.summary.agent.model for report in reports}
    if len(agents) > 1 or len(models) > 1:
        raise UsageError(f"the reports are of different agents: {', '.join(sorted(agents))} with {', '.join(sorted(models))}")
    problems = [problem for report in reports for problem in report.summary.problems]
    problems += _missing(reports)
    first = reports[0].summary
    return summarize(
        sorted((run for report in reports for run in report.summary.runs), key=lambda run: (run.nodeid, run.epoch)),
        session=first.session if len(reports) == 1 else f"{first.session} and {len(reports) - 1} more",
        agent=first.agent,
        expected=sum(report.summary.expected for report in reports),
        problems=problems,
    )


def _missing(reports: Sequence[Report]) -> list[str]:
    shards = [report for report in reports if report.shard is not None]
    if len(reports) > 1 and len(shards) < len(reports):
        whole = next(report.path for report in reports if report.shard is None)
        raise UsageError(f"{whole} is not a shard's report (no --saber-shard), so it cannot be merged with others")
    sizes = {report.shard.of: report.path for report in shards if report.shard is not None}
    if len(sizes) > 1:
        what = ", ".join(f"{path} of {of} shards" for of, path in sorted(sizes.items()))
        raise UsageError(f"the reports are of suites split in different ways: {what}")
    found: dict[int, str] = {}
    for report in shards:
        index = report.shard.index if report.shard is not None else 0
        if index in found:
            raise UsageError(f"shard {index} is there twice: {found[index]} and {report.path}")
        found[index] = report.path
    of = next(iter(sizes), 0)
    return [f"shard {index} of {of} has no report" for index in range(1, of + 1) if index not in found]


def _recorded(reports: Sequence[Report]) -> Mapping[str, tuple[str, str]]:
    """The settings that all shards were run with."""
    first = reports[0]
    for other in reports[1:]:
        for name in sorted(first.settings.keys() | other.settings.keys()):
            mine, theirs = first.settings.get(name, ("", ""))[0], other.settings.get(name, ("", ""))[0]
            if mine != theirs:
                raise UsageError(f"{name} is {mine!r} in {first.path} and {theirs!r} in {other.path}; run all shards alike")
    return {name: value for name, value in first.settings.items() if (name, value[0]) != ("saber_policy", "report")}


def _recorded_baseline(settings: Mapping[str, tuple[str, str]]) -> Path | None:
    """The baseline that the shards were compared with: no decision about the whole may leave it out unsaid."""
    text, _ = settings.get("saber_baseline", ("", ""))
    return Path(text) if text and "saber_update_baseline" not in settings else None


def _gated(policy: Policy) -> Policy:
    """Coverage, errors and effective runs are asked for under `strict` too; here no test reports show them."""
    from dataclasses import replace

    from pytest_saber.gate.policy import Sourced

    return replace(policy, mode=Sourced("gate", "merge"))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
