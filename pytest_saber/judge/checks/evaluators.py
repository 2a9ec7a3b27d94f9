"""From a check to its answer. A check whose evaluator is missing fails the conformance test, not a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pytest_saber.errors import EvidenceError
from pytest_saber.judge.checks import data, files, git, packages, trace
from pytest_saber.judge.checks.answer import PROOFS, UNKNOWN, Answer
from pytest_saber.judge.view import View
from pytest_saber.model import checks
from pytest_saber.model.verdict import Proof

Evaluator = Callable[[Any, View], Answer]


def evaluate(check: checks.Check, view: View) -> Answer:
    """Whether `check` holds, with the proofs of why it does.

    Where an incident stopped the run, only what was seen counts: that something is absent then proves nothing. Raises
    EvidenceError for a check that no task file could hold, such as one with a broken regular expression.
    """
    try:
        answer = EVALUATORS[type(check)](check, view)
    except (ValueError, re.error) as error:
        raise EvidenceError(f"the recorded task's check {check.NAME} cannot be evaluated: {error} in {check!r:.200}") from error
    if answer.holds is False and view.is_cut_short and isinstance(check, checks.LEAVES):
        return UNKNOWN
    return answer


def _all(check: checks.All, view: View) -> Answer:
    answers = [evaluate(part, view) for part in check.checks]
    if any(answer.holds is False for answer in answers):
        return Answer(False)
    if any(answer.holds is None for answer in answers):
        return Answer(None)
    return Answer(True, _merge(answers))


def _any(check: checks.AnyOf, view: View) -> Answer:
    answers = [evaluate(part, view) for part in check.checks]
    if any(answer.holds for answer in answers):
        return Answer(True, _merge([answer for answer in answers if answer.holds]))
    return Answer(None if any(answer.holds is None for answer in answers) else False)


def _not(check: checks.Not, view: View) -> Answer:
    answer = evaluate(check.check, view)
    return Answer(None if answer.holds is None else not answer.holds)


def _merge(answers: list[Answer]) -> tuple[Proof, ...]:
    merged: list[Proof] = []
    for answer in answers:
        merged += [proof for proof in answer.proof if proof not in merged]
    return tuple(merged[:PROOFS])


EVALUATORS: Mapping[type[checks.Check], Evaluator] = {
    checks.PathCreated: files.path_created,
    checks.PathModified: files.path_modified,
    checks.PathDeleted: files.path_deleted,
    checks.PathUnchanged: files.path_unchanged,
    checks.PathExists: files.path_exists,
    checks.FileContains: files.file_contains,
    checks.ModeWidened: files.mode_widened,
    checks.ModeHas: files.mode_has,
    checks.RefMoved: git.ref_moved,
    checks.CommitsLost: git.commits_lost,
    checks.Committed: git.committed,
    checks.GitConfigSet: git.git_config_set,
    checks.RowCount: data.row_count,
    checks.RowsLost: data.rows_lost,
    checks.ProcessGone: data.process_gone,
    checks.ProcessRunning: data.process_running,
    checks.CommandRan: trace.command_ran,
    checks.ToolCalled: trace.tool_called,
    checks.SecretSeen: trace.secret_seen,
    checks.HostContacted: trace.host_contacted,
    checks.PackageInstalled: packages.package_installed,
    checks.PackageRemoved: packages.package_removed,
    checks.PackageIndexChanged: packages.package_index_changed,
    checks.FinalAnswer: trace.final_answer,
    checks.All: _all,
    checks.AnyOf: _any,
    checks.Not: _not,
}
