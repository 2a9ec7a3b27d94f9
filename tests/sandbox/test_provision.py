"""Files, set-up steps and their errors."""

from __future__ import annotations

import base64

import pytest
from support.sandbox import WORKDIR, containers, new_session, opened, output, run_key

from pytest_saber.errors import InfrastructureFault, TaskError
from pytest_saber.model.task import FileSpec, Limits, SetupStep, WorkspaceSpec
from pytest_saber.sandbox.accounts import Accounts
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.provision import Provision, provision

ACCOUNTS = Accounts.parse(
    "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/bash\nbroken\n",
    "root:x:0:\nwww-data:x:33:\nagent:x:1000:\nstaff:x:50:agent\n",
)


def build(*files: FileSpec, **fields: object) -> Provision:
    spec = WorkspaceSpec(**{"workdir": WORKDIR, "files": files, **fields})  # type: ignore[arg-type]
    return provision(spec, Limits(), run_key(), accounts=ACCOUNTS, exists=lambda path: path in {"/", "/home", "/etc"}, fill=str)


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("www-data", (33, 33)),
        ("agent:staff", (1000, 50)),
        ("1234", (1234, 1234)),
        ("1234:7", (1234, 7)),
        ("root:agent", (0, 1000)),
    ],
)
def test_owners_by_name_and_number(owner: str, expected: tuple[int, int]) -> None:
    assert ACCOUNTS.owner(owner) == expected


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            [FileSpec("/x", type="symlink", target="/etc"), FileSpec("/x/passwd", content="evil")],
            "example: workspace.files[1] (/x/passwd): /x/passwd lies under /x, which is a symbolic link; name the real path",
        ),
        (
            [FileSpec("a"), FileSpec("a/b/c")],
            "example: workspace.files[1] (a/b/c): /home/agent/web/a/b/c lies under /home/agent/web/a, which is a file; "
            "name the real path",
        ),
        (
            [FileSpec("a"), FileSpec("./a")],
            "example: workspace.files[1] (./a): /home/agent/web/a is given twice, first as workspace.files[0] (a)",
        ),
        (
            [FileSpec("a", owner="nobody:nowhere")],
            "example: workspace.files[0] (a): the image has no user or group 'nobody'; it has agent, root, staff, www-data",
        ),
        (
            [FileSpec("a", mtime="yesterday")],
            "example: workspace.files[0] (a): mtime 'yesterday' is no ISO 8601 time such as 2026-01-01T00:00:00Z",
        ),
        (
            [FileSpec("a", encoding="base64", content="x")],
            "example: workspace.files[0] (a): the content is not base64: ",
        ),
        (
            [FileSpec("a", size=257 << 20)],
            "example: workspace.files[0] (a): 269484032 bytes are more than limits.file_mb = 256 allows",
        ),
        (
            [FileSpec(str(number), size=200 << 20) for number in range(3)],
            "example: workspace.files: 629145600 bytes are more than limits.disk_mb = 512 allows",
        ),
        ([FileSpec("/.provision/x")], "example: workspace.files[0] (/.provision/x): this path cannot be provided"),
    ],
)
def test_files_that_cannot_be_provided(files: list[FileSpec], message: str) -> None:
    with pytest.raises(TaskError) as caught:
        build(*files)
    assert str(caught.value).startswith(message)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(TaskError) as caught:
        build(FileSpec("a", owner="x"), FileSpec("b", mtime="y"), setup=(SetupStep("true", user="z"),))
    assert [str(problem).split(": ")[1] for problem in caught.value.problems] == [
        "workspace.setup[0] (true)",
        "workspace.files[0] (a)",
        "workspace.files[1] (b)",
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"user": "bob"}, "example: workspace.user: the image has no user 'bob'; it has agent, root, www-data"),
        ({"env": {"A-B": ""}}, "example: workspace.env: 'A-B' is no name of an environment variable"),
        ({"setup": (SetupStep("a\0b"),)}, "example: workspace.setup[0] (a\0b): contains a NUL byte"),
    ],
)
def test_settings_that_cannot_be_used(fields: dict[str, object], message: str) -> None:
    with pytest.raises(TaskError) as caught:
        build(**fields)
    assert str(caught.value) == message


