"""The plugin's settings: one table from which options, ini values, environment variables, `--help` and docs are made.

Imports nothing but pytest, what pytest itself needs, and the standard library, as it is loaded with every pytest run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from pytest_saber.pytest_glue import unknown


class Kind(StrEnum):
    """How the text of a setting is read."""

    TEXT = "text"
    COUNT = "count"
    FLAG = "flag"
    LINES = "lines"
    WORDS = "words"
    NAMES = "names"
    """Repeatable as an option; words of one text elsewhere, so that one name needs no list in a typed file."""


class Group(StrEnum):
    """Who reads a setting: the runs, the gate's policy, or the reports."""

    RUN = "run"
    GATE = "gate"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Setting:
    """`name` is the ini name without `saber_`; the option is `--saber-NAME` with dashes, the variable `SABER_NAME`."""

    name: str
    group: Group
    help: str
    kind: Kind = Kind.TEXT
    metavar: str = "TEXT"
    default: str = ""
    choices: tuple[str, ...] = ()
    ini_only: bool = False
    layered: bool = False
    """Whether what the active value overrides is kept too (`Settings.overridden`), and has to be readable."""

    @property
    def option(self) -> str:
        """Of the command line."""
        return f"--saber-{self.name.replace('_', '-')}"

    @property
    def ini(self) -> str:
        """In pytest's configuration file."""
        return f"saber_{self.name}"

    @property
    def variable(self) -> str:
        """In the environment."""
        return f"SABER_{self.name.upper()}"


INI_TYPES: Final[Mapping[Kind, Literal["linelist", "args"]]] = {Kind.LINES: "linelist", Kind.WORDS: "args"}

MOST = 1000
"""Largest count that a setting accepts: beyond it, a typing error."""


RULE_KINDS: Final = ("attempts", "reads", "semantic")

JOBS: Final = str(min(4, 2 * (os.cpu_count() or 1)))
"""Runs at once when nothing is said: two cores saturate near four."""


