"""The ReAct loop on real tools, with the model scripted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from support.host_workspace import LOSE, HostRun, host_run
from support.values import task

from pytest_saber.agents import AgentOptions, resolve
from pytest_saber.agents.fenced import example
from pytest_saber.agents.react import ReactFactory
from pytest_saber.errors import FaultSource, InfrastructureFault, UsageError
from pytest_saber.model.events import LimitReached, Message, ToolCall, ToolResult
from pytest_saber.model.evidence import Usage
from pytest_saber.model.ports import AgentResult, ChatMessage, ModelReply, ModelRequest, StopReason, ToolUse
from pytest_saber.model.task import Limits, Task
from pytest_saber.model.terms import TerminationReason
from pytest_saber.providers.options import ModelOptions
from pytest_saber.providers.retry import BudgetSpent
from pytest_saber.providers.scripted import ScriptedClient


def say(text: str, stop: StopReason = "end") -> ModelReply:
    return ModelReply(ChatMessage("assistant", text), stop, Usage(100, 10, 5, 1))


def use(*commands: str, text: str = "") -> ModelReply:
    uses = tuple(ToolUse(f"c{number}", "bash", {"command": command}) for number, command in enumerate(commands))
    return ModelReply(ChatMessage("assistant", text, uses), "tool_use", Usage(100, 10, 5, 1))


def broken(raw: str = "{") -> ModelReply:
    return ModelReply(ChatMessage("assistant", "", (ToolUse("c0", "bash", None, raw),)), "tool_use", Usage(100, 10, 5, 1))


class Model(ScriptedClient):
    """A scripted client that keeps what it was asked; a reply that is a fault is raised."""

    def __init__(self, *replies: ModelReply | InfrastructureFault, native_tools: bool = True) -> None:
        super().__init__([say("")], native_tools=native_tools)
        self.script = list(replies)
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        reply = self.script[min(len(self.requests), len(self.script)) - 1]
        if isinstance(reply, InfrastructureFault):
            raise reply
        return reply


class Watch:
    """Time that passes only while the model is at work."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class SlowModel(Model):
    """Takes five seconds for every reply."""

    def __init__(self, watch: Watch, *replies: ModelReply | InfrastructureFault) -> None:
        super().__init__(*replies)
        self.watch = watch

    def complete(self, request: ModelRequest) -> ModelReply:
        self.watch.time += 5
        return super().complete(request)


def play(
    tmp_path: Path, model: Model, given: Task | None = None, *, tool_format: str = "auto", run: HostRun | None = None
) -> tuple[AgentResult, HostRun]:
    given = given or task()
    run = run or host_run(given, tmp_path)
    return ReactFactory(model, tool_format)(given).run(run.session), run


def recorded(run: HostRun) -> list[object]:
    return [event.payload for event in run.writer.events]


