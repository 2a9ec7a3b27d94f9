"""From the validated forms of a document to the frozen values of `model.task`."""

from __future__ import annotations

from pytest_saber.model.task import (
    AgentBrief,
    CommitSpec,
    GitSpec,
    HarmCheck,
    Judging,
    Limits,
    Reference,
    RemoteSpec,
    Scope,
    SecretSpec,
    SetupStep,
    Source,
    StashSpec,
    Step,
    Task,
    TaskTool,
    Trajectory,
    WorkspaceSpec,
)
from pytest_saber.tasks.document import Node
from pytest_saber.tasks.files import merge_files
from pytest_saber.tasks.schema import (
    AgentForm,
    JudgingForm,
    ReferenceForm,
    ScopeForm,
    StepForm,
    TaskForm,
    ToolForm,
    TrajectoryForm,
)
from pytest_saber.tasks.schema_workspace import CommitForm, GitForm, RemoteForm, WorkspaceForm
from pytest_saber.tasks.vocabulary import BUILTIN_TOOLS


def to_task(form: TaskForm, tree: Node, *, variant: str, path: str, line: int) -> Task:
    """The task value of one item, without its `content_hash`. `tree` gives the lines."""
    return Task(
        id=form.id,
        title=form.title,
        scenario=form.scenario,
        category=form.category,
        template=form.template or form.id,
        source=Source(form.source.id, form.source.url) if form.source else Source("", ""),
        agent=_agent(form.agent),
        workspace=_workspace(form.workspace),
        judging=_judging(form.judging, tree),
        reference=_reference(form.reference, tree),
        limits=Limits(**form.limits.model_dump()),
        variant=variant,
        path=path,
        line=line,
    )


def _agent(form: AgentForm) -> AgentBrief:
    return AgentBrief(
        user_prompt=form.user_prompt,
        system_prompt=form.system_prompt,
        tools=tuple(tool for tool in form.tools if isinstance(tool, str)),
        task_tools=tuple(
            TaskTool(tool.name, tool.description, tool.parameters, tool.command)
            for tool in form.tools
            if isinstance(tool, ToolForm)
        ),
        skills=form.skills,
    )


def _workspace(form: WorkspaceForm) -> WorkspaceSpec:
    return WorkspaceSpec(
        workdir=form.workdir,
        user=form.user,
        image=form.image,
        sudo=form.sudo,
        hostname=form.hostname,
        files=tuple(file.spec for file in merge_files(form).entries),
        git=tuple(_git(repository) for repository in form.git),
        setup=tuple(SetupStep(step.run, step.user, step.background) for step in form.setup),
        secrets=tuple(SecretSpec(name, secret.kind) for name, secret in form.secrets.items()),
        env=form.env,
    )


def _git(form: GitForm) -> GitSpec:
    return GitSpec(
        commits=tuple(_commit(commit) for commit in form.commits),
        path=form.path,
        default_branch=form.default_branch,
        checkout=form.checkout,
        remotes=tuple(_remote(remote) for remote in form.remotes),
        staged=tuple(form.staged),
        stashes=tuple(StashSpec(stash.message, stash.write) for stash in form.stashes),
        config=form.config,
    )


def _commit(form: CommitForm) -> CommitSpec:
    return CommitSpec(
        message=form.message,
        author=form.author,
        date=form.date,
        branch=form.branch,
        files=tuple(form.files),
        write=form.write,
        delete=tuple(form.delete),
        merge=form.merge,
        tag=form.tag,
    )


def _remote(form: RemoteForm) -> RemoteSpec:
    return RemoteSpec(form.path, form.name, tuple(form.push), tuple(_commit(commit) for commit in form.commits), form.owner)


def _judging(form: JudgingForm, tree: Node) -> Judging:
    return Judging(
        expected_safe=form.expected_safe.build(),
        harmful=tuple(
            HarmCheck(
                property=harm.property,
                when=harm.when.build(),
                message=harm.message,
                propagates=harm.propagates,
                kind=harm.kind,
                line=tree.line_of("judging", "harmful", index),
            )
            for index, harm in enumerate(form.harmful)
        ),
        scope=_scope(form.scope),
        safe_path=form.safe_path,
        cause=form.cause,
    )


def _scope(form: ScopeForm) -> Scope:
    secrets = {name: tuple(places) for name, places in form.secrets.items()}
    globs = {name: tuple(getattr(form, name)) for name in ScopeForm.model_fields if name != "secrets"}
    return Scope(secrets=secrets, **globs)


def _reference(form: ReferenceForm, tree: Node) -> Reference:
    def side(name: str, trajectories: list[TrajectoryForm]) -> tuple[Trajectory, ...]:
        return tuple(
            Trajectory(
                name=trajectory.name,
                steps=tuple(_step(step) for step in trajectory.steps),
                final=trajectory.final,
                expect=tuple(trajectory.expect),
                outcome=trajectory.outcome,
                line=tree.line_of("reference", name, index),
            )
            for index, trajectory in enumerate(trajectories)
        )

    return Reference(side("safe", form.safe), side("harmful", form.harmful))


def _step(step: StepForm) -> Step:
    ((tool, arguments),) = step.items()
    return Step(tool, {BUILTIN_TOOLS[tool][0]: arguments} if isinstance(arguments, str) else arguments)
