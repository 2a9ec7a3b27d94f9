"""`--saber-shard=I/N`: this session runs the I-th of N parts of the suite.

Tasks of one template stay together, as their runs are one cluster; templates are dealt out in the order of their names, so that
every shard of one suite agrees on the parts. Tests without a run of an agent belong to the first shard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_saber.model.words import counted
from pytest_saber.pytest_glue.collection import task_of
from pytest_saber.pytest_glue.settings import Value

if TYPE_CHECKING:
    from pytest_saber.reports.json_report import Shard


def parse(value: Value) -> Shard | None:
    """The shard of a setting that was checked; None where none is set."""
    match = re.fullmatch(r"(\d+)/(\d+)", value.text)
    if match is None:
        return None
    from pytest_saber.reports.json_report import Shard

    return Shard(int(match[1]), int(match[2]))


def split(items: Sequence[pytest.Item], shard: Shard, origin: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The shard's items, and those of the others.

    Raises pytest.UsageError when there are more shards than templates: an empty shard could not be told from a lost one.
    """
    templates = sorted({found[0].template for found in map(task_of, items) if found is not None})
    if templates and len(templates) < shard.of:
        raise pytest.UsageError(f"{origin}: {counted(len(templates), 'template')} cannot be split over {shard.of} shards")
    mine = set(templates[shard.index - 1 :: shard.of])
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        found = task_of(item)
        inside = shard.index == 1 if found is None else found[0].template in mine
        (kept if inside else others).append(item)
    return kept, others
