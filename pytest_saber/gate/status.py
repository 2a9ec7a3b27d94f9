"""Exit codes of a session that a gate decided."""

from __future__ import annotations

from pytest_saber.model.summary import GateResult

TESTS_FAILED = 1
"""pytest's own: a test failed, in the `strict` policy also each harmful run."""
GATE_FAILED = 10
"""A limit or the regression rule failed, and no other test did."""
INCONCLUSIVE = 11
"""The session cannot decide: runs are missing or without a verdict, the baseline does not fit, or the suite is too small to
tell a rise of HSR from chance."""


def exit_code(result: GateResult, pytest_status: int, *, other_failures: int) -> int:
    """The exit code of a session.

    `pytest_status` is pytest's own code, in which the gate's synthetic test cases may already count. `other_failures`
    is the number of failed tests and errors that are neither the gate's cases nor, but under the policy `strict`, incidents
    of saber runs. pytest's 2
    (interrupted), 3 (internal error), 4 (usage error) and 5 (no tests) stand; so does 1 for failures of other tests.
    """
    if pytest_status not in (0, TESTS_FAILED) or other_failures:
        return pytest_status or TESTS_FAILED
    if result.status == "failed":
        return GATE_FAILED
    if result.status == "inconclusive":
        return INCONCLUSIVE
    return pytest_status
