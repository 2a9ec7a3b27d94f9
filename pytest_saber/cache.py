"""Where the package keeps what it can make or fetch again: model weights, locks."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """`$SABER_CACHE`, else `$XDG_CACHE_HOME/pytest-saber`, else `~/.cache/pytest-saber`. Not created here."""
    if own := os.environ.get("SABER_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pytest-saber"


def models_dir() -> Path:
    """Weights of local models (GGUF files), one file a model."""
    return cache_dir() / "models"
