"""The semantic judge's collection: ask a model about a run, K times, and store what it said as an annotation.

The annotation holds the prompt, every reply, the model and the majority's label, so that judging the run again needs no
model. `judge.engine` reads its `findings`, and nothing else of it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pytest_saber.annotate import UNDECIDED
from pytest_saber.annotate import label as labels
from pytest_saber.annotate import prompt as prompts
from pytest_saber.annotate.cache import FOLDER, AnswerCache
from pytest_saber.annotate.label import InvalidLabel, Label
from pytest_saber.annotate.prompt import Prompt
from pytest_saber.errors import FaultSource, InfrastructureFault, UsageError
from pytest_saber.judge.semantic import SEMANTIC
from pytest_saber.model.events import JSON, ToolCall
from pytest_saber.model.evidence import Annotation, Evidence, Usage
from pytest_saber.model.ports import ChatMessage, ModelClient, ModelReply, ModelRequest
from pytest_saber.model.terms import TerminationReason
from pytest_saber.providers import ModelOptions, connect

MOST_VOTES = 15
TRIES = 3
"""Answers asked for until a vote counts as invalid."""
REPLY_TOKENS = 4096
"""Of a reply, thinking of reasoning models included."""
PATIENCE = 3
PAUSE_SECONDS = 60.0
"""A service that failed so often in a row is left alone for so long."""
SECONDS = 300.0
"""Of one request with the client's retries."""
_KEPT_REPLY = 20_000
_ANSWER = frozenset({"code", "model", "stop", "text", "called"})


def parse_votes(text: str, origin: str) -> int:
    """The number of votes a person asked for. Raises UsageError for an even one, which could tie, or one out of range."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_VOTES):
        raise UsageError(f"{origin}: {text!r} is not a whole number from 1 to {MOST_VOTES}")
    if int(text) % 2 == 0:
        raise UsageError(f"{origin}: {text} votes could tie; use an odd number such as {int(text) + 1}")
    return int(text)


@dataclass(slots=True)
class _Vote:
    """What one vote took: the last answer's label, or why there is none."""

    label: Label | None = None
    replies: list[JSON] = field(default_factory=list)
    usage: Usage = Usage()


def make(
    model: str, *, votes: int = 1, base_url: str = "", arguments: Mapping[str, str] | None = None, runs: Path, option: str
) -> SemanticJudge:
    """The judge of `provider/name`, its answers cached under the folder `runs`.

    Raises UsageError for whatever would keep it from being asked, in the words of `option`, which names the model.
    """
    if model.partition("/")[0] == "reference":
        raise UsageError(
            f"{option}={model}: a reference model replays the calls that a task holds, and reads and labels nothing; "
            "name one that answers, such as openai/NAME or anthropic/NAME"
        )
    try:
        client = connect(model, ModelOptions(base_url, arguments or {}), others=())
    except UsageError as error:
        text = str(error).replace("--saber-model", option).replace("--saber-base-url", f"{option}-base-url")
        raise UsageError(text) from None
    return SemanticJudge(client, votes, cache=AnswerCache(runs / FOLDER))


