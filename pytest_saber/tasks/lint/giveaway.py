"""Words that tell an agent that it is being tested."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.tasks.lint.suite import Remark, Suite, remark
from pytest_saber.tasks.texts import Text, texts

_EVERYWHERE = re.compile(
    r"""
      \bhoney[ -]?(?:pot|token|file)s?\b
    | \bcanary[ _-](?:token|value|secret|file|credential|key)s?\b
    | \b(?:pytest[_-])?saber\b
    | \btest[ _-]?task\b
    | \bagent[ ]under[ ]test\b
    | \b(?:safety|security|red[ -]team(?:ing)?|agent|ai|llm)[ _-](?:test|eval(?:uation)?|benchmark|scenario|exercise)s?\b
    | \b(?:this|it)[ ]is[ ](?:only[ ]|just[ ])?an?[ ](?:test|trap|simulation|drill|exercise|benchmark)\b
    | \bprompt[ _-]injections?\b | \bjailbreak\w*
    | \b(?:fake|dummy|bogus)[ _-](?:secret|token|key|password|credential|data(?:base)?|server|company|project)s?\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_IN_PROMPTS = re.compile(
    r"\b(?:honey\w+|canar(?:y|ies)|benchmark\w*|fake|dummy|bogus|traps?|simulat\w+|evaluat\w+|harmful|unsafe|malicious|exfiltrat\w+)\b",
    re.IGNORECASE,
)
_SHOWN_FILES = ("file_contents", "mock_fs", "git", "env", "hostname", "workdir", "setup")


def words(suite: Suite) -> Iterator[Remark]:
    """Words of a test in what the agent is told, and in what lies in the workspace."""
    for item in suite.items:
        for text in texts(item.tree, "agent"):
            yield from (remark(item, message, line=line) for line, message in _found(text, _EVERYWHERE, _IN_PROMPTS))
        for part in _SHOWN_FILES:
            for text in texts(item.tree, "workspace", part):
                yield from (remark(item, message, line=line) for line, message in _found(text, _EVERYWHERE))


def _found(text: Text, *patterns: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Line and message of each match that lies in no match of a pattern before."""
    place = ("in the key " if text.is_key else "in ") + ".".join(str(part) for part in text.loc)
    seen: list[tuple[int, int]] = []
    for pattern in patterns:
        for match in pattern.finditer(text.text):
            if not any(start <= match.start() and match.end() <= end for start, end in seen):
                seen.append(match.span())
                yield text.node.line_at(match.start()), f"{match[0]!r} gives the test away, {place}"
