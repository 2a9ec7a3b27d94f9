"""The task format, version 1: one strict model for each mapping of the document.

Docstrings and descriptions are what an author reads, in an editor and in `docs/task-format.md`. Defaults of limits come from
`model.task.Limits`, so that they are written once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model, field_validator

from pytest_saber.model.task import Limits
from pytest_saber.model.terms import Category, Cause, Outcome, Scenario
from pytest_saber.tasks.fields import (
    Form,
    HostGlob,
    Known,
    PathGlob,
    PathTable,
    Regex,
    RepoRef,
    Slug,
    Snake,
    Text,
    Url,
    clip,
    refuse,
)
from pytest_saber.tasks.schema_checks import CheckForm
from pytest_saber.tasks.schema_workspace import WorkspaceForm
from pytest_saber.tasks.vocabulary import BUILTIN_TOOLS

VERSION = 1
MAX_VARIANTS = 64

Json: TypeAlias = Any


class SourceForm(Form):
    """The public incident that the task is made of."""

    id: Text = Field(description="Id in the table of incidents, such as `I007`.")
    url: Url = Field(description="Where it was reported.")


class ToolForm(Form):
    """A tool of the task's own. Each argument reaches the command as an environment variable `ARG_<NAME>`."""

    name: Snake = Field(description="Name of the tool.")
    description: Text = Field(description="What the agent is told about it.")
    parameters: dict[str, Json] = Field(
        default={"type": "object", "properties": {}}, description="JSON Schema of the arguments, of type `object`."
    )
    command: Text = Field(description="Shell command run in the workspace; reads `$ARG_<NAME>`.")

    @field_validator("parameters")
    @classmethod
    def _object_schema(cls, schema: dict[str, Json]) -> dict[str, Json]:
        properties = schema.get("properties", {})
        if schema.get("type") != "object" or not isinstance(properties, dict):
            raise refuse("`parameters` must be a JSON Schema with `type: object` and a mapping `properties`")
        names = [name.upper() for name in properties]
        for name in properties:
            if not (name.isascii() and name.isidentifier()):
                raise refuse(
                    f"parameter {name!r} cannot be the name of an environment variable; use letters, digits, underscores"
                )
            if names.count(name.upper()) > 1:
                raise refuse(f"two parameters share the environment variable ARG_{name.upper()}")
        required = schema.get("required", [])
        if not isinstance(required, list) or any(name not in properties for name in required):
            raise refuse("`required` must list names of `properties`")
        return schema


BuiltinTool: TypeAlias = Annotated[str, Known("tool", BUILTIN_TOOLS)]
AgentTool: TypeAlias = Annotated[
    Annotated[BuiltinTool, Tag("builtin")] | Annotated[ToolForm, Tag("own")],
    Discriminator(lambda value: "builtin" if isinstance(value, str) else "own"),
]


class AgentForm(Form):
    """All that the agent under test is told."""

    system_prompt: str = Field(default="", description="System prompt; default: the agent's own.")
    user_prompt: Text = Field(description="The request, as a colleague would type it.")
    tools: list[AgentTool] = Field(
        default=["bash"],
        description="Names of built-in tools (" + ", ".join(BUILTIN_TOOLS) + "), or tools of the task's own.",
        min_length=1,
    )
    skills: dict[Slug, Text] = Field(default={}, description="Name to Markdown text, given beside the system prompt.")


class LimitsForm(Form):
    """Bounds of a run."""

    steps: int = Field(default=Limits().steps, ge=1, le=1000, description="Turns of the agent.")
    seconds: float = Field(default=Limits().seconds, gt=0, le=86_400, description="Time of the whole run.")
    command_seconds: float = Field(default=Limits().command_seconds, gt=0, le=3600, description="Time of one tool call.")
    tokens: int = Field(default=Limits().tokens, ge=1, description="Tokens of the whole run.")
    output_bytes: int = Field(
        default=Limits().output_bytes, ge=256, le=1 << 20, description="Output of one tool call, in bytes."
    )
    memory_mb: int = Field(default=Limits().memory_mb, ge=64, le=65_536, description="Memory of the workspace, in MiB.")
    cpus: float = Field(default=Limits().cpus, gt=0, le=64, description="Processors.")
    pids: int = Field(default=Limits().pids, ge=16, le=32_768, description="Processes and threads.")
    disk_mb: int = Field(default=Limits().disk_mb, ge=16, le=65_536, description="Disk that the run may use, in MiB.")
    file_mb: int = Field(default=Limits().file_mb, ge=1, le=65_536, description="Size of one file, in MiB.")


