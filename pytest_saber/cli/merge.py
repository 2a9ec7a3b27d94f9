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

from pytest_saber.errors import SaberError, UsageError

if TYPE_CHECKING:
    from pytest_saber.gate.baseline import Baseline
    from pytest_saber.gate.policy import Policy
    from pytest_saber.model.summary import GateResult, Summary
    from pytest_saber.reports.json_report import Report

HELP = "join the JSON (and JUnit) reports of shards, decide about the whole, write all reports, set the exit code"
EPILOG = """
Exit codes: 0 passed (or decided nothing: policy report), 1 under the policy strict a run that is harmful or has no verdict,
or a failure of another test of a shard, 10 the gate failed, 11 inconclusive, 2 a usage error. The policy is the shards' own,
as their reports record it; options override it. Shards are run with --saber-policy=report so that only the whole is decided:
what counts then is the policy that this option overrode (another --saber-policy before it, SABER_POLICY, saber_policy).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare files, outputs, and an option for each setting of the gate."""
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
    try:
        return _merge(args)
    except SaberError as error:
        _replace_former(args, str(error))
        raise


def _merge(args: argparse.Namespace) -> int:
    from pytest_saber.gate import exit_code, known, load
    from pytest_saber.gate.conclusion import concluded
    from pytest_saber.gate.policy import SETTINGS, from_settings
    from pytest_saber.reports import github, json_reader, json_report, junit, markdown, terminal
    from pytest_saber.reports.escape import line
    from pytest_saber.reports.join import join

    _check_named(args.reports)
    outputs = {"--json": args.json, "--markdown": args.markdown, "--junitxml": args.junitxml}
    _check_outputs(outputs, args.reports)
    shards = [json_reader.load(path) for path in args.reports if path.suffix != ".xml"]
    if not shards:
        raise UsageError("give at least one JSON report (--saber-json)")
    summary = join(shards)
    others = [path for path in args.reports if path.suffix == ".xml"]
    junit.check_beside(others, summary.runs)
    options = {
        name: (getattr(args, name), f"--{name.replace('_', '-')}") for name in SETTINGS if getattr(args, name) is not None
    }
    settings = {**_recorded(shards[0]), **options}
    policy = from_settings(settings)
    policy.check_epochs(_epochs(shards[0], summary))
    path = args.baseline or _recorded_baseline(settings)
    _check_outputs(outputs, [] if path is None else [path])
    baseline = None if path is None else load(path)
    _check_effect(options, policy, baseline)
    mode = policy.resolve_mode(baseline=baseline is not None)
    strict = mode.value == "strict"
    failures = _failures(shards, junit.other_failures(others, harm_fails=strict))
    anew = bool(options) or args.baseline is not None
    decided = _decided(shards, summary, _gated(policy) if strict else policy, baseline, anew=anew)
    gate = concluded(decided, summary, mode, failures.values())
    mark = None if baseline is None else lambda run: known(run, baseline)
    root = shards[0].root
    notes = list(dict.fromkeys(note for shard in shards for note in shard.notes))
    link = github.task_link(prefix=root)
    text = markdown.render(summary, gate, known=mark, link=link, failures=list(failures.values()), notes=notes)
    reports: list[tuple[Path, str]] = []
    if args.json is not None:
        merged = json_report.document(
            summary,
            gate,
            settings=settings,
            overridden={} if "saber_policy" in options else shards[0].overridden,
            conditions=shards[0].conditions,
            # A session that was interrupted on xdist workers knows of none.
            suite=next((shard.suite for shard in shards if shard.suite), None),
            root=root,
            other_failures=list(failures),
            notes=notes,
        )
        reports.append((args.json, json_report.dumps(merged)))
    if args.markdown is not None:
        reports.append((args.markdown, text))
    if args.junitxml is not None:
        reports.append((args.junitxml, junit.render(summary, gate, others, harm_fails=strict)))
    for target, content in reports:
        _write(target, content)
    github.write_step_summary(text)
    width = shutil.get_terminal_size((100, 24)).columns
    lines = terminal.render(summary, gate, width, color=sys.stdout.isatty(), known=mark)
    lines += [f"note: {line(note, 2000)}" for note in notes]
    lines += ["", *(f"results {target} written" for target, _ in reports)] if reports else []
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # Words of an agent that look like workflow commands must not be taken for them.
        token = secrets.token_hex(16)
        commands = github.commands(summary, gate, known=mark, prefix=root, failures=list(failures.values()))
        lines = [f"::stop-commands::{token}", *lines, f"::{token}::", *commands]
    lines += [f"another test failed: {where}" for where in failures.values()]
    print("\n".join(lines))
    failed_runs = summary.overall.harmful + summary.overall.errors if strict else 0
    return exit_code(gate, 0, other_failures=len(failures) + failed_runs)


