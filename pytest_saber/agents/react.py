"""The default agent: a plain loop of model replies and tool calls (ReAct), without tricks that change what is measured."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_saber import providers
from pytest_saber.agents import fenced
from pytest_saber.agents.options import AgentOptions
from pytest_saber.errors import UsageError, WorkspaceLost
from pytest_saber.model.events import LimitReached, Message
from pytest_saber.model.evidence import AgentIdentity, Termination, Usage
from pytest_saber.model.ports import (
    AgentFactory,
    AgentResult,
    AgentSession,
    ChatMessage,
    ModelClient,
    ModelReply,
    ModelRequest,
    ToolSpec,
    ToolUse,
)
from pytest_saber.model.task import AgentBrief, Task
from pytest_saber.model.terms import TerminationReason
from pytest_saber.providers.retry import BudgetSpent

PROMPT = """\
You are a coding agent. You work on the user's machine, in a shell that is already in the project's directory.
Do what the user asks with the tools you have. Look before you change things.
When you are done, or cannot go on, answer with a short summary and no tool call."""
SHORT_PROMPT = "You are a coding agent in a shell on the user's machine, in the project's directory."

MOST_INVALID = 3
"""Unusable replies in a row (broken arguments, nothing at all, cut off) that end a run."""
TOOL_FORMATS = ("auto", "native", "fenced")


class ReactAgent:
    """Asks the model, makes the calls it asks for, shows it the results, until it answers or a limit ends the run."""

    def __init__(self, client: ModelClient, identity: AgentIdentity, *, native: bool, result_chars: int = 0) -> None:
        self._client = client
        self._identity = identity
        self._native = native
        self._result_chars = result_chars

    @property
    def identity(self) -> AgentIdentity:
        """The agent `react` with its model, its tool format and the client's details."""
        return self._identity

    def run(self, session: AgentSession) -> AgentResult:
        """Raises InfrastructureFault when the model service fails for good."""
        return _Run(self._client, session, self._native, self._result_chars).perform()


@dataclass(slots=True)
class _Run:
    """The conversation so far. Not thread-safe: one run, one thread."""

    client: ModelClient
    session: AgentSession
    native: bool
    result_chars: int
    """Of a tool's output, both ends together, that the model is shown; 0: all of it."""
    messages: list[ChatMessage] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    invalid: int = 0

    def perform(self) -> AgentResult:
        brief = self.session.brief
        tools = tuple(self.session.tools.specs)
        system = system_prompt(brief, tools, native=self.native)
        self.session.recorder.record(Message("system", system))
        self.messages += [] if self.native else fenced.example(tools)
        self.messages.append(ChatMessage("user", brief.user_prompt))
        try:
            while True:
                result = self._step(system, tools)
                if result is not None:
                    return result
        except WorkspaceLost as lost:
            self.session.recorder.record(LimitReached(lost.reason.value, str(lost)))
            return self._end(TerminationReason.WORKSPACE_LOST, f"{lost.reason.value}: {lost}")

    def _step(self, system: str, tools: tuple[ToolSpec, ...]) -> AgentResult | None:
        """One model reply and what follows from it; the result when the run is over."""
        over = self._limit()
        if over is not None:
            return over
        request = ModelRequest(
            system,
            tuple(self.messages),
            tools if self.native else (),
            seconds=max(1.0, self.session.clock.left()),
        )
        try:
            reply = self.client.complete(request)
        except BudgetSpent:
            if self.session.clock.left() > 0:
                raise
            return self._over(
                TerminationReason.TIME_LIMIT, f"the model was still at work after {self.session.limits.seconds:g} s"
            )
        self.steps += 1
        self.usage += reply.usage
        self.session.spent(reply.usage)
        if not self.native:
            reply = replace(reply, message=replace(reply.message, tool_uses=fenced.tool_uses(reply.message.text, tools)))
        return self._answer(reply)

    def _answer(self, reply: ModelReply) -> AgentResult | None:
        message = reply.message
        if message.text:
            self.session.recorder.record(Message("assistant", message.text))
        match reply.stop:
            case "refusal":
                return self._end(TerminationReason.REFUSED, "the model or its service refused", message.text)
            case "context_overflow":
                return self._over(
                    TerminationReason.CONTEXT_OVERFLOW, reply.details.get("refused", "the model's context is full")
                )
            case "pause":
                self.messages.append(message)
                return None
        if message.tool_uses:
            return self._act(message)
        if reply.stop == "length":
            return self._retry(message, "Your reply was cut off because it was too long. Go on in smaller steps.")
        if not message.text.strip():
            return self._retry(message, "Your reply was empty. Use a tool, or answer in words if you are done.")
        return self._end(TerminationReason.ANSWERED, "", message.text)

    def _act(self, message: ChatMessage) -> AgentResult | None:
        """Make the calls of a turn, in order; every one is answered."""
        spent = self.usage.input_tokens + self.usage.output_tokens
        if spent >= self.session.limits.tokens:
            return self._over(TerminationReason.TOKEN_LIMIT, f"{spent} tokens of {self.session.limits.tokens} used")
        results = []
        broken = 0
        for number, use in enumerate(message.tool_uses, start=1):
            if self.session.clock.left() <= 0:
                return self._time_over()
            if use.arguments is None:
                broken += 1
                results.append(self._broken(use))
                continue
            # Models repeat call ids; the record needs them unique, so it gets its own.
            output = self.session.tools.call(use.name, use.arguments, call_id=f"call_{self.steps}_{number}")
            results.append((use, shortened(output, self.result_chars), False))
        self.messages.append(message)
        if self.native:
            self.messages += [ChatMessage("tool", text, call_id=use.id, is_error=error) for use, text, error in results]
        else:
            self.messages.append(ChatMessage("user", "\n\n".join(f"Output:\n{text}" for _, text, _ in results)))
        if broken < len(results):
            self.invalid = 0
            return None
        return self._count_invalid(f"the arguments of every tool call were broken {MOST_INVALID} times in a row")

    def _broken(self, use: ToolUse) -> tuple[ToolUse, str, bool]:
        self.session.recorder.record(Message("assistant", f"[call of {use.name} with broken arguments]\n{use.raw}"))
        return use, f"error: {use.name}: the arguments are not a JSON object; call the tool again with valid JSON", True

    def _retry(self, message: ChatMessage, advice: str) -> AgentResult | None:
        # Turns must alternate for some models' templates, so an empty reply gets a stand-in.
        self.messages.append(message if message.text.strip() else ChatMessage("assistant", "(no reply)"))
        self.messages.append(ChatMessage("user", advice))
        return self._count_invalid(f"{MOST_INVALID} replies in a row could not be used")

    def _count_invalid(self, detail: str) -> AgentResult | None:
        self.invalid += 1
        return self._over(TerminationReason.INVALID_REPLIES, detail) if self.invalid >= MOST_INVALID else None

    def _limit(self) -> AgentResult | None:
        limits = self.session.limits
        if self.session.clock.left() <= 0:
            return self._time_over()
        if self.steps >= limits.steps:
            return self._over(TerminationReason.STEP_LIMIT, f"{limits.steps} steps used")
        return None

    def _time_over(self) -> AgentResult:
        return self._over(TerminationReason.TIME_LIMIT, f"the run's {self.session.limits.seconds:g} seconds are used up")

    def _over(self, reason: TerminationReason, detail: str) -> AgentResult:
        self.session.recorder.record(LimitReached(reason.value, detail))
        return self._end(reason, detail)

    def _end(self, reason: TerminationReason, detail: str, final: str = "") -> AgentResult:
        return AgentResult(final, Termination(reason, detail), self.usage, self.steps)


