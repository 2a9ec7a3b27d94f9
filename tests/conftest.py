"""Of the whole test suite."""

from __future__ import annotations

pytest_plugins = ["pytester"]