def _replace_former(args: argparse.Namespace, reason: str) -> None:
    """Leave no decision of a former merge in the place of one that could not be made, but for files that this one reads.

    Raises UsageError with `reason` for one that cannot be replaced.
    """
    from pytest_saber.reports import former
    from pytest_saber.reports.escape import line

    read = {os.path.realpath(path) for path in args.reports}
    outputs: dict[former.Kind, Path | None] = {"json": args.json, "markdown": args.markdown, "junit": args.junitxml}
    places = {kind: path for kind, path in outputs.items() if path is not None and os.path.realpath(path) not in read}
    try:
        former.replace(places, f"the reports could not be merged: {line(reason, 2000)}")
    except OSError as error:
        raise UsageError(
            f"{reason}\n{error.filename} is of a former merge, and could not be replaced: {error.strerror}"
        ) from None


def _check_named(paths: Sequence[Path]) -> None:
    """Raises UsageError for a file that is named twice: a failed test of it would count twice, or a run contradict itself."""
    seen: dict[Path, Path] = {}
    for path in paths:
        place = Path(os.path.realpath(path))
        if place in seen:
            raise UsageError(f"{path} is named twice" + (f", as {seen[place]} too" if seen[place] != path else ""))
        seen[place] = path


def _check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[Path]) -> None:
    """Raises UsageError, before anything is written, for a path that cannot be a file, and for one file of two reports."""
    from pytest_saber.model.files import same, special

    named = {option: path for option, path in outputs.items() if path is not None}
    for option, path in named.items():
        kind = special(path)
        if kind:
            raise UsageError(f"{option}: {path} {kind}")
    for option, other in same(named):
        raise UsageError(f"{other}: {named[other]} is the file of {option} too, and one report would replace the other")
    read = {os.path.realpath(path): path for path in inputs}
    for option, path in named.items():
        if os.path.realpath(path) in read:
            raise UsageError(f"{option}: {path} is one of the files that are read, and would be lost; name another one")


def _check_effect(options: Mapping[str, tuple[str, str]], policy: Policy, baseline: Baseline | None) -> None:
    """Raises UsageError naming every option that changes nothing here: whoever typed it expects something of it."""
    why = {"saber_stop_level": "has no effect: the runs that are merged are done"}
    if baseline is None:
        text = "has no effect without a baseline to compare with; name one with --baseline=FILE"
        why |= {"saber_tolerance": text, "saber_alpha": text}
    if not any(limit.name not in ("max_error_rate", "min_effective", "max_harmful_epochs") for limit in policy.limits):
        why["saber_reading"] = "has no effect without a limit on a rate, such as --saber-max-hsr=0.2"
    problems = [f"{origin}: {why[name]}" for name, (_, origin) in options.items() if name in why]
    if problems:
        raise UsageError("\n".join(problems))


def _decided(
    shards: Sequence[Report], summary: Summary, policy: Policy, baseline: Baseline | None, *, anew: bool
) -> GateResult:
    """The decision about the whole. One that was made early stands, as long as nothing else is asked for (`anew`)."""
    from pytest_saber.gate.recorded import confirmed, decided_anew

    if len(shards) == 1 and not anew:
        return confirmed(shards[0].gate, summary, policy, baseline)
    return decided_anew(summary, policy, baseline)


def _failures(shards: Sequence[Report], from_junit: Sequence[str]) -> Mapping[str, str]:
    """Failed tests that are neither harm nor incidents of runs, each once: its name as in JUnit, and how it is shown.

    A JSON report knows of those of its session by itself, so that one without its JUnit file passes no more than with it.
    """
    from pytest_saber.reports.escape import line

    found = {_junit_name(nodeid): f"{line(nodeid)} ({shard.path})" for shard in shards for nodeid in shard.other_failures}
    return {**{name: name for name in from_junit}, **found}


def _junit_name(nodeid: str) -> str:
    """How pytest's JUnit file names a test: `tests.test_x::test_y` for `tests/test_x.py::test_y`."""
    from pytest_saber.reports.escape import line

    module, *names = nodeid.split("::")
    parts = [module.removesuffix(".py").replace("/", "."), *names]
    return f"{line('.'.join(parts[:-1]))}::{line(parts[-1])}"


def _epochs(first: Report, summary: Summary) -> int:
    """Runs that each task had; of an older report as its runs say."""
    text = first.conditions.get("epochs", "")
    return int(text) if text.isdecimal() and len(text) < 10 else max((run.epoch for run in summary.runs), default=1)


def _recorded(first: Report) -> Mapping[str, tuple[str, str]]:
    """The settings that all shards were run with, but for the policy `report`, in whose place comes what it overrode."""
    settings = dict(first.settings)
    if settings.get("saber_policy", ("", ""))[0] == "report":
        del settings["saber_policy"]
        settings |= {name: value for name, value in first.overridden.items() if name == "saber_policy"}
    return settings


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
    if str(path) == "/dev/stdout":
        # Opened anew, a file that the output goes to would be written from its start.
        sys.stdout.write(text)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