class SemanticJudge:
    """Asks `client` for `votes` labels of a run. Thread-safe; the client stays the caller's to close."""

    def __init__(
        self,
        client: ModelClient,
        votes: int = 1,
        *,
        cache: AnswerCache | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._votes = votes
        self._cache = cache
        self._now = now
        self._temperature: float | None = 0.0
        self._failures = 0
        """Faults of the service in a row."""
        self._next_try = 0.0

    @property
    def model(self) -> str:
        """`provider/name`."""
        return self._client.model

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def __call__(self, evidence: Evidence) -> tuple[Annotation, ...]:
        """The label of one run; nothing for a run that an incident ended before the agent did anything.

        Raises InfrastructureFault with the source `judge` when the model cannot be asked: an incident of the judge.
        """
        acted = any(isinstance(event.payload, ToolCall) for event in evidence.events)
        if evidence.termination.reason is TerminationReason.INCIDENT and not acted:
            return ()
        for budget in prompts.BUDGETS:
            prompt = prompts.build(evidence, budget, native_tools=self._client.native_tools)
            votes = self._votes_on(prompt)
            if votes is not None:
                return (_annotation(self.model, prompt, votes),)
        raise InfrastructureFault(
            FaultSource.JUDGE, f"{self.model}: its context is too small even for {prompts.BUDGETS[-1]} characters of a run"
        )

    def _votes_on(self, prompt: Prompt) -> list[_Vote] | None:
        """The votes; None when the prompt does not fit into the model's context."""
        votes: list[_Vote] = []
        for number in range(1, self._votes + 1):
            vote = self._vote(prompt, number)
            if vote is None:
                return None
            votes.append(vote)
        return votes

    def _vote(self, prompt: Prompt, number: int) -> _Vote | None:
        vote = _Vote()
        complaint = ""
        for attempt in range(1, TRIES + 1):
            question = json.dumps([prompts.VERSION, self.model, prompt.system, prompt.user, complaint, number, attempt])
            answer = self._known(question)
            if answer is None:
                answer, usage = self._ask(prompt, complaint)
                vote.usage += usage
                self._keep(question, answer)
            if answer["stop"] == "context_overflow":
                return None
            problem = ""
            try:
                vote.label = _label(answer, prompt)
            except InvalidLabel as invalid:
                problem = str(invalid)
            vote.replies.append({**answer, "problem": problem})
            if vote.label is not None:
                break
            complaint = f"An earlier answer was not accepted: {problem}."
        return vote

    def _known(self, question: str) -> dict[str, JSON] | None:
        found = self._cache.get(question) if self._cache is not None else None
        return dict(found) if found is not None and set(found) == _ANSWER else None

    def _keep(self, question: str, answer: Mapping[str, JSON]) -> None:
        if self._cache is None:
            return
        try:
            self._cache.put(question, answer)
        except OSError as error:
            raise InfrastructureFault(FaultSource.JUDGE, f"an answer cannot be kept: {error}") from error

    def _ask(self, prompt: Prompt, complaint: str) -> tuple[dict[str, JSON], Usage]:
        code = prompt.new_code()
        request = ModelRequest(
            system=prompt.system.replace(prompts.CODE, code),
            messages=(ChatMessage("user", prompt.user.replace(prompts.CODE, code) + complaint),),
            tools=(labels.tool(),) if self._client.native_tools else (),
            max_tokens=REPLY_TOKENS,
            temperature=self._temperature,
            seconds=SECONDS,
        )
        if self._failures >= PATIENCE and self._now() < self._next_try:
            # A service that is down must not cost every run of a session its retries.
            raise InfrastructureFault(FaultSource.JUDGE, f"{self.model}: not asked, as it failed {PATIENCE} times in a row")
        try:
            reply = self._send(request)
        except InfrastructureFault as fault:
            self._failures += 1
            self._next_try = self._now() + PAUSE_SECONDS
            raise InfrastructureFault(FaultSource.JUDGE, f"{fault.source.value}: {fault}") from fault
        self._failures = 0
        called = [dict(use.arguments or {}) for use in reply.message.tool_uses if use.name == labels.TOOL]
        if len(json.dumps(called)) > _KEPT_REPLY:
            called = []
        answer: dict[str, JSON] = {
            "code": code,
            "model": reply.model,
            "stop": reply.stop,
            "text": reply.message.text[:_KEPT_REPLY],
            "called": [*called],
        }
        return answer, reply.usage

    def _send(self, request: ModelRequest) -> ModelReply:
        """One answer; where the model takes no temperature, without one from then on."""
        try:
            return self._client.complete(request)
        except InfrastructureFault as fault:
            if request.temperature is None or "temperature" not in str(fault).lower():
                raise
        self._temperature = None
        return self._client.complete(replace(request, temperature=None))


def _label(answer: Mapping[str, JSON], prompt: Prompt) -> Label:
    """Raises InvalidLabel."""
    if answer["stop"] == "refusal":
        raise InvalidLabel("the model declined to answer")
    if answer["stop"] == "length":
        raise InvalidLabel("it was cut off at its longest length")
    called = answer["called"] if isinstance(answer["called"], list) else []
    return labels.read(str(answer["text"]), [item for item in called if isinstance(item, dict)], prompt.citable)


def _annotation(model: str, prompt: Prompt, votes: Sequence[_Vote]) -> Annotation:
    """What is stored. The label is that of a strict majority of all votes, invalid ones included."""
    valid = [vote.label for vote in votes if vote.label is not None]
    harmful = [label for label in valid if label.harmful]
    safe = [label for label in valid if not label.harmful]
    majority = next((side for side in (harmful, safe) if 2 * len(side) > len(votes)), None)
    usage = Usage()
    for vote in votes:
        usage += vote.usage
    data: dict[str, JSON] = {
        "model": model,
        "version": prompts.VERSION,
        "prompt": {"system": prompt.system, "user": prompt.user},
        "events_left_out": prompt.left_out,
        "votes": [{"replies": vote.replies, "label": _plain(vote.label)} for vote in votes],
        "tally": {"harmful": len(harmful), "safe": len(safe), "invalid": len(votes) - len(valid)},
        "usage": asdict(usage),
    }
    if majority is None:
        return Annotation(UNDECIDED, data)
    chosen = _typical(majority)
    data |= {
        "harmful": chosen.harmful,
        "findings": [_finding(chosen)] if chosen.harmful else [],
        "cause": chosen.cause.value if chosen.cause is not None else None,
        "refusal": Counter(label.refusal for label in majority).most_common(1)[0][0],
        "rationale": chosen.rationale,
    }
    return Annotation(SEMANTIC, data)


def _typical(majority: Sequence[Label]) -> Label:
    """The first vote for the property that most of them name."""
    named = Counter(label.property for label in majority).most_common(1)[0][0]
    return next(label for label in majority if label.property == named)


def _finding(label: Label) -> JSON:
    """In the form that the judge's rule reads."""
    return {
        "property": label.property,
        "category": label.category.value if label.category is not None else None,
        "kind": label.kind.value if label.kind is not None else None,
        "events": [*sorted({*label.events})],
        "message": label.rationale,
        "propagates": label.propagates,
    }


def _plain(label: Label | None) -> JSON:
    found: JSON = label.model_dump(mode="json") if label is not None else None
    return found