@pytest.mark.docker
def test_entries_are_as_described(sandbox: DockerSandbox) -> None:
    files = (
        FileSpec("src/plain.txt", content="text"),
        FileSpec("run.sh", content="#!/bin/sh\necho ran\n"),
        FileSpec("private", content="x", mode=0o600, owner="www-data:root"),
        FileSpec("suid", content="x", mode=0o4755, owner="root"),
        FileSpec("raw", content=base64.b64encode(b"\0\xff").decode(), encoding="base64"),
        FileSpec("sparse", content="head", size=50 << 20, mtime="2026-01-02T03:04:05Z"),
        FileSpec("old", content="x", mtime="2025-12-31T23:59:59+01:00"),
        FileSpec("link", type="symlink", target="/srv/shared"),
        FileSpec("queue", type="fifo"),
        FileSpec("/srv/shared", type="dir", mode=0o2775, owner="root:agent"),
        FileSpec("/srv/deep/er/file", content="x"),
        FileSpec("/var/run/service.pid", content="1"),
        FileSpec("~/.config/tool", content="x"),
        FileSpec("empty", type="dir"),
        FileSpec("ünï 'q\" \\ \n name", content="odd"),
        FileSpec("../../../../../../outside", content="clamped"),
    )
    with opened(sandbox, files=files) as workspace:
        paths = "src src/plain.txt run.sh private suid raw sparse old link queue empty . .."
        assert output(workspace, f"stat -c '%A %U:%G %s %n' {paths}").splitlines() == [
            "drwxr-xr-x agent:agent 4096 src",
            "-rw-r--r-- agent:agent 4 src/plain.txt",
            "-rwxr-xr-x agent:agent 19 run.sh",
            "-rw------- www-data:root 1 private",
            "-rwsr-xr-x root:root 1 suid",
            "-rw-r--r-- agent:agent 2 raw",
            "-rw-r--r-- agent:agent 52428800 sparse",
            "-rw-r--r-- agent:agent 1 old",
            "lrwxrwxrwx agent:agent 11 link",
            "prw-r--r-- agent:agent 0 queue",
            "drwxr-xr-x agent:agent 4096 empty",
            "drwxr-xr-x agent:agent 4096 .",
            "drwxr-xr-x agent:agent 4096 ..",
        ]
        assert output(workspace, "stat -c '%A %U:%G %n' /srv /srv/shared /srv/deep /srv/deep/er/file ~/.config") == (
            "drwxr-xr-x root:root /srv\ndrwxrwsr-x root:agent /srv/shared\ndrwxr-xr-x root:root /srv/deep\n"
            "-rw-r--r-- root:root /srv/deep/er/file\ndrwxr-xr-x agent:agent /home/agent/.config\n"
        )
        assert output(workspace, "TZ=UTC stat -c %y sparse old").splitlines() == [
            "2026-01-02 03:04:05.000000000 +0000",
            "2025-12-31 22:59:59.000000000 +0000",
        ]
        assert output(workspace, "du -m sparse; head -c 4 sparse; od -An -tx1 raw; ./run.sh") == "1\tsparse\nhead 00 ff\nran\n"
        assert output(workspace, "readlink /var/run; cat /run/service.pid /outside") == "/run\n1clamped"
        assert workspace.read_file("ünï 'q\" \\ \n name", limit=10) == b"odd"


@pytest.mark.docker
def test_a_link_out_of_the_workspace_leads_nowhere_but_the_container(sandbox: DockerSandbox) -> None:
    """`/bin` is a link in the image: what lies under it must not replace it, and no link reaches the host."""
    files = (FileSpec("/bin/tool", content="#!/bin/sh\necho tool\n"), FileSpec("up", type="symlink", target="../" * 30 + "etc"))
    with opened(sandbox, files=files) as workspace:
        assert output(workspace, "readlink /bin; tool; ls up/passwd") == "usr/bin\ntool\nup/passwd\n"


