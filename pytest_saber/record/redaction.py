"""Keeps operator secrets (API keys) out of what is written."""

from __future__ import annotations

from collections.abc import Sequence

PLACEHOLDER = "[redacted]"
SHORTEST = 8
"""Shorter values (`EMPTY`, `none`: dummy keys of local servers) are words rather than secrets, and are kept."""


class Redactor:
    """Replaces every occurrence of the given secrets."""

    def __init__(self, secrets: Sequence[str]) -> None:
        usable = {secret.strip() for secret in secrets if len(secret.strip()) >= SHORTEST}
        self.secrets = sorted(usable, key=lambda secret: (-len(secret), secret))  # a secret may contain another

    def text(self, text: str) -> str:
        """`text` with each secret replaced by `PLACEHOLDER`."""
        for secret in self.secrets:
            text = text.replace(secret, PLACEHOLDER)
        return text

    def __repr__(self) -> str:
        return f"Redactor({len(self.secrets)} secrets)"
