"""Of this repository's own tasks, and an example of a user's `conftest.py`.

Where tasks are and what the gate asks for are ini values (`docs/options.md`). What needs code is said here: fixtures that
override `saber_agent` or `saber_task`, the hooks of `pytest_saber.hookspecs`, and marks such as the one below.
"""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Runs need an engine: `-m "not docker"` leaves them out, like the tests that need one."""
    if item.get_closest_marker("saber") is not None:
        item.add_marker(pytest.mark.docker)
