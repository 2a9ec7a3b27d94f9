"""GitHub Actions: annotations as workflow commands, and the step summary.

GitHub shows at most ten errors and ten warnings of a step, so the gate's decision comes first, then new harm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from pytest_saber.errors import UsageError
from pytest_saber.metrics import run_name, task_name
from pytest_saber.model.summary import GateResult, RunRecord, Summary
from pytest_saber.model.terms import Outcome
from pytest_saber.reports.escape import workflow_data, workflow_property
from pytest_saber.reports.failure import render as failure_text

_SHOWN = 10
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


def commands(
    summary: Summary,
    gate: GateResult,
    *,
    known: Callable[[RunRecord], bool] | None = None,
    prefix: str = "",
    failures: Sequence[str] = (),
) -> list[str]:
    """Workflow commands, one a line: an error for each rule that did not pass, then one at the task file of each harmful
    run (a warning where the baseline knows it, or the gate passed), then a warning for each incident.

    `prefix` is the path from the repository's root to the directory that task paths are relative to. `failures` are other
    failed tests, for one error about all of them where no rule tells of them, as under the policy `report`; a session leaves
    them out, as pytest itself shows them.
    """
    lines = [
        _command(
            "error" if gate.status != "off" else "warning", rule.beside_name, title=f"saber-gate {rule.name}: {rule.status}"
        )
        for rule in gate.rules
        if rule.status != "passed"
    ]
    if failures and gate.status == "off":
        more = f" and {len(failures) - _SHOWN} more" if len(failures) > _SHOWN else ""
        lines.append(_command("error", ", ".join(failures[:_SHOWN]) + more, title=f"other failed tests: {len(failures)}"))
    harmful = [run for run in summary.runs if run.verdict.outcome.is_harmful]
    if known is not None:
        harmful.sort(key=known)
    for run in harmful[:_SHOWN]:
        is_known = known is not None and known(run)
        mark = "" if known is None else "known harm: " if is_known else "new harm: "
        level = "warning" if is_known or gate.status in ("off", "passed") else "error"
        lines.append(_at(run, level, f"{mark}{_name(run, summary)}", failure_text(run), prefix))
    errors = [run for run in summary.runs if run.verdict.outcome is Outcome.ERROR]
    lines += [_at(run, "warning", f"no verdict: {_name(run, summary)}", run.incident, prefix) for run in errors[:_SHOWN]]
    return lines


def write_step_summary(text: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Append `text` to the step summary. Returns whether this runs where there is one.

    Raises:
        UsageError: the file that `GITHUB_STEP_SUMMARY` names cannot be written.
    """
    path = environ.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        return False
    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"GITHUB_STEP_SUMMARY={path}: cannot be written: {error.strerror or error}") from error
    return True


def task_link(environ: Mapping[str, str] = os.environ, *, prefix: str = "") -> Callable[[RunRecord], str]:
    """A function from a run to the URL of its task file at the commit under test; it gives "" outside GitHub Actions."""
    server = environ.get("GITHUB_SERVER_URL", "")
    repository = environ.get("GITHUB_REPOSITORY", "")
    commit = environ.get("GITHUB_SHA", "")
    if not (server.startswith("https://") and _REPOSITORY.fullmatch(repository) and commit.isalnum()):
        return lambda run: ""  # noqa: ARG005 - the same signature as below
    base = f"{quote(server, safe=':/.-')}/{repository}/blob/{commit}"
    return lambda run: f"{base}/{quote(prefix + run.path)}#L{max(run.line, 1)}"


def _name(run: RunRecord, summary: Summary) -> str:
    return run_name(run, summary) if len(summary.model) > 1 else task_name(run)


def _at(run: RunRecord, level: str, title: str, message: str, prefix: str) -> str:
    return _command(level, message, file=prefix + run.path, line=str(max(run.line, 1)), title=title)


def _command(level: str, message: str, **properties: str) -> str:
    given = ",".join(f"{name}={workflow_property(value)}" for name, value in properties.items())
    return f"::{level} {given}::{workflow_data(message)}"
