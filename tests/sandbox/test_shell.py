"""The persistent shell: what survives, what ends it, and what cannot be faked."""

from __future__ import annotations

import re
import threading

import pytest
from support.sandbox import WORKDIR, opened, output, run

from pytest_saber.errors import InfrastructureFault
from pytest_saber.model.task import Limits
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.workspace import DockerWorkspace

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True)
def usable(workspace: DockerWorkspace) -> None:
    """Each test starts, and must leave, a shell that works."""
    done = run(workspace, f"cd {WORKDIR}; set +eu; trap - INT; echo ready")
    assert "ready\n" in done.output


def test_directory_variables_and_functions_survive(workspace: DockerWorkspace) -> None:
    output(workspace, "cd /tmp; A=1; export B=2; f() { echo $A$B; }; declare -A map=([k]=v)")
    done = run(workspace, 'pwd; f; echo ${map[k]}; sh -c "echo $B"')
    assert done.output == "/tmp\n12\nv\n2\n"
    assert done.cwd == "/tmp"


def test_environment_of_one_call_holds_for_that_call_only(workspace: DockerWorkspace) -> None:
    value = "a 'b' \"c\" $d \\ \n\r\t ü `e`"
    done = workspace.run('printf %s "$ARG_X"; sh -c \'printf "|%s" "$ARG_X"\'', timeout=10, env={"ARG_X": value})
    assert done.output == f"{value}|{value}"
    assert output(workspace, 'echo "[${ARG_X-unset}]"') == "[unset]\n"


def test_the_login_of_the_user_is_real(workspace: DockerWorkspace) -> None:
    assert output(workspace, 'echo "$USER $HOME $SHELL $LOGNAME"; id -un; id -G') == (
        "agent /home/agent /bin/bash agent\nagent\n1000\n"
    )
    assert re.search(r"PS1|PROMPT|SABER|PYTEST|TOKEN", output(workspace, "env"), re.IGNORECASE) is None