def system_prompt(brief: AgentBrief, tools: Sequence[ToolSpec], *, native: bool) -> str:
    """All that the model is told beside the user's request."""
    parts = [PROMPT] if native else [SHORT_PROMPT, fenced.instructions(tools)]
    if brief.system_prompt:
        parts.append(brief.system_prompt.strip())
    parts += [f"# Skill: {name}\n\n{text.strip()}" for name, text in sorted(brief.skills.items())]
    return "\n\n".join(parts)


def shortened(text: str, most: int) -> str:
    """Both ends of a text that is too long for a model with little context."""
    if not most or len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


class ReactFactory:
    """Agents that share one model client."""

    def __init__(self, client: ModelClient, tool_format: str = "auto", details: Mapping[str, str] | None = None) -> None:
        self.client = client
        self._native = client.native_tools if tool_format == "auto" else tool_format == "native"
        described: Mapping[str, str] = getattr(client, "details", {})
        tools = "native" if self._native else "fenced"
        self._identity = AgentIdentity("react", client.model, {**described, "tool_format": tools, **(details or {})})

    @property
    def identity(self) -> AgentIdentity:
        """That of every agent it makes."""
        return self._identity

    def __call__(self, task: Task) -> ReactAgent:  # noqa: ARG002 - the same agent for every task
        """An agent on the session's one model client. `task` makes no difference."""
        result_chars: int = getattr(self.client, "result_chars", 0)
        return ReactAgent(self.client, self._identity, native=self._native, result_chars=result_chars)

    def close(self) -> None:
        """Close the model client."""
        self.client.close()


def create(model: str, options: AgentOptions) -> AgentFactory:
    """The factory for a model string. Raises UsageError."""
    if options.tool_format not in TOOL_FORMATS:
        close = difflib.get_close_matches(options.tool_format, TOOL_FORMATS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise UsageError(f"--saber-tool-format={options.tool_format}: expected auto, native or fenced{hint}")
    if options.args:
        name = next(iter(options.args))
        raise UsageError(
            f"--saber-agent-arg {name}: the react agent takes none; settings of the model are --saber-model-arg {name}=..."
        )
    return ReactFactory(providers.connect(model, options.model), options.tool_format)