def test_it_calls_tools_and_answers(tmp_path: Path) -> None:
    model = Model(use("echo one > f; cat f", text="Let me see."), use("cat f f"), say("It is done."))
    result, run = play(tmp_path, model)
    assert result == AgentResult(
        "It is done.", replace(result.termination, reason=TerminationReason.ANSWERED), Usage(300, 30, 15, 3), steps=3
    )
    assert recorded(run)[1:] == [
        Message("assistant", "Let me see."),
        ToolCall("call_1_1", "bash", {"command": "echo one > f; cat f"}),
        ToolResult("call_1_1", "one\n", 0),
        ToolCall("call_2_1", "bash", {"command": "cat f f"}),
        ToolResult("call_2_1", "one\none\n", 0),
        Message("assistant", "It is done."),
    ]
    assert [message.role for message in model.requests[-1].messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert model.requests[-1].messages[-1].text == "one\none\n"


def test_parallel_calls_run_in_order_and_are_all_answered(tmp_path: Path) -> None:
    model = Model(use("echo a >> log", "echo b >> log", "cat log"), say("Done."))
    _, run = play(tmp_path, model)
    assert run.workspace.commands == ["echo a >> log", "echo b >> log", "cat log"]
    answers = model.requests[1].messages[-3:]
    assert [(message.call_id, message.text) for message in answers] == [("c0", ""), ("c1", ""), ("c2", "a\nb\n")]


def test_ids_that_a_model_repeats_are_unique_in_the_record(tmp_path: Path) -> None:
    _, run = play(tmp_path, Model(use("true"), use("true"), say("Done.")))
    ids = [payload.call_id for payload in recorded(run) if isinstance(payload, ToolCall)]
    assert ids == ["call_1_1", "call_2_1"]


def test_the_prompt_holds_what_the_task_gives_and_no_hint_of_a_test(tmp_path: Path) -> None:
    given = task(prompt="Fix it.", system_prompt="House rules.", skills={"deploy": "Use make."})
    model = Model(say("Done."))
    _, run = play(tmp_path, model, given)
    system = model.requests[0].system
    assert "House rules." in system
    assert "# Skill: deploy\n\nUse make." in system
    assert model.requests[0].messages == (ChatMessage("user", "Fix it."),)
    assert recorded(run)[0] == Message("system", system)
    for word in ("test", "eval", "benchmark", "safe", "harm", "sandbox", "saber", "judge"):
        assert word not in system.lower()


@pytest.mark.parametrize(
    ("reply", "reason", "final"),
    [
        (say("I can't do that.", "refusal"), TerminationReason.REFUSED, "I can't do that."),
        (say("", "refusal"), TerminationReason.REFUSED, ""),
        (say("", "context_overflow"), TerminationReason.CONTEXT_OVERFLOW, ""),
        (say("Done.", "other"), TerminationReason.ANSWERED, "Done."),
    ],
)
def test_stop_reasons_end_the_run(tmp_path: Path, reply: ModelReply, reason: TerminationReason, final: str) -> None:
    result, run = play(tmp_path, Model(use("touch acted"), reply))
    assert (result.termination.reason, result.final_response, result.steps) == (reason, final, 2)
    assert run.workspace.commands == ["touch acted"]


def test_calls_beside_a_refusal_are_not_made(tmp_path: Path) -> None:
    result, run = play(tmp_path, Model(replace(use("touch x"), stop="refusal")))
    assert result.termination.reason is TerminationReason.REFUSED
    assert run.workspace.commands == []


def test_a_pause_goes_on(tmp_path: Path) -> None:
    model = Model(say("Thinking.", "pause"), say("Done."))
    result, _ = play(tmp_path, model)
    assert (result.final_response, result.steps) == ("Done.", 2)
    assert model.requests[1].messages[-1].text == "Thinking."


@pytest.mark.parametrize(
    ("limits", "reply", "reason", "detail", "commands"),
    [
        (Limits(steps=3), use("true"), TerminationReason.STEP_LIMIT, "3 steps used", 3),
        (Limits(tokens=300), use("true"), TerminationReason.TOKEN_LIMIT, "330 tokens of 300 used", 2),
        (Limits(steps=5), say("", "pause"), TerminationReason.STEP_LIMIT, "5 steps used", 0),
    ],
)
def test_limits_end_the_run_and_are_recorded(
    tmp_path: Path, limits: Limits, reply: ModelReply, reason: TerminationReason, detail: str, commands: int
) -> None:
    result, run = play(tmp_path, Model(reply), task(limits=limits))
    assert (result.termination.reason, result.termination.detail) == (reason, detail)
    assert recorded(run)[-1] == LimitReached(reason.value, detail)
    assert len(run.workspace.commands) == commands


def test_an_answer_beyond_the_token_limit_is_still_the_answer(tmp_path: Path) -> None:
    result, _ = play(tmp_path, Model(say("Done.")), task(limits=Limits(tokens=50)))
    assert result.termination.reason is TerminationReason.ANSWERED


def test_the_time_limit_ends_the_run_before_the_next_call(tmp_path: Path) -> None:
    watch, given = Watch(), task(limits=Limits(seconds=12))
    model = SlowModel(watch, use("true", "true"))
    result, run = play(tmp_path, model, given, run=host_run(given, tmp_path, now=watch))
    assert (result.termination.reason, result.termination.detail) == (
        TerminationReason.TIME_LIMIT,
        "the run's 12 seconds are used up",
    )
    assert run.workspace.commands == ["true"] * 4
    assert result.usage.model_calls == 3
    assert [request.seconds for request in model.requests] == [12, 7, 2]


def test_a_model_still_at_work_at_the_end_of_the_time_is_a_limit_of_the_run(tmp_path: Path) -> None:
    spent = BudgetSpent(FaultSource.MODEL_SERVICE, "no answer in time")
    watch, given = Watch(), task(limits=Limits(seconds=8))
    result, _ = play(tmp_path, SlowModel(watch, use("true"), spent), given, run=host_run(given, tmp_path, now=watch))
    assert result.termination.reason is TerminationReason.TIME_LIMIT
    assert result.termination.detail == "the model was still at work after 8 s"


@pytest.mark.parametrize(
    "fault", [InfrastructureFault(FaultSource.QUOTA, "no"), BudgetSpent(FaultSource.MODEL_SERVICE, "hung")]
)
def test_a_fault_of_the_service_is_an_incident(tmp_path: Path, fault: InfrastructureFault) -> None:
    with pytest.raises(InfrastructureFault) as caught:
        play(tmp_path, Model(use("true"), fault))
    assert caught.value is fault


def test_broken_arguments_are_told_to_the_model(tmp_path: Path) -> None:
    model = Model(broken('{"command": '), use("echo fine"), say("Done."))
    result, run = play(tmp_path, model)
    assert result.termination.reason is TerminationReason.ANSWERED
    answer = model.requests[1].messages[-1]
    assert (answer.role, answer.call_id, answer.is_error) == ("tool", "c0", True)
    assert answer.text == "error: bash: the arguments are not a JSON object; call the tool again with valid JSON"
    assert recorded(run)[1] == Message("assistant", '[call of bash with broken arguments]\n{"command": ')


@pytest.mark.parametrize("reply", [broken(), say(""), say("Let me write down everyth", "length")])
def test_replies_that_are_never_usable_end_the_run(tmp_path: Path, reply: ModelReply) -> None:
    model = Model(reply)
    result, run = play(tmp_path, model)
    assert (result.termination.reason, result.steps) == (TerminationReason.INVALID_REPLIES, 3)
    assert isinstance(recorded(run)[-1], LimitReached)
    roles = [message.role for message in model.requests[-1].messages]
    assert all(one != other for one, other in pairwise(roles))  # some models' templates insist


def test_a_good_call_ends_a_row_of_bad_ones(tmp_path: Path) -> None:
    result, _ = play(tmp_path, Model(broken(), broken(), use("true"), broken(), say(""), say("Done.")))
    assert result.termination.reason is TerminationReason.ANSWERED


def test_wrong_tools_are_answered_by_the_toolbox(tmp_path: Path) -> None:
    wrong = ModelReply(ChatMessage("assistant", "", (ToolUse("c0", "rm", {}), ToolUse("c1", "bash", {"cmd": "x"}))), "tool_use")
    model = Model(wrong, say("Done."))
    play(tmp_path, model)
    assert [message.text for message in model.requests[1].messages[-2:]] == [
        "error: there is no tool 'rm'; the tools are: bash",
        "error: bash: missing argument 'command'; unknown argument 'cmd'",
    ]


def test_a_lost_workspace_keeps_the_usage(tmp_path: Path) -> None:
    result, run = play(tmp_path, Model(use(LOSE, "true")))
    assert result.termination.reason is TerminationReason.WORKSPACE_LOST
    assert result.termination.detail == "out_of_memory: the container used 1024 MiB"
    assert result.usage == Usage(100, 10, 5, 1)
    assert recorded(run)[-1] == LimitReached("out_of_memory", "the container used 1024 MiB")


def test_fenced_blocks_are_calls_for_a_model_without_tools(tmp_path: Path) -> None:
    model = Model(say("Look:\n```bash\necho hi\n```"), say("```sh\nfalse\n```"), say("It says hi."), native_tools=False)
    result, run = play(tmp_path, model)
    assert run.workspace.commands == ["echo hi", "false"]
    assert (result.final_response, result.termination.reason) == ("It says hi.", TerminationReason.ANSWERED)
    assert [request.tools for request in model.requests] == [(), (), ()]
    assert "```bash" in model.requests[0].system
    assert model.requests[0].messages == (*example(run.session.tools.specs), ChatMessage("user", "Clear the cache."))
    assert model.requests[1].messages[-1] == ChatMessage("user", "Output:\nhi\n")
    assert model.requests[2].messages[-1] == ChatMessage("user", "Output:\n[exit code 1]")


@pytest.mark.parametrize(
    ("tool_format", "native_tools", "fenced"),
    [("auto", True, False), ("auto", False, True), ("fenced", True, True), ("native", False, False)],
)
def test_the_tool_format_is_chosen_and_told(tmp_path: Path, tool_format: str, native_tools: bool, fenced: bool) -> None:
    model = Model(say("Done."), native_tools=native_tools)
    play(tmp_path, model, tool_format=tool_format)
    assert (model.requests[0].tools == ()) is fenced
    assert ReactFactory(model, tool_format).identity.details["tool_format"] == ("fenced" if fenced else "native")


def test_a_model_with_little_context_is_shown_both_ends_of_an_output(tmp_path: Path) -> None:
    class Small(Model):
        result_chars = 20

    model = Small(use("seq 100"), use("echo short"), say("Done."))
    _, run = play(tmp_path, model)
    assert model.requests[1].messages[-1].text == "1\n2\n3\n4\n5\n\n[272 characters left out]\n98\n99\n100\n"
    assert model.requests[2].messages[-1].text == "short\n"
    assert next(payload.output for payload in recorded(run) if isinstance(payload, ToolResult)).count("\n") == 100


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "replies.json"
    path.write_text(text)
    return f"scripted/{path}"


def test_it_is_the_default_agent_for_any_model(tmp_path: Path) -> None:
    model = script(tmp_path, '[{"calls": [{"tool": "bash", "arguments": {"command": "echo hi"}}]}, {"text": "Done."}]')
    factory = resolve("react", model, AgentOptions())
    assert factory.identity.agent == "react"
    run = host_run(task(), tmp_path)
    assert factory(task()).run(run.session).final_response == "Done."
    assert run.workspace.commands == ["echo hi"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            AgentOptions(tool_format="fence"),
            "--saber-tool-format=fence: expected auto, native or fenced; did you mean 'fenced'?",
        ),
        (
            AgentOptions(args={"temperature": "0"}),
            "--saber-agent-arg temperature: the react agent takes none;"
            " settings of the model are --saber-model-arg temperature=...",
        ),
        (
            AgentOptions(model=ModelOptions(args={"nativ_tools": "true"})),
            "--saber-model-arg nativ_tools=true: did you mean 'native_tools'? scripted knows native_tools",
        ),
    ],
)
def test_wrong_options_are_usage_errors(tmp_path: Path, options: AgentOptions, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve("react", script(tmp_path, '[{"text": "x"}]'), options)
    assert str(caught.value) == message


def test_closing_the_factory_closes_the_client(tmp_path: Path) -> None:
    closed: Sequence[bool] = []

    class Closing(ScriptedClient):
        def close(self) -> None:
            assert isinstance(closed, list)
            closed.append(True)

    ReactFactory(Closing([say("x")])).close()
    assert closed == [True]
