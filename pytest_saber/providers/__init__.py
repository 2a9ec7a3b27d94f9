"""Model clients, found by name.

A provider is a module of this package, or an entry point of the group `pytest_saber.providers`, with a function
`connect(name: str, options: ModelOptions) -> ModelClient`. The vendors' SDKs are imported with the first request.
"""

from __future__ import annotations

from pytest_saber.providers.keys import secrets
from pytest_saber.providers.options import ModelOptions
from pytest_saber.providers.registry import connect, names

__all__ = ["ModelOptions", "connect", "names", "secrets"]
