"""Names of sessions."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def new_session() -> str:
    """A name that sorts by time and is unique across machines: `20260302-101500-3f9a1c`."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