TABLE: Final[tuple[Setting, ...]] = (
    Setting(
        "tasks",
        Group.RUN,
        "files and folders, relative to the root directory, whose YAML task documents are collected",
        Kind.WORDS,
        "PATH",
        "tasks",
        ini_only=True,
    ),
    Setting(
        "model",
        Group.RUN,
        "the model under test: openai/NAME, anthropic/NAME, local/NAME, or reference/safe, reference/harmful, reference/none; "
        "repeatable, to compare several in one session",
        Kind.NAMES,
        "PROVIDER/NAME",
    ),
    Setting(
        "agent",
        Group.RUN,
        "the agent harness: react, the name of an installed one, or package.module:attribute",
        default="react",
    ),
    Setting("base_url", Group.RUN, "address of an OpenAI- or Anthropic-compatible server", metavar="URL"),
    Setting("model_arg", Group.RUN, "a setting of the model client, repeatable", Kind.LINES, "KEY=VALUE"),
    Setting("agent_arg", Group.RUN, "a setting of the agent, repeatable", Kind.LINES, "KEY=VALUE"),
    Setting(
        "tool_format",
        Group.RUN,
        "how the react agent offers its tools: the service's own tool calls, or fenced shell blocks in text",
        metavar="FORMAT",
        default="auto",
        choices=("auto", "native", "fenced"),
    ),
    Setting("epochs", Group.RUN, "runs of each task variant", Kind.COUNT, "K", "1"),
    Setting("jobs", Group.RUN, "runs at once in this process; xdist workers run one each", Kind.COUNT, "N", JOBS),
    Setting(
        "rules",
        Group.RUN,
        "kinds of finding that count beside effects, separated by commas: attempts, reads, semantic; or none",
        metavar="KINDS",
        default="attempts,reads,semantic",
    ),
    Setting(
        "judge",
        Group.RUN,
        "the model of the semantic judge, which labels every run beside the rules: openai/NAME or anthropic/NAME "
        "[default: the rules alone]",
        metavar="PROVIDER/NAME",
    ),
    Setting(
        "judge_votes", Group.RUN, "labels that the semantic judge gives each run; the majority counts", metavar="K", default="1"
    ),
    Setting("judge_base_url", Group.RUN, "address of the semantic judge's server", metavar="URL"),
    Setting("judge_arg", Group.RUN, "a setting of the semantic judge's model client, repeatable", Kind.LINES, "KEY=VALUE"),
    Setting("image", Group.RUN, "workspace image to use instead of the one this package builds", metavar="IMAGE"),
    Setting(
        "runs_dir", Group.RUN, "folder of the evidence, with a folder for each session", metavar="DIR", default=".saber/runs"
    ),
    Setting("session", Group.RUN, "name of the session [default: date, time and random digits]", metavar="NAME"),
    Setting(
        "resume",
        Group.RUN,
        "go on with the session named by --saber-session, else the newest: keep its finished runs, repeat what is missing",
        Kind.FLAG,
    ),
    Setting(
        "policy",
        Group.GATE,
        "strict: each harmful run fails. gate: only the gate's rules fail. report: harm never fails the session. "
        "Default: gate when a limit, a required task or a baseline is set, else strict",
        metavar="POLICY",
        choices=("strict", "gate", "report"),
        layered=True,
    ),
    Setting("max_hsr", Group.GATE, "highest harmful safety-violation rate (HSR), 0 to 1 or in percent", metavar="RATE"),
    Setting("max_lrr", Group.GATE, "highest late refusal rate (LRR)", metavar="RATE"),
    Setting("max_phr", Group.GATE, "highest rate of harm that propagates (PHR)", metavar="RATE"),
    Setting("max_cpr", Group.GATE, "highest rate of harm by composition (CPR)", metavar="RATE"),
    Setting("min_scr", Group.GATE, "lowest safe completion rate (SCR)", metavar="RATE"),
    Setting("max_error_rate", Group.GATE, "highest rate of runs without a verdict", metavar="RATE"),
    Setting("min_effective", Group.GATE, "lowest number of effective runs", metavar="N"),
    Setting(
        "max_harmful_epochs",
        Group.GATE,
        "highest number of harmful epochs of any one task: with 1, a task fails at 2 of its K epochs",
        metavar="N",
    ),
    Setting(
        "limits",
        Group.GATE,
        "a limit of a slice, repeatable: max_hsr[A/persistence]=0, max_phr[template:NAME]=10%%, max_hsr[task:ID]=0; replaces "
        "all limits of the variable and the ini value",
        Kind.LINES,
        "LIMIT",
    ),
    Setting("required", Group.GATE, "tasks that must have a verdict, by id or id[variant], repeatable", Kind.WORDS, "TASKS"),
    Setting(
        "reading",
        Group.GATE,
        "point: a limit is compared with the rate. confident: with the rate's 95 %% interval",
        metavar="READING",
        choices=("point", "confident"),
    ),
    Setting("tolerance", Group.GATE, "regression of HSR against the baseline that is accepted", metavar="RATE"),
    Setting("alpha", Group.GATE, "level of the regression test", metavar="LEVEL"),
    Setting(
        "stop_when_decided",
        Group.GATE,
        "run in random order, and start no further run once the gate's decision is certain or a sequential test has made it",
        Kind.FLAG,
    ),
    Setting(
        "stop_level",
        Group.GATE,
        "level of that test: the chance that its decision differs from the whole session's; 0: stop on certainty alone "
        "[default: 0.05]",
        metavar="LEVEL",
    ),
    Setting("seed", Group.GATE, "of that order [default: the session's name]", metavar="TEXT"),
    Setting("baseline", Group.GATE, "compare with this baseline file", metavar="FILE"),
    Setting("update_baseline", Group.GATE, "write the baseline file from this session instead of comparing", Kind.FLAG),
    Setting(
        "shard",
        Group.RUN,
        "run only the I-th of N parts of the suite; `pytest-saber merge` joins their results and decides about the whole",
        metavar="I/N",
    ),
    Setting("json", Group.REPORT, "write the results as JSON", metavar="FILE"),
    Setting("markdown", Group.REPORT, "write the results as Markdown", metavar="FILE"),
)


