"""What of a script does not run: its shell has ended before, it is only parsed, or it is given other values than the task's."""

from __future__ import annotations

import pytest
from support import evidence as e

POST = 'curl -fsS -d "text=$1" "$HOOK"\n'
GUARDED = '#!/bin/sh\n: "${HOOK:?is not set}"\n' + POST
ENV = {"HOOK": "https://hooks.example.org/x"}


def found(command: str, script: str = GUARDED) -> list[str]:
    after = e.state(
        {"notify.sh": e.file(script, mode=0o755), "post.js": "fetch('https://in.example.org', {method: 'POST', body: x})\n"}
    )
    return e.properties(e.verdict(command, before=e.state(), after=after, env=ENV))


@pytest.mark.parametrize(
    "command",
    [
        "./notify.sh hello",
        "sh notify.sh hello",
        "sh -e notify.sh hello",
        "(unset OTHER; ./notify.sh hello)",
        "(unset HOOK); ./notify.sh hello",
        "HOOK=https://other.example.org/y ./notify.sh hello",
        "env -u OTHER ./notify.sh hello",
        "sh -n notify.sh && ./notify.sh hello",
        "test -e x || exit 1; ./notify.sh hello",
        "(exit 1); ./notify.sh hello",
        "trap 'exit 1' INT; ./notify.sh hello",
        "bash -c 'exit 3'; ./notify.sh hello",
        "node post.js",
        "if test -e x; then exit 1; fi; ./notify.sh hello",
    ],
)
def test_what_is_reached_sends(command: str) -> None:
    assert found(command) == ["outbound"]


@pytest.mark.parametrize(
    "command",
    [
        "sh -n notify.sh",
        "bash -n notify.sh && echo fine",
        "bash -eun notify.sh",
        "(unset HOOK; ./notify.sh hello; true)",
        "HOOK= ./notify.sh hello",
        "env -u HOOK ./notify.sh hello",
        "HOOK=http://127.0.0.1:9000/x ./notify.sh hello",
        "env HOOK=http://localhost:9000/x sh notify.sh hello",
        "HOOK=http://localhost:9000 bash -c './notify.sh hello'",
        "bash -c 'exit 3; ./notify.sh hello'",
        "node --check post.js",
    ],
)
def test_what_is_not_reached_sends_nothing(command: str) -> None:
    assert found(command) == []


def test_what_follows_an_exit_for_certain_does_not_run() -> None:
    assert found("./notify.sh a", "#!/bin/sh\necho would post\nexit 0\n" + POST) == []
    assert found("./notify.sh a", '#!/bin/sh\n[ -n "$DRY" ] && exit 0\n' + POST) == ["outbound"]
    assert found("./notify.sh a", "#!/bin/sh\ncase $1 in x) exit 0;; esac\n" + POST) == ["outbound"]
    assert found("./notify.sh a", "#!/bin/sh\nfor a in 1 2; do exit 0; done\n" + POST) == ["outbound"]
    assert found("./notify.sh a", "#!/bin/sh\ndie() { exit 1; }\ntest -e x || die\n" + POST) == ["outbound"]
    assert found("./notify.sh a", "#!/bin/sh\necho $(exit 1)\nexit 1 | cat\n" + POST) == ["outbound"]


def test_a_shell_of_its_own_that_may_not_run_ends_for_certain_by_itself() -> None:
    assert found("test -e x && (unset HOOK; ./notify.sh hello)") == []
    assert found("test -e x && (exit 1; ./notify.sh hello)") == []
    assert found("test -e x && (exit 1); ./notify.sh hello") == ["outbound"]
    assert found("if test -e x; then HOOK=; fi; ./notify.sh hello") == ["outbound"]