class ScopeForm(Form):
    """What the request allows beyond the default: creating paths in the work directory, editing tracked files whose content the
    repository still holds, and anything under /tmp and in caches."""

    create: list[PathGlob] = Field(default=[], description="Paths that may be created.")
    modify: list[PathGlob] = Field(
        default=[],
        description="Paths that may be changed. Most of a file's content still must not be lost, nor pins, or the cases and "
        "assertions of its tests.",
    )
    delete: list[PathGlob] = Field(default=[], description="Paths that may be deleted.")
    permissions: list[PathGlob] = Field(default=[], description="Paths whose rights may be widened.")
    persist: list[PathGlob] = Field(
        default=[], description="Start-up files, cron entries, hooks, agent settings that may be written."
    )
    controls: list[PathGlob] = Field(
        default=[],
        description="CI, test, lint and scanner settings that may be changed, also weakened; no code of strangers that the "
        "request does not name.",
    )
    rewrite: list[RepoRef] = Field(
        default=[], description="`REPO:REF` globs whose history may be rewritten or which may be deleted."
    )
    push: list[RepoRef] = Field(default=[], description="`REPO:REF` globs of remote refs that may be created or moved forward.")
    kill: list[Regex] = Field(default=[], description="Regular expressions on command lines of processes that may be ended.")
    hosts: list[HostGlob] = Field(default=[], description="Host globs that may be contacted; loopback always may.")
    secrets: dict[Snake, list[Text]] = Field(
        default={}, description="Secret to places that its value may reach: path globs, or sinks of `secret_seen`."
    )
    tables: list[PathTable] = Field(default=[], description="`PATH:TABLE` globs whose rows or schema may be lost.")
    commands: list[Text] = Field(default=[], description="Programs that the request names although a rule would object.")


class HarmForm(Form):
    """One harmful result of the task's own, beside the safety properties that hold for every task."""

    property: Snake = Field(description="Safety property that is violated, such as `deletion` or `secret_leak`.")
    when: CheckForm = Field(description="Holds when the harm was done.")
    message: Text = Field(description="One sentence that a release engineer understands.")
    propagates: bool = Field(default=False, description="Whether the effect outlives or leaves the workspace.")
    kind: Literal["effect", "attempt", "read", "advice"] = Field(default="effect", description="What was observed.")


class JudgingForm(Form):
    """The half that never enters the workspace."""

    scope: ScopeForm = Field(default=ScopeForm(), description="What the request allows.")
    harmful: list[HarmForm] = Field(description="What is harmful here.", min_length=1)
    expected_safe: CheckForm = Field(description="Holds when the request is done.")
    safe_path: Text | None = Field(
        default=None, description="How the request can be met safely. Null: no safe way exists, so that refusing is justified."
    )
    cause: Annotated[Cause, Field(strict=False)] | None = Field(
        default=None, description="Cause of harm where the rules cannot tell it from the trace."
    )


def _one_call(value: Any) -> Any:
    if isinstance(value, str):
        raise refuse(f"a step is a mapping with a tool's name as its key; write {{bash: {clip(value, 40)}}}")
    if isinstance(value, dict) and len(value) != 1:
        raise refuse(f"a step is one tool call with one key, the tool's name; this has {clip(list(value))}")
    return value


def _step_schema(schema: dict[str, Any]) -> None:
    schema["minProperties"] = schema["maxProperties"] = 1
    schema["examples"] = [{"bash": "ls -la"}, {"write_file": {"path": "notes.md", "content": "..."}}]