@pytest.mark.parametrize(
    ("command", "exit_code", "expected"),
    [
        ("echo out; echo err >&2; (exit 4)", 4, "out\nerr\n"),
        ("echo 'it''s'; echo \"a\\b\"", 0, "its\na\\b\n"),
        ("cat <<'E'\n$x `y` 'z'\nE", 0, "$x `y` 'z'\n"),
        ("echo '!!' !x", 0, "!! !x\n"),
        ('read line; echo "$? [$line]"', 0, "1 []\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("printf '\\xff\\xfe'", 0, "\ufffd\ufffd"),
        ("printf 'a\\0b'", 0, "a\0b"),
        ("echo 'ünï ☃'", 0, "ünï ☃\n"),
        ("echo \x10\x11 | od -An -tx1", 0, " 10 11 0a\n"),
        ("exec no-such-program", 127, "bash: exec: no-such-program: not found\n"),
        ("# only a comment", 0, ""),
        ("", 0, ""),
        ("kill $$; echo alive", 0, "alive\n"),
        ("true | false", 1, ""),
    ],
)
def test_output_and_exit_code(workspace: DockerWorkspace, command: str, exit_code: int, expected: str) -> None:
    done = run(workspace, command)
    assert (done.exit_code, done.output) == (exit_code, expected)
    assert not done.restarted


@pytest.mark.parametrize("command", ["echo 'open", 'echo "open', "if true; then", "(", "cat <<E\nopen", "echo $(", "}", "`"])
def test_unfinished_syntax_does_not_swallow_the_next_command(workspace: DockerWorkspace, command: str) -> None:
    done = run(workspace, command)
    assert not any((done.timed_out, done.restarted))
    assert output(workspace, "echo next") == "next\n"


def test_what_no_shell_can_take_is_answered_and_not_run(workspace: DockerWorkspace) -> None:
    done = run(workspace, "echo a\0b")
    assert (done.exit_code, done.output) == (126, "bash: the command contains a NUL byte, which no shell can take\n")
    done = run(workspace, "echo " + "x" * 300_000)
    assert done.exit_code == 126
    assert "longer than 256 KiB" in done.output
    done = workspace.run("true", timeout=10, env={"a b": "c"})
    assert "'a b' is no name of an environment variable" in done.output


def test_a_lone_surrogate_becomes_a_question_mark(workspace: DockerWorkspace) -> None:
    assert output(workspace, "echo '\ud800'") == "?\n"


@pytest.mark.parametrize(
    "command",
    [
        "sleep 60; echo WENT ON",
        "while :; do :; done; echo WENT ON",
        "for i in 1 2 3; do sleep 60; done; echo WENT ON",
        "while :; do sleep 0.01; done; echo WENT ON",
        "f() { sleep 60; echo WENT ON; }; f; echo WENT ON",
        "x=$(sleep 60); echo WENT ON",
        "sleep 60 | cat | tail -n 1; echo WENT ON",
        "(while :; do :; done); echo WENT ON",
        "bash -c 'sleep 60; echo WENT ON'; echo WENT ON",
        "python3 -c 'import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(60)'; echo WENT ON",
        "kill -STOP $BASHPID; echo WENT ON",
    ],
)
def test_time_limit_ends_the_whole_command_but_not_the_shell(workspace: DockerWorkspace, command: str) -> None:
    output(workspace, "cd /tmp; KEPT=1")
    done = run(workspace, f"echo begun; {command}", timeout=0.5)
    assert done.timed_out
    assert done.exit_code is None
    assert done.output.startswith("begun\n")
    assert "WENT ON" not in done.output
    if "STOP" not in command:
        assert not done.restarted
        assert output(workspace, 'echo "$PWD $KEPT"') == "/tmp 1\n"


def test_earlier_background_jobs_survive_a_time_limit(workspace: DockerWorkspace) -> None:
    output(workspace, "sleep 300 & server=$!")
    assert run(workspace, "wait", timeout=0.3).timed_out
    assert run(workspace, "while :; do :; done", timeout=0.3).timed_out
    assert output(workspace, "kill -0 $server && echo alive; kill $server").splitlines()[0] == "alive"


@pytest.mark.parametrize("command", ["trap '' INT; sleep 60; echo WENT ON", "trap '' INT; while :; do :; done; echo WENT ON"])
def test_a_shell_that_refuses_to_stop_is_restarted_and_says_so(workspace: DockerWorkspace, command: str) -> None:
    done = run(workspace, command, timeout=0.5)
    assert done.timed_out
    assert done.restarted
    assert "WENT ON" not in done.output
    assert output(workspace, "pwd") == f"{WORKDIR}\n"


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [("exit 3", 3), ("exec true", 0), ("exec sleep 0.2", 0), ("kill -9 $$", 137), ("set -e; false; echo on", 1)],
)
def test_a_lost_shell_is_restarted_and_says_so(workspace: DockerWorkspace, command: str, exit_code: int) -> None:
    output(workspace, "cd /tmp; GONE=1")
    done = run(workspace, command)
    assert done.restarted
    assert done.exit_code == exit_code
    assert not done.timed_out
    after = run(workspace, 'echo "$PWD [${GONE-}]"')
    assert (after.output, after.cwd) == (f"{WORKDIR} []\n", WORKDIR)


def test_a_program_that_took_the_shell_s_place_is_bounded_too(workspace: DockerWorkspace) -> None:
    done = run(workspace, "exec sleep 60", timeout=0.5)
    assert done.timed_out
    assert done.restarted


def test_background_children_do_not_hold_the_call(workspace: DockerWorkspace) -> None:
    done = run(workspace, "(sleep 60; echo late) & disown; nohup sleep 60 >/dev/null 2>&1 & echo now; pkill -n sleep; true")
    assert done.exit_code == 0
    assert "now\n" in done.output
    assert run(workspace, "pkill sleep").exit_code == 0, "the child ended before the call did"


def test_output_between_commands_comes_with_the_next(workspace: DockerWorkspace) -> None:
    output(workspace, "(until [ -e /tmp/go ]; do sleep 0.02; done; echo background; touch /tmp/said) & disown; rm -f /tmp/said")
    workspace.write_file("/tmp/go", b"")
    done = run(workspace, "until [ -e /tmp/said ]; do sleep 0.02; done; rm /tmp/go /tmp/said; echo foreground")
    assert "background\n" in done.output
    assert done.output.endswith("foreground\n")


def test_what_prints_without_pause_or_newline_does_not_hide_the_answers(sandbox: DockerSandbox) -> None:
    with opened(sandbox) as workspace:
        run(workspace, "(while :; do printf x; done) & disown")
        assert [run(workspace, f"(exit {code})").exit_code for code in range(40)] == list(range(40))
        run(workspace, "PS1='> '")
        assert [run(workspace, f"(exit {code})").exit_code for code in range(40)] == list(range(40))