@dataclass(frozen=True, slots=True)
class Value:
    """A setting's active text and where it comes from. `text` has a line for each element of a list."""

    setting: Setting
    text: str
    origin: str

    @property
    def is_default(self) -> bool:
        """Whether nobody set it."""
        return self.origin == "default"

    @property
    def lines(self) -> tuple[str, ...]:
        """The elements of a list, without empty ones."""
        return tuple(line.strip() for line in self.text.splitlines() if line.strip())

    @property
    def count(self) -> int:
        """Of a setting of the kind COUNT, which `resolve` has checked."""
        return int(self.text)

    @property
    def flag(self) -> bool:
        """Of a setting of the kind FLAG."""
        return self.text == "true"

    def path(self, config: pytest.Config) -> Path:
        """Relative to where pytest was started when a person typed it, to the root directory when it is configured."""
        configured = self.is_default or self.origin.startswith("ini ")
        return (config.rootpath if configured else config.invocation_params.dir) / self.text


def add_options(parser: pytest.Parser) -> None:
    """Declare every setting as option and ini value."""
    group = parser.getgroup("saber", "operational safety of coding agents (pytest-saber)")
    for setting in TABLE:
        text = f"{setting.help} [default: {setting.default}]" if setting.default else setting.help
        parser.addini(setting.ini, text.replace("%%", "%"), type=INI_TYPES.get(setting.kind, "string"), default=None)
        if setting.ini_only:
            continue
        shape: dict[str, Any] = {"dest": setting.ini, "default": None, "help": text}
        if setting.kind is Kind.FLAG:
            shape |= {"action": "store_const", "const": "true"}
        elif setting.kind in INI_TYPES or setting.kind is Kind.NAMES or setting.layered:
            shape |= {"action": "append", "metavar": setting.metavar}
        else:
            shape |= {"metavar": setting.metavar}
        group.addoption(setting.option, **shape)


VARIABLES: Final = tuple(setting.variable for setting in TABLE if not setting.ini_only)
"""Of the environment."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The active value of every setting, by name."""

    values: Mapping[str, Value]
    overridden: Mapping[str, Value] = field(default_factory=dict)
    """Of layered settings: the value that would be active if the active one had not been set, where there is one."""

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def text(self, name: str) -> str:
        """The active text of a setting; KeyError for an unknown name."""
        return self.values[name].text

    def of(self, group: Group) -> list[Value]:
        """The values of one group, in the order of the table."""
        return [value for value in self.values.values() if value.setting.group is group]

    def conditions(self) -> dict[str, str]:
        """What outcomes depend on and shards must have in common, besides the agent's identity and the tasks."""
        names = ("model", "agent", "tool_format", "epochs", "rules", "judge", "judge_votes", "image")
        return {name: ", ".join(self[name].lines) for name in names}

    def for_policy(self) -> dict[str, tuple[str, str]]:
        """What the gate's policy reads: full name to (text, origin), only what was set."""
        return {value.setting.ini: (value.text, value.origin) for value in self.of(Group.GATE) if not value.is_default}

    def overridden_policy(self) -> dict[str, tuple[str, str]]:
        """What `for_policy` would have in place of values that override others: the policy, if that."""
        return {value.setting.ini: (value.text, value.origin) for value in self.overridden.values()}


def resolve(config: pytest.Config, environ: Mapping[str, str]) -> Settings:
    """The active settings: option over environment over ini over default.

    Raises pytest.UsageError naming every value that cannot be read.
    """
    problems = unknown.in_files(config, [setting.ini for setting in TABLE])
    values: dict[str, Value] = {}
    overridden: dict[str, Value] = {}
    for setting in TABLE:
        given = _given(setting, config, environ)
        values[setting.name] = given[0]
        if setting.layered and len(given) > 1 and not given[1].is_default:
            overridden[setting.name] = given[1]
        for value in given if setting.layered else given[:1]:
            problem = _problem(value)
            if problem:
                problems.append(f"{value.origin}: {problem}")
    problems += _contradictions(values)
    if problems:
        raise pytest.UsageError(*problems)
    return Settings(values, overridden)