Arguments: TypeAlias = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, Json], Tag("mapping")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "mapping"),
]
StepForm: TypeAlias = Annotated[
    dict[str, Arguments],
    BeforeValidator(_one_call),
    Field(
        description="One tool call: tool name to its arguments. A bare text is the `command` of bash, the `path` of read_file.",
        json_schema_extra=_step_schema,
    ),
]


class TrajectoryForm(Form):
    """A scripted run, replayed by `pytest-saber check` and `--saber-model=reference/...`."""

    name: Slug = Field(description="Name, unique within its list.")
    steps: list[StepForm] = Field(default=[], description="Tool calls.")
    final: Text = Field(description="Final answer of the agent.")
    expect: list[Snake] = Field(default=[], description="Properties that a harmful trajectory must be found to violate.")
    outcome: Annotated[Outcome, Field(strict=False)] | None = Field(
        default=None, description="Default: `safe_completion` in the list `safe`, any harmful outcome in the list `harmful`."
    )


class ReferenceForm(Form):
    """Scripted trajectories that prove that the task can be done safely, and that the harm is seen."""

    safe: list[TrajectoryForm] = Field(description="Trajectories without harm.", min_length=1)
    harmful: list[TrajectoryForm] = Field(description="Trajectories with harm.", min_length=1)


def _parameter(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise refuse(f"{clip(value)} is neither text nor a whole number; quote it")
    return value


Parameters: TypeAlias = dict[Snake, Annotated[str | int, BeforeValidator(_parameter)]]


class VariantForm(Form):
    """One parameter set. Each variant becomes an item `id[variant]`."""

    parameters: Parameters = Field(default={}, description="Parameters of this variant; they replace the task's.")
    override: dict[str, Json] = Field(
        default={}, description="Merged into the document: mappings key by key, lists and scalars replace, null removes a key."
    )

    @field_validator("override")
    @classmethod
    def _overridable(cls, override: dict[str, Json]) -> dict[str, Json]:
        for key in override:
            if key in ("saber", "id", "parameters", "variants"):
                raise refuse(f"a variant cannot override `{key}`")
        return override


def _version(value: Any) -> Any:
    if isinstance(value, bool | float):  # both compare equal to 1
        raise refuse(str(value))
    return value


class TaskForm(Form):
    """A task: one document. Keys up to `limits` are the agent-facing half, the others never enter the workspace."""

    saber: Annotated[Literal[1], BeforeValidator(_version)] = Field(description="Version of the format: 1.")
    id: Slug = Field(description="Name of the task, unique in the suite.")
    title: Text = Field(description="One line for people; the agent never sees it.")
    scenario: Annotated[Scenario, Field(strict=False)] = Field(
        description="A: instructions embedded in content. B: a risky way the agent chooses. C: a hazard in the context."
    )
    category: Annotated[Category, Field(strict=False)] = Field(description="Kind of harm that the task makes possible.")
    template: Slug | None = Field(default=None, description="Tasks of one template are not independent; default: `id`.")
    source: SourceForm | None = Field(default=None, description="The public incident that the task is made of.")
    parameters: Parameters = Field(default={}, description="Values for `{{param:NAME}}` in any text and any key below.")
    agent: AgentForm = Field(description="All that the agent under test is told.")
    workspace: WorkspaceForm = Field(description="The sandboxed project.")
    limits: LimitsForm = Field(default=LimitsForm(), description="Bounds of a run.")
    judging: JudgingForm = Field(description="How a run is judged.")
    reference: ReferenceForm = Field(description="Scripted trajectories.")
    variants: dict[Slug, VariantForm] = Field(
        default={},
        description="Name to variant. Without it the document is the only item; with it only the listed ones are.",
        min_length=1,
        max_length=MAX_VARIANTS,
    )


_EXPANSION: dict[str, Any] = {
    name: (field.annotation, field) for name, field in TaskForm.model_fields.items() if name in ("parameters", "variants")
}
ExpansionForm = create_model("ExpansionForm", __base__=Form, **_EXPANSION)
"""What must be sound before a document can be expanded into its items."""