def test_output_is_bounded_and_both_ends_are_kept(sandbox: DockerSandbox) -> None:
    with opened(sandbox, limits=Limits(output_bytes=1000)) as workspace:
        done = run(workspace, "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last")
        assert done.truncated
        assert done.output.startswith("first\n")
        assert done.output.endswith("x\nlast\n")
        left_out = re.search(r"\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n", done.output)
        assert left_out is not None
        assert int(left_out[1]) == 50_000_000 + len("first\n\nlast\n") - 1000
        assert output(workspace, "echo short") == "short\n"


def test_a_marker_cannot_be_forged(workspace: DockerWorkspace) -> None:
    """Nothing that a command can see tells what ends it, and it has no descriptor to end itself with."""
    seen = output(
        workspace,
        "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; ls -l /proc/self/fd; set; history",
    )
    assert re.search(r"\b[0-9a-f]{32}\b", seen) is None
    assert "253" not in re.findall(r"(\d+) -> ", seen)
    done = run(
        workspace, "for fd in /proc/1/fd/*; do echo x > $fd; done; cat /proc/1/fd/0; cat /proc/1/mem; echo x > /proc/1/mem"
    )
    assert done.exit_code != 0
    assert output(workspace, "echo true") == "true\n"


def test_a_forged_report_of_the_inner_shell_does_not_shift_later_answers(workspace: DockerWorkspace) -> None:
    """A command that goes looking can reach the pipe of the inner shell, but needs its token too."""
    run(workspace, "for fd in /proc/$$/fd/*; do [ -p $fd ] && timeout 1 sh -c \"echo '1 99 /forged' > $fd\"; done", timeout=10)
    done = run(workspace, "false")
    assert (done.exit_code, done.cwd) == (1, WORKDIR)


def test_traps_tracing_and_redefined_builtins_do_not_break_the_shell(workspace: DockerWorkspace) -> None:
    output(workspace, "trap 'echo debug' DEBUG; set -x; PROMPT_COMMAND='echo prompt'; PS1='> '")
    assert run(workspace, "false").exit_code == 1
    output(workspace, "trap - DEBUG; set +x; unset PROMPT_COMMAND; PS1=; printf() { echo hijacked; }; alias printf='exit 9'")
    assert run(workspace, "false").exit_code == 1
    done = run(workspace, "builtin() { true; }", timeout=0.5)
    assert done.timed_out, "a shell that cannot report any more is given up"
    assert done.restarted
    assert output(workspace, "printf new") == "new"


def test_a_prompt_that_an_environment_sets_is_no_output(workspace: DockerWorkspace) -> None:
    output(workspace, "python3 -m venv --without-pip env && . env/bin/activate")
    assert output(workspace, "echo one; echo two >&2") == "one\ntwo\n"
    assert output(workspace, 'echo "$PS1" | grep -o env') == "env\n"
    assert output(workspace, "PROMPT_COMMAND='echo prompt >&2'; true") == ""
    output(workspace, "unset PROMPT_COMMAND; deactivate; rm -r env")


def test_processes_of_the_whole_container_can_be_killed(workspace: DockerWorkspace) -> None:
    done = run(workspace, "kill -9 1; kill -9 -1; echo $?")
    assert "Operation not permitted" in done.output
    done = run(workspace, "sh -c 'kill -9 -1'")
    assert done.restarted
    assert output(workspace, "echo alive") == "alive\n"


def test_closing_makes_a_command_under_way_fail_fast(sandbox: DockerSandbox) -> None:
    with opened(sandbox) as workspace:
        started = threading.Event()
        faults: list[BaseException] = []

        def work() -> None:
            started.set()
            try:
                run(workspace, "sleep 60", timeout=60)
            except InfrastructureFault as fault:
                faults.append(fault)

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        workspace.close()
        thread.join(timeout=10)
        assert not thread.is_alive()
        assert "the workspace was closed while it was in use" in str(faults[0])


def test_commands_from_many_threads_take_turns(workspace: DockerWorkspace) -> None:
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(output(workspace, f"sleep 0.02; echo {n}"))) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [f"{n}\n" for n in range(8)]
