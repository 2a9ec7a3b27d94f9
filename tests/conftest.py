"""Of the whole test suite."""

from __future__ import annotations

from hypothesis import settings

# A loaded machine makes any example slow; no test of this suite asserts times.
settings.register_profile("saber", deadline=None)
settings.load_profile("saber")

pytest_plugins = ["pytester"]
