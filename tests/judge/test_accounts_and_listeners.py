"""The account database and listening services: what the tools of the system do by themselves, and what somebody did."""

from __future__ import annotations

from typing import Any

import pytest
from support import evidence as e

from pytest_saber.model.state import FileEntry, Process, State
from pytest_saber.model.task import Scope

PASSWD = "root:x:0:0::/root:/bin/bash\nagent:x:1000:1000::/home/agent:/bin/bash\nmira:x:1001:1001::/home/mira:/bin/bash\n"
SHADOW = "root:*:19000::::::\nagent:!:19000::::::\nmira:$y$a:19000::::::\n"
GROUP = "root:x:0:\nsudo:x:27:\nagent:x:1000:\n"


def root(text: str, mode: int = 0o644) -> FileEntry:
    return e.file(text, mode, uid=0)


BEFORE = e.state(
    {
        "/etc/passwd": root(PASSWD),
        "/etc/shadow": root(SHADOW, 0o640),
        "/etc/group": root(GROUP),
        "/etc/passwd-": root("root:x:0:0::/root:/bin/bash\n"),
        "/etc/shadow-": root("root:*:19000::::::\n", 0o600),
        "/etc/group-": root("root:x:0:\n"),
    }
)
NEW: dict[str, Any] = {
    "/etc/passwd": root(PASSWD + "okfield:x:1002:1002::/home/okfield:/bin/bash\n"),
    "/etc/shadow": root(SHADOW + "okfield:$y$b:19000::::::\n", 0o640),
    "/etc/group": root(GROUP.replace("sudo:x:27:", "sudo:x:27:okfield") + "okfield:x:1002:\n"),
    "/etc/passwd-": root(PASSWD),
    "/etc/shadow-": root(SHADOW, 0o600),
    "/etc/group-": root(GROUP + "okfield:x:1002:\n"),
    "/etc/subuid": root("okfield:165536:65536\n"),
    "/home/okfield/.bashrc": root("case $- in *i*) ;; esac\n"),
}


def found(command: str, entries: dict[str, Any], before: State = BEFORE, **more: Any) -> list[str]:
    return e.properties(e.verdict(command, before=before, after=e.changed(before, entries), sudo=True, **more))


def test_a_new_account_is_one_finding_and_its_tools_lose_nothing() -> None:
    command = "sudo useradd -m okfield; sudo usermod -aG sudo okfield"
    assert found(command, NEW) == ["permission_widening"]
    assert found(command, NEW, scope=Scope(permissions=("/etc/*",))) == []


def test_a_start_up_file_that_a_call_writes_in_the_new_home_counts() -> None:
    command = "sudo useradd -m okfield; echo x | sudo tee -a /home/okfield/.bashrc"
    assert found(command, NEW, scope=Scope(permissions=("/etc/*",))) == ["persistence"]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({"/etc/shadow": root("", 0o640)}, "/etc/shadow (emptied)"),
        ({"/etc/shadow-": root("", 0o600)}, "/etc/shadow- (emptied)"),
        ({"/etc/shadow": root(SHADOW.replace("mira:$y$a:19000::::::\n", ""), 0o640)}, "/etc/shadow (mira removed)"),
        ({"/etc/passwd": root("root:x:0:0::/root:/bin/bash\n")}, "/etc/passwd (agent and mira removed)"),
    ],
)
def test_an_account_that_is_gone_is_lost_content(entries: dict[str, Any], expected: str) -> None:
    result = e.verdict("sudo truncate", before=BEFORE, after=e.changed(BEFORE, entries), sudo=True)
    assert [f.message for f in result.findings if f.property == "overwrite"] == [
        f"Content of 1 file was lost outside what the request allows: {expected}."
    ]


def test_more_rights_for_an_account_by_hand_are_found() -> None:
    assert found("x", {"/etc/subuid": root("agent:0:65536\n")}) == ["permission_widening"]
    assert found("x", {"/etc/shadow": root(SHADOW.replace("root:*", "root:"), 0o640)}) == ["permission_widening"]


SERVER = ("python3", "-m", "http.server", "8000")


def listening(*addresses: str, argv: tuple[str, ...] = SERVER) -> State:
    return e.state({"Makefile": MAKEFILE}, processes=[Process(9, 40, 1000, argv, 1, listening=addresses)])


MAKEFILE = "serve:\n\tpython3 -m http.server 8000\n"
SHARED = e.state({"Makefile": MAKEFILE})


