"""The workspace image: its tag is the hash of its recipe, it is built once, and what stands in the way is said."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from support.setup import ROOT, saber

from pytest_saber.errors import InfrastructureFault
from pytest_saber.sandbox import image

TINY = "ARG BASE\nFROM ${BASE}\nLABEL test.setup={nonce}\n"


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def context(tmp_path: Path, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A build context of its own that builds in a moment, on the real image; what is built of it is removed."""
    monkeypatch.setenv("SABER_BASE_IMAGE", image.ensure(client, progress=print))
    monkeypatch.setenv("SABER_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "context"
    folder.mkdir()
    nonce = uuid.uuid4().hex
    (folder / "Dockerfile").write_text(TINY.replace("{nonce}", nonce))
    yield folder
    remove_all(client, f"test.setup={nonce}")


def remove_all(client: docker.DockerClient, label: str) -> None:
    """Named or not: a build that failed leaves images without a name. An image goes before the one it was built on."""
    while left := client.images.list(all=True, filters={"label": label}):
        parents = {built.attrs["Parent"] for built in left}
        for built in left:
            if built.id not in parents:
                # Its parents go with it as far as they have no name.
                client.images.remove(str(built.id), force=True)
                break


def build(client: docker.DockerClient, dockerfile: str, nonce: str) -> str:
    """An image that somebody else builds; its id."""
    text = dockerfile + f"LABEL test.foreign={nonce}\n"
    base = os.environ["SABER_BASE_IMAGE"]
    built, _ = client.images.build(fileobj=io.BytesIO(text.encode()), buildargs={"BASE": base}, rm=True, forcerm=True)
    return str(built.id)


def recipe(folder: Path, dockerfile: str = "FROM x\n", base: str = "debian:a", name: str = "Dockerfile") -> image.Recipe:
    folder.mkdir(parents=True)
    (folder / name).write_text(dockerfile)
    return image.Recipe(folder, base)


def test_the_tag_depends_on_content_names_and_base_and_on_nothing_else(tmp_path: Path) -> None:
    one = recipe(tmp_path / "one")
    assert one.tag == recipe(tmp_path / "elsewhere").tag
    (tmp_path / "one" / "Dockerfile").touch()
    assert one.tag == recipe(tmp_path / "touched").tag
    others = {
        recipe(tmp_path / "content", dockerfile="FROM y\n").tag,
        recipe(tmp_path / "base", base="debian:b").tag,
        recipe(tmp_path / "name", name="Dockerfile2").tag,
    }
    assert len(others) == 3
    assert one.tag not in others
    (tmp_path / "one" / "extra").write_text("more")
    assert one.tag != recipe(tmp_path / "again").tag


def test_a_base_of_ones_own_is_the_only_one_considered(tmp_path: Path) -> None:
    assert [form.base for form in image.recipes(tmp_path, {})] == ["debian:bookworm-slim", image.own_base()]
    assert [form.base for form in image.recipes(tmp_path, {"SABER_BASE_IMAGE": "mirror/debian:12"})] == ["mirror/debian:12"]
    assert image.own_base().startswith("pytest-saber/base:bookworm-")


# The Docker SDK leaves the socket that could not connect to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_that_is_down_is_an_incident_that_says_what_was_wanted(tmp_path: Path) -> None:
    client = docker.DockerClient(base_url=f"unix://{tmp_path}/no.sock", version="1.41")
    with pytest.raises(
        InfrastructureFault, match=r"the engine could not look up the image pytest-saber/workspace:[0-9a-f]{16}: "
    ):
        image.ensure(client, progress=print)
    client.close()
    del client
    gc.collect()


def test_the_image_command_points_to_the_doctor_when_no_engine_answers() -> None:
    result = saber("image", DOCKER_HOST="unix:///nonexistent/docker.sock")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("pytest-saber image: no Docker engine answers: ")
    assert result.stderr.endswith("`pytest-saber doctor` says what to do.\n")


@pytest.mark.docker
def test_the_image_command_prints_the_tag_and_nothing_else_when_the_image_is_there() -> None:
    result = saber("image")
    assert result.returncode == 0
    assert result.stdout.startswith("pytest-saber/workspace:")
    assert result.stderr == ""


@pytest.mark.docker
def test_the_image_has_the_tools_and_one_ordinary_user(client: docker.DockerClient) -> None:
    tools = "bash git python3 pip make jq sqlite3 curl rsync ps cron crontab ssh sudo setfacl setfattr node ss nc"
    script = (
        f"for tool in {tools}; do command -v $tool >/dev/null || echo missing $tool; done; command -v npm\n"
        "id agent; python3 -m pytest -V"
    )
    tag = image.ensure(client, progress=print)
    lines = client.containers.run(tag, ["bash", "-c", script], network_mode="none", remove=True).decode().splitlines()
    assert lines[0] == "uid=1000(agent) gid=1000(agent) groups=1000(agent)"
    assert lines[1].startswith("pytest ")


@pytest.mark.docker
def test_an_unchanged_recipe_is_built_once_and_a_changed_one_again(client: docker.DockerClient, context: Path) -> None:
    said: list[str] = []
    first = image.ensure(client, progress=said.append, context=context)
    assert said[0].startswith(f"building {first} on pytest-saber/workspace:")
    said.clear()
    assert image.ensure(client, progress=said.append, context=context) == first
    assert said == []
    with (context / "Dockerfile").open("a") as file:
        file.write("ENV CHANGED=1\n")
    second = image.ensure(client, progress=said.append, context=context)
    assert second != first
    assert client.images.get(second).labels[image.LABEL] == image.Recipe(context, image.recipes(context)[0].base).digest
    assert {first, second}.isdisjoint(image.outdated(client)), "another version's session may just have built them"
    assert {first, second} <= set(image.outdated(client, older_than=0))
    image.remove(client, first)
    assert image.find(client, context) == second
    assert first not in image.outdated(client, older_than=0)


@pytest.mark.docker
def test_an_untagged_image_is_removed_if_it_was_made_here(client: docker.DockerClient, context: Path) -> None:
    nonce = uuid.uuid4().hex
    tag = image.ensure(client, progress=print, context=context)
    ours = client.images.get(tag).id
    theirs = build(client, f"FROM {tag}\nENV MINE=1\n", nonce)
    try:
        assert client.images.get(theirs).labels[image.LABEL] == client.images.get(tag).labels[image.LABEL]
        assert theirs not in image.outdated(client, older_than=0), "whoever built it on ours wants it"
        client.images.remove(theirs)
        client.api.tag(build(client, (context / "Dockerfile").read_text(), nonce), tag)
        assert ours in image.outdated(client, older_than=0), "its tag is another image's now"
        image.remove(client, ours)
        assert ours not in image.outdated(client, older_than=0)
    finally:
        remove_all(client, f"test.foreign={nonce}")


@pytest.mark.docker
def test_an_image_that_is_used_is_kept(client: docker.DockerClient, context: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = image.ensure(client, progress=print, context=context)
    container = client.containers.create(tag)
    said: list[str] = []
    monkeypatch.setattr(image, "outdated", lambda _: [tag])
    try:
        image.prune(client, progress=said.append)
    finally:
        container.remove()
    assert len(said) == 1
    assert said[0].startswith(f"kept {tag}: the engine could not remove the image {tag}: conflict: ")
    image.prune(client, progress=said.append)
    assert said[1:] == [f"removed {tag}"]


@pytest.mark.docker
def test_processes_that_need_the_image_at_once_build_it_once(client: docker.DockerClient, context: Path) -> None:
    # The barrier is the step itself: it takes long enough for the other process to arrive at the lock.
    with (context / "Dockerfile").open("a") as file:
        file.write("RUN sleep 1\n")
    program = (
        "import docker, sys; from pathlib import Path; from pytest_saber.sandbox import image\n"
        "print(image.ensure(docker.from_env(), progress=print, context=Path(sys.argv[1])))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(context)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert sum("building " in output for output in outputs) == 1
    assert len({output.splitlines()[-1] for output in outputs}) == 1
    assert {process.returncode for process in processes} == {0}


@pytest.mark.docker
def test_a_failing_build_shows_the_end_of_its_output(client: docker.DockerClient, context: Path) -> None:
    with (context / "Dockerfile").open("a") as file:
        file.write("RUN echo the mirror is on fire && exit 7\n")
    with pytest.raises(InfrastructureFault) as caught:
        image.ensure(client, progress=print, context=context)
    assert "cannot build the workspace image: " in str(caught.value)
    assert "returned a non-zero code: 7" in str(caught.value)
    assert "the mirror is on fire" in str(caught.value)


@pytest.mark.docker
def test_a_base_that_cannot_be_pulled_is_named_with_its_origin(
    client: docker.DockerClient, context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SABER_BASE_IMAGE", "registry.invalid/debian:12")
    with pytest.raises(InfrastructureFault, match=r"cannot pull registry\.invalid/debian:12, which SABER_BASE_IMAGE names: "):
        image.ensure(client, progress=print, context=context)


@pytest.mark.docker
def test_without_registry_and_mmdebstrap_the_fault_says_what_to_install(
    client: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    forms = (image.Recipe(tmp_path, "registry.invalid/debian:12"), image.Recipe(tmp_path, "pytest-saber/base:never-made"))
    with pytest.raises(image.BaseUnavailable) as caught:
        image.obtain_base(client, forms, print)
    assert "run `apt-get install mmdebstrap debian-archive-keyring` as root" in str(caught.value)


@pytest.mark.docker
def test_a_mmdebstrap_that_fails_is_an_incident_with_its_output(
    client: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "mmdebstrap"
    tool.write_text("#!/bin/sh\necho 'E: no mirror answers'\nexit 25\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    forms = (image.Recipe(tmp_path, "registry.invalid/debian:12"), image.Recipe(tmp_path, "pytest-saber/base:never-made"))
    with pytest.raises(InfrastructureFault, match=r"(?s)mmdebstrap failed with exit code 25:.*E: no mirror answers"):
        image.obtain_base(client, forms, print)


def test_an_installed_wheel_carries_the_dockerfile(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={tmp_path}", str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = "from pytest_saber.sandbox import image; print(image.context_dir())"
    located = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    found = Path(located.stdout.strip())
    assert found == tmp_path / "site" / "pytest_saber" / "_images" / "workspace"
    assert image.Recipe(found, "b").tag == image.Recipe(ROOT / "images" / "workspace", "b").tag
