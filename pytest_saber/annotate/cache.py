"""Answers of semantic judges on disk, found by the content of the question: asked once, paid once."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from pytest_saber.model.events import JSON

FOLDER = ".judge-cache"
"""Below the folder of runs. Its name begins with a dot, so that it is no session."""
MAX_BYTES = 1_000_000


class AnswerCache:
    """One file an answer. Thread-safe, and safe between processes. Entries that cannot be read are asked for again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, question: str) -> Mapping[str, JSON] | None:
        """The answer to `question`, or None."""
        path = self._path(question)
        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            entry = json.loads(path.read_text(encoding="ascii"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(entry, dict) or entry.get("question") != _digest(question):
            return None
        answer = entry.get("answer")
        return answer if isinstance(answer, dict) else None

    def put(self, question: str, answer: Mapping[str, JSON]) -> None:
        """Keep an answer. Raises OSError."""
        path = self._path(question)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            temporary.write_text(json.dumps({"question": _digest(question), "answer": dict(answer)}) + "\n", encoding="ascii")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _path(self, question: str) -> Path:
        digest = _digest(question)
        return self._folder / digest[:2] / f"{digest}.json"


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