def check_environment(environ: Mapping[str, str]) -> None:
    """Raises pytest.UsageError naming every variable that is meant for a setting and sets none.

    Only for sessions with a task: variables are no configuration of one project, as files are.
    """
    file_only = [setting.ini for setting in TABLE if setting.ini_only]
    problems = unknown.in_environment(environ, VARIABLES, file_only=file_only)
    if problems:
        raise pytest.UsageError(*problems)


def _contradictions(values: Mapping[str, Value]) -> list[str]:
    """Models that are named twice, and why a session cannot make the baseline that it is asked for."""
    model, update = values["model"], values["update_baseline"]
    twice = [name for name in dict.fromkeys(model.lines) if model.lines.count(name) > 1]
    problems = [f"{model.origin}: {name} is named twice; --saber-epochs=2 runs it twice" for name in twice]
    if not update.flag:
        return problems
    problems += [] if values["baseline"].text else [f"{update.origin}: name the file to write with --saber-baseline=FILE"]
    if len(model.lines) > 1:
        problems.append(
            f"{update.origin}: a baseline is made of one agent, and {model.origin} names {len(model.lines)} models: "
            f"{', '.join(model.lines)}; make one of each, in sessions of their own"
        )
    if values["stop_when_decided"].flag:
        problems.append(f"{update.origin}: a baseline is made of a whole session; leave out --saber-stop-when-decided")
    if values["shard"].text:
        problems.append(
            f"{update.origin}: a baseline is made of a whole suite, and a shard is a part; make it of all shards' JSON reports "
            "with `pytest-saber baseline from-json`"
        )
    return problems


def kinds(text: str) -> list[str]:
    """The kinds of finding that `--saber-rules` names beside effects, which always count."""
    return [kind.strip() for kind in text.split(",") if kind.strip() not in ("", "none", "effects")]


def _given(setting: Setting, config: pytest.Config, environ: Mapping[str, str]) -> list[Value]:
    """The active value first, then those that it overrides; the default last."""
    values = []
    if not setting.ini_only:
        given = config.getoption(setting.ini)
        if given is not None:
            # Of an option that holds one value the last one counts.
            texts = reversed(given) if setting.layered else [_text(setting, given)]
            values += [Value(setting, text, setting.option) for text in texts]
        if environ.get(setting.variable):
            values.append(Value(setting, _text(setting, environ[setting.variable]), f"env {setting.variable}"))
    ini = config.getini(setting.ini)
    if ini:
        values.append(Value(setting, _text(setting, ini), f"ini {setting.ini}"))
    return [*values, Value(setting, setting.default, "default")]


def _text(setting: Setting, given: str | list[str]) -> str:
    if isinstance(given, list):
        return "\n".join(given)
    return "\n".join(given.split()) if setting.kind is Kind.NAMES else given


def _problem(value: Value) -> str:
    """Why the text of a setting cannot be used, or nothing."""
    setting, text = value.setting, value.text
    if not text.strip() and value.origin == setting.option:
        # Such as --saber-baseline=$BASELINE with the variable unset: the rule would vanish without a word.
        return "the value is empty; leave the option out where it is not wanted"
    if setting.choices and text and text not in setting.choices:
        return f"{text!r} is not one of {', '.join(setting.choices)}{unknown.hint(text, setting.choices)}"
    if setting.kind is Kind.COUNT and not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST):
        return f"{text!r} is not a whole number from 1 to {MOST}"
    if setting.kind is Kind.FLAG and text not in ("", "true", "false"):
        return f"{text!r} is neither true nor false"
    if setting.metavar == "KINDS":
        others = [kind for kind in kinds(text) if kind not in RULE_KINDS]
        if others:
            return f"{others[0]!r} is not one of {', '.join(RULE_KINDS)}{unknown.hint(others[0], RULE_KINDS)}"
    if setting.metavar == "I/N" and text:
        match = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text)
        if match is None or int(match[1]) > int(match[2]):
            return f"{text!r} is not a shard I/N, such as 1/4, with I from 1 to N"
    if setting.metavar == "KEY=VALUE":
        bad = [line for line in value.lines if not line.partition("=")[0].strip() or "=" not in line]
        if bad:
            return f"{bad[0]!r} is not KEY=VALUE"
    return ""
