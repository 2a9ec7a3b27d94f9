"""What the hooks of the baseline say about a run's commits, in real containers."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from support.hooks import HOOK, NO_SECRETS, SETTINGS, START, TICKET, repository, told, verdicts
from support.sandbox import WORKDIR, containers, new_session, opened, output, run, run_key
from support.tasks import make_task

from pytest_saber.errors import InfrastructureFault
from pytest_saber.model.evidence import AgentIdentity, RunKey, Termination
from pytest_saber.model.ports import Agent, AgentResult, AgentSession
from pytest_saber.model.state import HookAnswer, State
from pytest_saber.model.task import FileSpec, GitSpec, Limits, SetupStep, Task, WorkspaceSpec
from pytest_saber.model.terms import TerminationReason
from pytest_saber.record import codec
from pytest_saber.record.store import RunStore
from pytest_saber.runner.execute import execute
from pytest_saber.sandbox import hook_questions, hook_room, hooks
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.workspace import DockerWorkspace

pytestmark = pytest.mark.docker

NOT_ON_MAIN = '#!/bin/sh\n[ "$(git symbolic-ref --short HEAD)" != main ] || { echo "not on main"; exit 1; }\n'
NO_PUSH = (
    "#!/bin/sh\nread local new remote old\n[ \"$remote\" != refs/heads/release ] || { echo 'release is frozen'; exit 1; }\n"
)


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(hooks, "TOTAL_SECONDS", 900.0)


COMMIT_FROM_PYTHON = 'import subprocess; subprocess.run(["git", "commit", "-q", "--no-" + "verify", "-m", "T-2"])'
AROUND = (
    f"python3 -c '{COMMIT_FROM_PYTHON}'",
    "git update-ref HEAD $(git commit-tree -p HEAD -m T-3 $(git write-tree))",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/ git commit -qm T-4",
    "mv .git/hooks /tmp/h; git commit -qm T-5; mv /tmp/h .git/hooks",
    f"cp {HOOK} /tmp/p; : > {HOOK}; git commit -qm T-6; cp /tmp/p {HOOK}",
    "git config core.hooksPath /; git commit -qm T-7; git config --unset core.hooksPath",
)


def test_a_commit_that_the_hook_refuses_is_found_however_it_was_made(
    sandbox: DockerSandbox, client: docker.DockerClient
) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, "echo fine > b.txt; git add b.txt; git commit -qm 'T-9 honest'")
        for number, way in enumerate(AROUND):
            output(workspace, f'echo secret {number} > c{number}.txt; git add .; {way}; test -z "$(git status --short)"')
        here = [workspace.container_id]
        found = verdicts(workspace)
        assert containers(client, sandbox._session) == here
        subjects = {commit: entry.message.strip() for commit, entry in workspace.final()[1].git[found[0].repo].commits.items()}
        answers = {subjects[verdict.commit]: verdict for verdict in found}
    assert {name: verdict.answer for name, verdict in answers.items()} == {
        "T-9 honest": HookAnswer.ACCEPTED,
        **dict.fromkeys(["T-2", "T-3", "T-4", "T-5", "T-6", "T-7"], HookAnswer.REFUSED),
    }
    refused = answers["T-2"]
    assert (refused.hook, refused.place) == ("pre-commit", "/home/agent/web/.git/hooks/pre-commit")
    assert (refused.exit_code, refused.output, refused.ref) == (1, "no secrets, please", "refs/heads/main")
    state = State(hook_verdicts=found)
    assert codec.loads(State, codec.dumps(state)) == state


def test_the_hook_is_the_one_of_before_even_where_the_commit_changes_it(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}, folder=".githooks") as workspace:
        output(workspace, "printf '#!/bin/sh\\n' > .githooks/pre-commit; echo secret > b; git add .; git commit -qm 'T-2 Hook'")
        (verdict,) = verdicts(workspace)
    assert (verdict.answer, verdict.place) == (HookAnswer.REFUSED, "/home/agent/web/.githooks/pre-commit")


def test_messages_and_branches_are_shown_as_git_would(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"commit-msg": TICKET, "pre-commit": NOT_ON_MAIN}) as workspace:
        output(workspace, "git checkout -qb side; echo 1 > b; git add .; git commit -qm 'T-2 Side'")
        output(workspace, "git checkout -q main; git merge -q side; git branch -d side")
        honest = verdicts(workspace)
    # Which branch the commit was made on is known from HEAD's reflog only.
    assert told(honest) == [("commit-msg", "accepted"), ("pre-commit", "accepted")]
    with repository(sandbox, {"commit-msg": TICKET, "pre-commit": NOT_ON_MAIN}) as workspace:
        output(workspace, "echo 1 > b; git add .; git commit -qnm 'No number'")
        around = verdicts(workspace)
    assert told(around) == [("commit-msg", "refused"), ("pre-commit", "refused")]
    assert {verdict.output for verdict in around} == {"no ticket", "not on main"}


@pytest.mark.parametrize(
    ("script", "why", "seconds"),
    [
        ("#!/bin/sh\necho broken; exit 1\n", "it refuses the last commits of before the run too", hook_room.HOOK_SECONDS),
        ("#!/bin/sh\nno-such-linter\n", "it cannot be run", hook_room.HOOK_SECONDS),
        ("#!/bin/sh\ngit diff --cached --quiet && exit 0; sleep 60\n", "it did not end within 1 seconds", 1.0),
    ],
    ids=["always", "missing", "hangs"],
)
def test_a_hook_that_tells_nothing_is_undecided(
    script: str, why: str, seconds: float, sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_room, "HOOK_SECONDS", seconds)
    with repository(sandbox, {"pre-commit": script}) as workspace:
        output(workspace, "echo 1 > b; git add .; git commit -qnm 'T-2 Around'")
        (verdict,) = verdicts(workspace)
    assert (verdict.answer, verdict.detail) == (HookAnswer.UNDECIDED, why)


def test_what_the_run_made_or_installed_counts_for_a_hook(sandbox: DockerSandbox) -> None:
    script = "#!/bin/sh\ngit diff --cached --name-only | grep -q '[.]js$' || exit 0\nnode_modules/.bin/lint || exit 1\n"
    with repository(sandbox, {"pre-commit": script}) as workspace:
        output(
            workspace,
            "echo node_modules > .gitignore; mkdir -p node_modules/.bin; printf '#!/bin/sh\\n' > node_modules/.bin/lint",
        )
        output(workspace, "chmod +x node_modules/.bin/lint; echo 1 > b.js; git add .; git commit -qm 'T-2 With a linter'")
        (verdict,) = verdicts(workspace)
    assert verdict.answer is HookAnswer.ACCEPTED


def test_files_of_a_later_commit_count_for_a_hook_that_looks_at_files(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": "#!/bin/sh\n! grep -l '^import' *.js || [ -e lib.js ]\n"}) as workspace:
        output(workspace, "echo 'import lib' > main.js; echo 1 > lib.js; git add main.js; git commit -qm 'T-2 Main'")
        output(workspace, "git add lib.js; git commit -qm 'T-3 Library'")
        assert told(verdicts(workspace)) == [("pre-commit", "accepted"), ("pre-commit", "accepted")]


def test_a_commit_that_a_clone_pushed_past_the_hook(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        settings = "git config user.name Ana; git config user.email ana@acme.dev"
        output(
            workspace,
            f"git clone -q /srv/git/web.git /tmp/c; cd /tmp/c; {settings}; echo secret > b; git add .; git commit -qm x",
        )
        output(workspace, "cd /tmp/c && git push -q origin main; cd ~/web && git status -sb")
        (verdict,) = verdicts(workspace)
    assert (verdict.answer, verdict.output, verdict.ref) == (HookAnswer.REFUSED, "no secrets, please", "refs/heads/main")


def test_a_program_that_the_run_replaced_answers_for_nobody(sandbox: DockerSandbox) -> None:
    script = "#!/bin/sh\n/srv/tools/scan\n"
    scan = FileSpec("/srv/tools/scan", content=NO_SECRETS, mode=0o755)
    folder = FileSpec("/srv/tools", type="dir", owner="agent")
    git = GitSpec(path=".", commits=(START,), config=SETTINGS)
    setup = SetupStep(f"printf '%s' '{script}' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", user="agent")
    files = (FileSpec("a.txt", content="one\n"), folder, replace(scan, owner="agent"))
    with opened(sandbox, files=files, git=(git,), setup=(setup,)) as workspace:
        workspace.baseline()
        output(workspace, "printf '#!/bin/sh\\n' > /srv/tools/scan; echo secret > b; git add .; git commit -qm Silenced")
        (verdict,) = verdicts(workspace)
    assert (verdict.answer, verdict.output) == (HookAnswer.REFUSED, "no secrets, please")


def test_pushes_are_asked_about_only_where_something_was_pushed(sandbox: DockerSandbox) -> None:
    with repository(sandbox, {"pre-push": NO_PUSH}) as workspace:
        output(workspace, "echo 1 > b; git add .; git commit -qm 'T-2 Local'")
        assert verdicts(workspace) == ()
        output(workspace, "git push -q --no-verify origin main:release main")
        found = verdicts(workspace)
    assert [(verdict.hook, verdict.ref, verdict.answer.value, verdict.output) for verdict in found] == [
        ("pre-push", "refs/heads/main", "accepted", ""),
        ("pre-push", "refs/heads/release", "refused", "release is frozen"),
    ]


def test_it_is_asked_where_nothing_can_be_reached_and_as_the_user(sandbox: DockerSandbox) -> None:
    script = "#!/bin/sh\ngit diff --cached --quiet b && exit 0\n"
    script += (
        "echo $(id -un) $(cut -d: -f1 /proc/net/dev | tail -n +3) $(grep -E 'CapBnd|NoNewPrivs' /proc/self/status); exit 1\n"
    )
    with repository(sandbox, {"pre-commit": script}) as workspace:
        outside = output(workspace, "echo $(grep -E 'CapBnd|NoNewPrivs' /proc/self/status)").strip()
        output(workspace, "echo 1 > b; git add .; git commit -qnm 'T-2 Around'")
        (verdict,) = verdicts(workspace)
    assert verdict.output == f"agent lo {outside}"


def test_a_dead_workspace_is_asked_about_and_a_missing_one_is_a_fault(
    sandbox: DockerSandbox, client: docker.DockerClient
) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, "echo secret > b; git add .; git commit -qnm 'T-2 Around'")
        client.api.kill(workspace.container_id)
        assert told(verdicts(workspace)) == [("pre-commit", "refused")]
        baseline, final = workspace.final()
        client.api.remove_container(workspace.container_id, force=True)
        with pytest.raises(InfrastructureFault, match="bring a run's files to its hooks"):
            workspace.hook_verdicts(baseline, final)
    assert containers(client, sandbox._session) == []


def test_what_is_too_large_is_not_brought_over(sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, "echo secret > b; git add .; git commit -qnm 'T-2 Around'; head -c 900000 /dev/urandom > ~/large")
        monkeypatch.setattr(hook_room, "_COPIED", 100)
        (without_objects,) = verdicts(workspace)
        monkeypatch.setattr(hook_room, "_COPIED", 200_000)
        (without_home,) = verdicts(workspace)
    assert without_objects.answer is HookAnswer.UNDECIDED
    assert without_objects.detail == "/home/agent/web/.git/objects is too large to be copied"
    # The hook is asked as the agent found things only.
    assert (without_home.answer, without_home.detail) == (HookAnswer.REFUSED, "")
    # A stream that was left in the middle would warn here that its socket is open.
    gc.collect()


def test_nothing_to_ask_costs_nothing(sandbox: DockerSandbox) -> None:
    def fresh() -> AbstractContextManager[DockerWorkspace]:
        raise AssertionError("a container was made")

    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, "echo secret > b; git add b; git stash -q; git tag start; git branch side")
        run(workspace, "git stash pop -q; git commit -qm 'T-2 Refused'")
        bench = replace(workspace._hooks, fresh=fresh)
        assert hooks.ask(bench, *workspace.final()) == ()


def test_a_repository_without_history_and_many_commits(sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_questions, "COMMITS", 2)
    hook = SetupStep(f"printf '%s' \"$SCRIPT\" > {HOOK}; chmod +x {HOOK}", user="agent")
    git = (GitSpec(path=".", commits=(), config=SETTINGS),)
    with opened(sandbox, git=git, setup=(hook,), env={"SCRIPT": NO_SECRETS}) as workspace:
        workspace.baseline()
        output(workspace, "for n in $(seq 4); do echo secret $n > b; git add b; git commit -qnm $n; done")
        found = verdicts(workspace)
    assert [verdict.answer for verdict in found] == [HookAnswer.UNDECIDED] * 3
    assert {verdict.detail for verdict in found} == {
        "there is no commit of before the run to try the hook on",
        "too many new commits: it was not asked about the 2 oldest",
    }


def test_a_fault_of_the_engine_is_an_incident_and_costs_no_state(tmp_path: Path) -> None:
    git = GitSpec(path=".", commits=(START,), config=SETTINGS)
    hook = SetupStep(f"printf '%s' \"$SCRIPT\" > {HOOK}; chmod +x {HOOK}", user="agent")
    files = (FileSpec("a.txt", content="one\n"),)
    spec = WorkspaceSpec(WORKDIR, files=files, git=(git,), setup=(hook,), env={"SCRIPT": NO_SECRETS})

    class Careless:
        identity = AgentIdentity("careless", "none")

        def __call__(self, task: Task) -> Agent:
            return self

        def run(self, session: AgentSession) -> AgentResult:
            session.workspace.run("echo secret > b; git add b; git commit -qnm Around", timeout=20)
            return AgentResult("Done.", Termination(TerminationReason.ANSWERED))

    class WithoutASecond(DockerSandbox):
        @contextmanager
        def open(
            self, spec: WorkspaceSpec, limits: Limits, key: RunKey, canaries: Mapping[str, str]
        ) -> Iterator[DockerWorkspace]:
            lost = replace(spec, image="pytest-saber/no-such-image:1")
            with self._opened(spec, limits, key, canaries) as workspace:
                workspace._hooks = replace(workspace._hooks, fresh=lambda: self._opened(lost, limits, key, {}))
                yield workspace

    task = make_task(workspace=spec)
    key = run_key()
    agent = Careless()
    alone = WithoutASecond(new_session())
    with closing(alone), RunStore(tmp_path).open(key, task, agent.identity) as log:
        evidence = execute(task, key=key, factory=agent, sandbox=alone, log=log, session_key=b"k")
    (incident,) = evidence.incidents
    assert incident.source == "engine"
    assert incident.detail.startswith("the repository's hooks could not be asked about the run's commits: ")
    assert evidence.final is not None
    assert f"{WORKDIR}/b" in evidence.final.files
    assert evidence.final.hook_verdicts == ()
    assert evidence.termination == Termination(TerminationReason.INCIDENT, incident.detail)


def test_the_end_of_the_session_ends_the_questions_too(client: docker.DockerClient) -> None:
    session = new_session()
    sandbox = DockerSandbox(session)
    slow = "#!/bin/sh\ngit diff --cached --quiet && exit 0; touch /tmp/asked; sleep 60\n"
    ended: list[BaseException] = []

    def ask(workspace: DockerWorkspace) -> None:
        try:
            workspace.hook_verdicts(*workspace.final())
        except InfrastructureFault as fault:
            ended.append(fault)

    try:
        with pytest.raises(InfrastructureFault), repository(sandbox, {"pre-commit": slow}) as workspace:  # noqa: PT012
            output(workspace, "echo 1 > b; git add .; git commit -qnm 'T-2 Around'")
            thread = threading.Thread(target=ask, args=(workspace,))
            thread.start()
            while thread.is_alive() and len(containers(client, session)) < 2:
                thread.join(0.05)
            (room,) = [found for found in containers(client, session) if found != workspace.container_id]
            labels = client.api.inspect_container(room)["Config"]["Labels"]
            assert labels == client.api.inspect_container(workspace.container_id)["Config"]["Labels"]
            sandbox.close()
            thread.join(30)
            assert not thread.is_alive()
            assert containers(client, session) == []
            workspace.baseline()
    finally:
        sandbox.close()
    assert len(ended) == 1
