"""Hooks, and code that hooks run, which mean no good: bounded, alone, and without a say in other questions."""

from __future__ import annotations

import docker
import pytest
from support.hooks import GUARDED, HOOK, NO_SECRETS, TICKET, by_message, repository, told, verdicts
from support.sandbox import containers, output, run

from pytest_saber.model.state import HookAnswer
from pytest_saber.model.task import Limits
from pytest_saber.sandbox import hook_room, hooks
from pytest_saber.sandbox.docker import DockerSandbox

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(hooks, "TOTAL_SECONDS", 900.0)


SLOW = "it did not end within 3 seconds"
HOSTILE: dict[str, tuple[str, str | tuple[str, ...]]] = {
    "hangs": ("trap '' INT TERM HUP; while :; do sleep 60; done", SLOW),
    "multiplies": ("exec sh -c 'f() { f | f & }; f; sleep 1; exit 1'", ("it came to a limit of the workspace: pids", SLOW)),
    "kills": ("kill -9 -1; sleep 60", "it killed the shell that had called it"),
    "fills": (
        "while :; do head -c 20M /dev/zero > ~/fill$RANDOM; done",
        "the container to ask it in could not be kept up",
    ),
}


@pytest.mark.parametrize(("script", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_hook_is_bounded_and_the_next_one_is_asked_all_the_same(
    script: str,
    why: str | tuple[str, ...],
    sandbox: DockerSandbox,
    client: docker.DockerClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hook_room, "HOOK_SECONDS", 3.0)
    hook = f"#!/bin/bash\ngit diff --cached --quiet && exit 0\n{script}\n"
    limits = Limits(pids=64, disk_mb=64, memory_mb=256)
    with repository(sandbox, {"pre-commit": hook, "commit-msg": TICKET}, limits=limits) as workspace:
        output(workspace, "echo 1 > b; git add .; git commit -qnm 'T-5 Number'")
        found = {verdict.hook: verdict for verdict in verdicts(workspace)}
        assert containers(client, sandbox._session) == [workspace.container_id]
        assert run(workspace, "echo alive").output == "alive\n"
    assert (found["pre-commit"].answer, found["commit-msg"].answer) == (HookAnswer.UNDECIDED, HookAnswer.ACCEPTED)
    assert found["pre-commit"].detail.startswith(why)


def test_output_without_end_signals_and_what_a_terminal_would_obey(sandbox: DockerSandbox) -> None:
    loud = (
        "#!/bin/bash\ngit rev-parse -q --verify HEAD || exit 0\nhead -c 20000000 /dev/zero | tr '\\0' x\n"
        "printf '\\e]0;title\\a\\e[2J end'; rm -rf ~/web; kill -9 $$\n"
    )
    with repository(sandbox, {"pre-commit": loud}) as workspace:
        output(workspace, "echo 1 > b; git add .; git commit -qnm 'T-2 Around'")
        (verdict,) = verdicts(workspace)
    # Git takes a hook that died for one that refused.
    assert (verdict.answer, verdict.exit_code, len(verdict.output)) == (HookAnswer.REFUSED, 137, 2_000)
    assert "\x1b]0;title\a\x1b[2J end" in verdict.output


MEDDLES = """#!/bin/sh
for d in .git/hooks /tmp/.saber-hooks/hooks /tmp/.saber-hooks/git/hooks; do
  [ ! -d $d ] || for h in pre-commit commit-msg; do printf '#!/bin/sh\\n' > $d/$h; done
done
(while :; do printf '#!/bin/sh\\n' | tee .git/hooks/commit-msg > .git/hooks/pre-commit; sleep 0.05; done) > /dev/null 2>&1 &
"""


def test_code_that_a_hook_runs_has_no_say_in_other_questions(sandbox: DockerSandbox) -> None:
    """The checks of the repository are the run's own code, and run before anything is asked about the other commits."""
    with repository(sandbox, {"pre-commit": GUARDED, "commit-msg": TICKET}) as workspace:
        output(workspace, "echo secret > b; git add .; git commit -qnm 'No number'")
        output(workspace, f"cat > check.sh <<'END'\n{MEDDLES}END\ngit add .; git commit -qnm 'T-3 Check'")
        assert by_message(workspace) == {
            ("T-3 Check", "pre-commit"): "accepted",
            ("T-3 Check", "commit-msg"): "accepted",
            ("No number", "pre-commit"): "refused",
            ("No number", "commit-msg"): "refused",
        }


def test_settings_that_the_run_left_do_not_run_before_the_hook(sandbox: DockerSandbox) -> None:
    """The hook is asked with the home that the run left, but neither git's settings nor another git may change it first."""
    meddle = f"#!/bin/sh\nprintf '#!/bin/sh\\n' > ~/web/{HOOK}\nexec /usr/bin/git \"$@\"\n"
    with repository(sandbox, {"pre-commit": NO_SECRETS}) as workspace:
        output(workspace, "echo secret > b; git add .; git commit -qnm 'T-2 Around'")
        output(
            workspace, f"cat > ~/meddle <<'END'\n{meddle}END\nchmod +x ~/meddle; git config --global core.fsmonitor ~/meddle"
        )
        assert told(verdicts(workspace)) == [("pre-commit", "refused")]