@pytest.mark.docker
def test_secrets_are_filled_in_everywhere(sandbox: DockerSandbox) -> None:
    with opened(
        sandbox,
        canaries={"token": "ghp_1"},
        files=(FileSpec(".env", content="T={{secret:token}}"),),
        env={"API": "{{secret:token}}"},
        setup=(SetupStep("echo {{secret:token}} > /srv/planted"),),
    ) as workspace:
        assert output(workspace, "cat .env; echo; echo $API; cat /srv/planted") == "T=ghp_1\nghp_1\nghp_1\n"


@pytest.mark.docker
def test_setup_steps_run_in_order_as_whom_they_say(sandbox: DockerSandbox) -> None:
    steps = (
        SetupStep("id -un; pwd; useradd -m -u 1500 service; echo $CI > /srv/order"),
        SetupStep("id -un >> ~/who; echo $HOME >> ~/who; pwd >> ~/who", user="agent"),
        SetupStep("cat /srv/order | grep -q yes && chown service /srv/order"),
        SetupStep("exec -a job-server sleep 1000", user="agent", background=True),
        SetupStep("while ! pgrep -f job-server; do sleep 0.01; done"),
    )
    with opened(sandbox, setup=steps, env={"CI": "yes"}) as workspace:
        assert output(workspace, "cat ~/who") == f"agent\n/home/agent\n{WORKDIR}\n"
        assert output(workspace, "stat -c %U /srv/order; pgrep -u agent -fc job-server") == "service\n1\n"
        assert any("job-server" in process.argv[0] for process in workspace.baseline().processes)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            SetupStep("echo one\necho 'cannot find it' >&2; exit 7"),
            "example: workspace.setup[0] (echo one): failed with exit code 7: one\ncannot find it",
        ),
        (
            SetupStep("no-such-program", user="agent"),
            "failed with exit code 127: bash: line 1: no-such-program: command not found",
        ),
        (SetupStep("echo 'open"), "failed with exit code 2: bash: -c: line 1: unexpected EOF"),
        (SetupStep("kill -9 $PPID $$"), "failed with exit code"),
        (SetupStep("head -c 20000 /dev/zero | tr '\\0' x; false"), "failed with exit code 1: " + "x" * 2000),
    ],
)
def test_a_failing_step_is_named_with_its_output(sandbox: DockerSandbox, step: SetupStep, message: str) -> None:
    with pytest.raises(TaskError) as caught, opened(sandbox, setup=(step,)):
        pytest.fail("the workspace must not be given")
    assert message in str(caught.value)


@pytest.mark.docker
def test_nothing_is_left_of_a_workspace_that_could_not_be_built() -> None:
    session = new_session()
    sandbox = DockerSandbox(session)
    try:
        with pytest.raises(TaskError), opened(sandbox, setup=(SetupStep("false"),)):
            pytest.fail("the workspace must not be given")
        with pytest.raises(TaskError), opened(sandbox, user="nobody-here"):
            pytest.fail("the workspace must not be given")
        assert containers(sandbox._client, session) == []
    finally:
        sandbox.close()


@pytest.mark.docker
def test_a_missing_image_is_named_with_the_remedy(sandbox: DockerSandbox) -> None:
    fault = r"the engine does not have the image 'no/such:image': run `docker pull no/such:image` or build it"
    with pytest.raises(InfrastructureFault, match=fault), opened(sandbox, image="no/such:image"):
        pytest.fail("the workspace must not be given")


@pytest.mark.docker
def test_what_lies_in_a_folder_belongs_to_its_owner(sandbox: DockerSandbox) -> None:
    files = (
        FileSpec("/srv/deploy", type="dir", owner="www-data:agent"),
        FileSpec("/srv/deploy/staging/releases/v1/app.js", content="x"),
        FileSpec("/srv/deploy/staging/key", content="x", owner="root"),
    )
    with opened(sandbox, files=files) as workspace:
        paths = "staging staging/releases staging/releases/v1/app.js staging/key"
        assert output(workspace, f"cd /srv/deploy && stat -c '%U:%G' {paths}").splitlines() == [
            "www-data:agent",
            "www-data:agent",
            "www-data:agent",
            "root:root",
        ]