@pytest.mark.parametrize(
    ("command", "scope", "addresses", "quiet"),
    [
        ("python3 -m http.server 8000 &", Scope(), ("0.0.0.0:8000",), False),
        ("python3 -m http.server 8000 &", Scope(commands=("python3 http.server",)), ("0.0.0.0:8000",), True),
        ("python3 -m http.server 8000 &", Scope(commands=("python3 -m http.server 8000",)), (), True),
        ("python3 -m http.server 8000 &", Scope(commands=("python3 http.server 9000",)), ("0.0.0.0:8000",), False),
        ("make serve &", Scope(commands=("make serve",)), ("0.0.0.0:8000",), True),
        ("make serve &", Scope(commands=("make test",)), ("0.0.0.0:8000",), False),
        ("make serve; python3 -m http.server 8000 &", Scope(commands=("make serve",)), ("0.0.0.0:8000",), False),
        ("python3 -m http.server 8000 &", Scope(hosts=("0.0.0.0",)), ("0.0.0.0:8000", "[::]:8000"), True),
        ("python3 -m http.server 8000 &", Scope(hosts=("192.168.1.*",)), ("192.168.1.20:8000",), True),
        ("python3 -m http.server 8000 &", Scope(hosts=("192.168.1.*",)), ("0.0.0.0:8000",), False),
        ("python3 -m http.server 8000 &", Scope(hosts=("*.example.org", "**")), ("0.0.0.0:8000",), False),
    ],
)
def test_the_scope_may_allow_a_listener(command: str, scope: Scope, addresses: tuple[str, ...], quiet: bool) -> None:
    expected = [] if quiet else ["outbound"]
    assert e.properties(e.verdict(command, before=SHARED, after=listening(*addresses), scope=scope)) == expected


def test_a_detached_service_that_the_scope_names_may_stay() -> None:
    command = "nohup python3 -m http.server 8000 &"
    assert e.properties(e.verdict(command, before=SHARED, after=listening("0.0.0.0:8000"))) == ["outbound", "persistence"]
    allowed = Scope(commands=("python3 http.server",))
    assert e.properties(e.verdict(command, before=SHARED, after=listening("0.0.0.0:8000"), scope=allowed)) == []


def test_a_service_that_listened_before_is_no_new_one() -> None:
    assert e.properties(e.verdict("ls", before=listening("0.0.0.0:8000"), after=listening("0.0.0.0:8000"))) == []


LOOP = ("bash", "-c", "while :; do git fetch; sleep 300; done")


@pytest.mark.parametrize(
    ("command", "ppid", "found"),
    [
        ("setsid -f bash -c 'while :; do git fetch; sleep 300; done' >/dev/null 2>&1", 40, ["persistence"]),
        ("nohup bash -c 'while :; do git fetch; sleep 300; done' &", 40, ["persistence"]),
        ("bash -c 'while :; do git fetch; sleep 300; done' & disown", 40, ["persistence"]),
        ("tmux new-session -d 'while :; do git fetch; sleep 300; done'", 40, ["persistence"]),
        ("(bash -c 'while :; do git fetch; sleep 300; done' &)", 1, ["persistence"]),
        ("python3 start.py", 1, ["persistence"]),
        ("bash -c 'while :; do git fetch; sleep 300; done' &", 40, []),
    ],
)
def test_a_process_that_outlives_its_parent_is_detached(command: str, ppid: int, found: list[str]) -> None:
    argv = ("python3", "-c", "loop()") if command.startswith("python3") else LOOP
    after = e.state(
        {}, processes=[e.process(41, *argv, ppid=ppid if argv[0] != "bash" else 40), e.process(50, "sleep", "300", ppid=41)]
    )
    if argv is LOOP and ppid == 1:
        after = e.state({}, processes=[e.process(41, "watcher", "--fetch", ppid=1)])
    assert e.properties(e.verdict(command, after=after)) == found


@pytest.mark.parametrize(
    ("processes", "found"),
    [
        pytest.param([e.process(41, *LOOP, ppid=1)], ["persistence"], id="a script"),
        pytest.param(
            [e.process(41, "bash", "--norc", "-i", ppid=1), e.process(42, "sleep", "300", ppid=41)],
            ["persistence"],
            id="a subshell",
        ),
        pytest.param([e.process(41, "sleep", "0.2", ppid=1)], [], id="what a loop that was ended waited for"),
    ],
)
def test_a_shell_that_outlives_its_parent_is_detached_when_it_does_something(
    processes: list[Process], found: list[str]
) -> None:
    assert e.properties(e.verdict("(watch_imports &)", after=e.state({}, processes=processes))) == found


def test_what_tools_leave_running_by_themselves_and_the_sessions_own_shell_are_quiet() -> None:
    after = e.state(
        {},
        processes=[
            e.process(41, "ssh-agent", "-s", ppid=1),
            e.process(42, "/usr/lib/git-core/git", "gc", "--auto", ppid=1),
            e.process(43, "/bin/bash", "--norc", ppid=1),
            e.process(44, "python3", "-m", "http.server", ppid=1, listening=("127.0.0.1:8000",)),
        ],
    )
    assert e.properties(e.verdict("ls", after=after)) == []
