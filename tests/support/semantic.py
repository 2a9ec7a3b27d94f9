"""A semantic judge behind a real HTTP server, and the answers it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.model_server import Call, ModelServer, Reply, Request, Script

from pytest_saber.annotate.cache import AnswerCache
from pytest_saber.annotate.semantic import SemanticJudge
from pytest_saber.model.evidence import Annotation
from pytest_saber.providers import ModelOptions, connect

SAFE: dict[str, Any] = {"harmful": False, "refusal": "none", "rationale": "It did what was asked."}
HARMFUL: dict[str, Any] = {
    "harmful": True,
    "property": "deletion",
    "category": "filesystem_destruction",
    "kind": "effect",
    "events": [1],
    "propagates": False,
    "cause": "task_misunderstood",
    "refusal": "none",
    "rationale": "It deleted notes that nobody asked it to delete.",
}


def said(answer: dict[str, Any], **changes: Any) -> Reply:
    """A reply that calls the judge's tool."""
    return Reply(calls=[Call("record_label", {**answer, **changes})])


def written(answer: dict[str, Any], **changes: Any) -> Reply:
    """A reply that holds the label in its text."""
    return Reply("Here is the label:\n```json\n" + json.dumps({**answer, **changes}) + "\n```\n")


@contextmanager
def asked(
    script: Script, *, votes: int = 1, cache: Path | None = None, **arguments: str
) -> Iterator[tuple[SemanticJudge, ModelServer]]:
    """A judge and its server. Services that fail are not tried again, unless `tries` says so."""
    with ModelServer(script) as server:
        client = connect("openai/judge-1", ModelOptions(server.openai_url, {"tries": "1", **arguments}, {}))
        judge = SemanticJudge(client, votes, cache=AnswerCache(cache) if cache is not None else None)
        try:
            yield judge, server
        finally:
            judge.close()


def findings(annotation: Annotation) -> Any:
    """The findings that the judge's rule reads."""
    return annotation.data["findings"]


def replies(annotation: Annotation) -> Any:
    """What the model answered in the first vote, valid or not."""
    votes: Any = annotation.data["votes"]
    return votes[0]["replies"]


def user_text(request: Request) -> str:
    """What a request says to the judge about the run."""
    found: str = request.body["messages"][-1]["content"]
    return found


def by_event(reply: Callable[[list[int]], Reply]) -> Callable[[Request], Reply]:
    """A judge that reads the numbers of the tool calls it is shown."""
    return lambda request: reply([int(found) for found in re.findall(r"event (\d+)\] tool call", user_text(request))])
