"""The reader's dealings with the engine: freezing, faults, and nothing left behind; and what it finds in what it read."""

from __future__ import annotations

from contextlib import closing

import docker
import pytest
from docker.errors import ImageNotFound
from support.state import CANARY, WORKDIR, Box, both_ways, labelled

from pytest_saber.errors import FaultSource, InfrastructureFault
from pytest_saber.model.state import Sighting
from pytest_saber.sandbox.state.reader import StateReader

pytestmark = pytest.mark.docker


def test_canaries_are_found_in_files_archives_and_git(box: Box) -> None:
    box.run(
        f"""cd {WORKDIR}; git init -q .; git config user.name a; git config user.email a@b
        echo 'token={CANARY}' > .env; git add .env; git commit -qm one; git rm -q .env; git commit -qm two
        blob=$(git rev-parse HEAD~:.env); echo $blob > /tmp/blob
        tar czf x.tgz --transform 's,^,deep/,' -C /tmp blob; printf '{CANARY}' | base64 > enc
        printf '{CANARY}' > n; python3 -m zipfile -c y.zip n; rm n
        echo {CANARY} > .git/objects/info/x"""
    )
    blob = box.run("cat /tmp/blob").strip()
    state = box.reader().baseline()
    assert Sighting("token", f"{WORKDIR}/.git:{blob}", "git", "plain") in state.sightings
    assert Sighting("token", f"{WORKDIR}/enc", "file", "base64") in state.sightings
    assert Sighting("token", f"{WORKDIR}/y.zip!n", "archive", "plain") in state.sightings
    assert Sighting("token", f"{WORKDIR}/.git/objects/info/x", "file", "plain") in state.sightings
    assert not [sighting for sighting in state.sightings if "x.tgz" in sighting.where]


def test_git_of_work_trees_and_bare_remotes(box: Box) -> None:
    box.run(
        f"""cd {WORKDIR}; git init -q -b main .; git config user.name a; git config user.email a@b; echo 1 > a
        git add a; git commit -qm one
        git init -q --bare -b main /home/agent/app.git; git remote add origin /home/agent/app.git; git push -q origin main"""
    )
    reader = box.reader()
    reader.baseline()
    box.run(f"cd {WORKDIR}; echo 2 > a; git commit -qam two; git push -q origin main; git checkout -q -b side; rm -rf sub/.git")
    before, after = reader.final()
    bare = "/home/agent/app.git"
    assert (before.git[bare].bare, before.git[f"{WORKDIR}/.git"].bare) == (True, False)
    old, new = before.git[bare].refs["refs/heads/main"], after.git[bare].refs["refs/heads/main"]
    assert after.git[bare].commits[new].parents == (old,)
    assert after.git[f"{WORKDIR}/.git"].head == "ref: refs/heads/side"
    assert not [path for path in after.files if "/objects/" in path]
    box.run(f"rm -rf {WORKDIR}/.git {bare}")
    before, after = reader.final()
    assert (len(before.git), after.git) == (2, {})


@both_ways
def test_a_repository_and_a_database_of_the_image(
    client: docker.DockerClient, workspace_image: str, box: Box, rights: bool
) -> None:
    """Both lie in the image's layers; the workspace's own layer holds only what changed of them."""
    box.run(
        f"""cd {WORKDIR}; git init -q -b main .; git config user.name a; git config user.email a@b; echo 1 > a
        git add a; git commit -qm one
        git tag v1; sqlite3 data.db 'create table t(x); insert into t values (1), (2)'; cp -r . /home/agent/other"""
    )
    name = str(box.container.labels["pytest-saber.session"])
    image = str(box.container.commit(repository=name).id)
    container = client.containers.run(
        image, ["sleep", "infinity"], detach=True, network_mode="none", user="root", labels={"pytest-saber.session": name}
    )
    try:
        inner = Box(client, container)
        reader = inner.reader(rights=rights)
        baseline = reader.baseline()
        assert (baseline.git, baseline.databases) == ({}, {})
        inner.run(
            f"cd {WORKDIR}; git tag -d v1; echo 2 > a; git commit -qam two; sqlite3 data.db 'delete from t where x = 1'"
            "; rm -r /home/agent/other"
        )
        before, after = reader.final()
        path = f"{WORKDIR}/.git"
        assert before.git[path].refs.keys() == {"refs/heads/main", "refs/tags/v1"}
        assert after.git[path].refs.keys() == {"refs/heads/main"}
        assert after.git[path].commits.keys() > before.git[path].commits.keys()
        assert after.git[path].error == ""
        assert list(after.git[path].head_tree) == ["a"]
        assert before.databases[f"{WORKDIR}/data.db"].tables["t"].rows == ((1,), (2,))
        assert after.databases[f"{WORKDIR}/data.db"].tables["t"].rows == ((2,),)
        assert before.git["/home/agent/other/.git"].refs == before.git[path].refs
        assert "/home/agent/other/.git" not in after.git
        assert "/home/agent/other/data.db" in before.databases
        assert "/home/agent/other/a" in before.files.keys() - after.files.keys()
    finally:
        container.remove(force=True, v=True)
        client.images.remove(image, force=True)


@both_ways
def test_the_workspace_runs_on_after_each_reading_and_helpers_are_gone(box: Box, rights: bool) -> None:
    reader = box.reader(rights=rights)
    reader.baseline()
    reader.final()
    box.container.reload()
    assert box.container.status == "running"
    assert labelled(box.client, box.container.labels) == [box.container.name]


def test_a_workspace_that_is_frozen_already_stays_so(box: Box) -> None:
    box.container.pause()
    box.reader().baseline()
    box.container.reload()
    assert box.container.status == "paused"
    box.container.unpause()


@both_ways
def test_a_workspace_that_ended(box: Box, rights: bool) -> None:
    box.run(f"echo x > {WORKDIR}/a; echo y > {WORKDIR}/b")
    reader = box.reader(rights=rights)
    reader.baseline()
    box.run(f"rm {WORKDIR}/b")
    box.container.kill()
    box.container.wait()
    before, after = reader.final()
    assert f"{WORKDIR}/a" in after.files
    assert f"{WORKDIR}/b" in before.files.keys() - after.files.keys()
    first_look = box.reader(rights=rights).baseline()
    assert first_look.files[f"{WORKDIR}/a"] == after.files[f"{WORKDIR}/a"]


def test_a_container_that_was_removed_is_the_engines_fault(box: Box) -> None:
    reader = box.reader()
    name = "saber-no-such-container"
    with pytest.raises(InfrastructureFault, match=f"the workspace's container is gone: No such container: {name}") as caught:
        StateReader(box.client, name, workdir="/", canaries={}).baseline()
    assert caught.value.source is FaultSource.ENGINE
    assert reader.baseline().files


def test_an_engine_that_does_not_answer() -> None:
    with closing(docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.41")) as nowhere:
        reader = StateReader(nowhere, "x", workdir="/", canaries={})
        with pytest.raises(InfrastructureFault, match="the workspace's state could not be read: ") as caught:
            reader.baseline()
    assert caught.value.source is FaultSource.ENGINE


def test_a_helper_that_cannot_start_is_a_fault_and_leaves_nothing(box: Box) -> None:
    with pytest.raises(InfrastructureFault, match="saber-no-such-image"):
        box.reader(rights=False, helper_image="saber-no-such-image").baseline()
    box.container.reload()
    assert box.container.status == "running"
    assert labelled(box.client, box.container.labels) == [box.container.name]
    with pytest.raises(ImageNotFound):
        box.client.images.get("saber-no-such-image")
