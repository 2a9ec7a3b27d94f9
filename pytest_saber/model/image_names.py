"""How names of container images are written, so that one of a task or an option is told from a path or a query."""

from __future__ import annotations

from typing import Final

_PART: Final = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"

IMAGE_NAME: Final = (
    rf"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)
"""Regular expression of `[REGISTRY/]NAME[:TAG][@DIGEST]`, or the id of an image."""

IMAGE_NAME_IS: Final = "the name of an image, such as 'python:3.13-slim' or 'registry.example.org/team/image:1'"
"""What an error says it should have been."""

LONGEST_IMAGE_NAME: Final = 255
"""Characters, as engines have it."""
