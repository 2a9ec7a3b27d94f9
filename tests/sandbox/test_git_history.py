"""Histories are real: what git says of them in the workspace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.sandbox import WORKDIR, opened, output

from pytest_saber.errors import TaskError
from pytest_saber.model.task import CommitSpec, FileSpec, GitSpec, RemoteSpec, StashSpec
from pytest_saber.sandbox.docker import DockerSandbox
from pytest_saber.sandbox.git_history import HistoryError, plan, select
from pytest_saber.sandbox.workspace import DockerWorkspace

ANA = "Ana Ruiz <ana@acme.dev>"
BO = "Bo Lind <bo@acme.dev>"


def commit(message: str, day: int = 1, author: str = ANA, **fields: object) -> CommitSpec:
    return CommitSpec(message, author, f"2026-03-{day:02}T10:00:00+02:00", **fields)  # type: ignore[arg-type]


FILES = (
    FileSpec("README.md", content="# Web\n"),
    FileSpec("src/a.js", content="final a\n"),
    FileSpec("src/lib/b.js", content="final b\n"),
    FileSpec("bin/build", content="#!/bin/sh\nexit 0\n"),
    FileSpec("current", type="symlink", target="src"),
    FileSpec("notes.txt", content="never committed\n"),
    FileSpec(".gitignore", content="build/\n"),
    FileSpec("build/out", content="ignored\n"),
    FileSpec(".git/hooks/pre-push", content="#!/bin/sh\necho pushed >> /tmp/hook\nexit 1\n"),
    FileSpec("~/.gitconfig", content="[user]\n\tname = Sam Lee\n\temail = sam@acme.dev\n[commit]\n\tgpgsign = true\n"),
)
HISTORY = GitSpec(
    commits=(
        commit(
            "Start",
            1,
            files=("README.md", "bin/**", "current", ".gitignore"),
            write={"src/a.js": "old a\n", "gone": "x"},
            tag="v1.0",
        ),
        commit("Begin the library\n\nWith a body.", 2, BO, branch="feature", files=("src/lib/b.js",)),
        commit("Fix the build", 3, branch="main", write={"src/a.js": "newer a\n"}, delete=("gone",)),
        commit("Merge branch 'feature'", 4, merge="feature"),
    ),
    remotes=(
        RemoteSpec(
            "/srv/git/web.git", push=("main", "v1.0"), commits=(commit("Colleague's fix", 5, BO, write={"fix.js": "f\n"}),)
        ),
    ),
    staged=("src/a.js",),
    stashes=(
        StashSpec("first idea", {"README.md": "# Stashed\n", "new.txt": "n\n"}),
        StashSpec("second idea", {"bin/build": "x"}),
    ),
    config={"pull.rebase": "true"},
)


@pytest.fixture(scope="module")
def repository(sandbox: DockerSandbox) -> Iterator[DockerWorkspace]:
    with opened(sandbox, files=FILES, git=(HISTORY,)) as workspace:
        yield workspace


@pytest.mark.docker
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git status --short", "M  src/a.js\n?? notes.txt\n"),
        ("git status -sb | head -1", "## main...origin/main\n"),
        ("git fsck --strict", ""),
        (
            "git log --format='%s|%an|%ae|%aI|%cI|%D' --topo-order main",
            "Merge branch 'feature'|Ana Ruiz|ana@acme.dev|2026-03-04T10:00:00+02:00|2026-03-04T10:00:00+02:00|"
            "HEAD -> main, origin/main\n"
            "Begin the library|Bo Lind|bo@acme.dev|2026-03-02T10:00:00+02:00|2026-03-02T10:00:00+02:00|feature\n"
            "Fix the build|Ana Ruiz|ana@acme.dev|2026-03-03T10:00:00+02:00|2026-03-03T10:00:00+02:00|\n"
            "Start|Ana Ruiz|ana@acme.dev|2026-03-01T10:00:00+02:00|2026-03-01T10:00:00+02:00|tag: v1.0\n",
        ),
        ("git log -1 --format=%b feature", "With a body.\n\n"),
        ("git ls-tree -r --format='%(objectmode) %(path)' HEAD", None),
        ("git show HEAD:src/a.js v1.0:src/a.js HEAD:src/lib/b.js", "newer a\nold a\nfinal b\n"),
        ("git show HEAD:gone 2>&1 | head -1", "fatal: path 'gone' does not exist in 'HEAD'\n"),
        ("git stash list", "stash@{0}: On main: second idea\nstash@{1}: On main: first idea\n"),
        ("git stash show -p stash@{1} | grep '^[+-][^+-]'", "-# Web\n+# Stashed\n+n\n"),
        ("git log -1 --format=%s stash@{0}^2 | sed 's/[0-9a-f]\\{7,\\}/ID/'", "index on main: ID Merge branch 'feature'\n"),
        (
            "git reflog --format=%gs",
            "merge feature: Merge made by the 'ort' strategy.\ncommit: Fix the build\ncheckout: moving from feature to main\n"
            "commit: Begin the library\ncheckout: moving from main to feature\ncommit (initial): Start\n",
        ),
        ("git reflog --format=%gd --date=iso main | tail -1", "main@{2026-03-01 10:00:00 +0200}\n"),
        ("git config --local --list | grep -v ^core", None),
        ("git -C /srv/git/web.git log --format=%s -2", "Colleague's fix\nMerge branch 'feature'\n"),
        ("git -C /srv/git/web.git for-each-ref --format='%(refname)'", "refs/heads/main\nrefs/tags/v1.0\n"),
        ("git ls-remote -q origin | wc -l", "3\n"),
        ("cat /tmp/hook 2>/dev/null; ls .git/hooks", "pre-push\n"),
        ("ls -A / | grep provision; find . /srv/git/web.git ! -user agent; ls .git | grep -i -e marks -e crash", None),
        ("git check-ignore build/out", "build/out\n"),
    ],
)
def test_what_git_says(repository: DockerWorkspace, command: str, expected: str | None) -> None:
    done = repository.run(command, timeout=20)
    if expected is not None:
        assert done.output == expected
    elif command.startswith("git ls-tree"):
        assert done.output.splitlines() == [
            "100644 .gitignore",
            "100644 README.md",
            "100755 bin/build",
            "120000 current",
            "100644 src/a.js",
            "100644 src/lib/b.js",
        ]
    elif "config" in command:
        assert set(done.output.splitlines()) == {
            "remote.origin.url=/srv/git/web.git",
            "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*",
            "branch.main.remote=origin",
            "branch.main.merge=refs/heads/main",
            "pull.rebase=true",
        }
    else:
        assert done.output == ""


@pytest.mark.docker
def test_work_goes_on_in_it(sandbox: DockerSandbox) -> None:
    with opened(sandbox, files=FILES, git=(HISTORY,)) as workspace:
        output(workspace, "git -c commit.gpgsign=false commit -qm Edit && git -c commit.gpgsign=false pull -q")
        assert output(workspace, "git log --format=%s -2") == "Edit\nColleague's fix\n"
        done = workspace.run("git push", timeout=20)
        assert done.exit_code == 1, "the planted hook refuses"
        output(workspace, "git push -q --no-verify")
        state = workspace.baseline()
        assert {f"{WORKDIR}/.git", "/srv/git/web.git"} <= state.git.keys()


@pytest.mark.docker
def test_same_spec_same_commits(sandbox: DockerSandbox) -> None:
    ids = []
    for _ in range(2):
        with opened(sandbox, files=FILES, git=(HISTORY,)) as workspace:
            ids.append(output(workspace, "git rev-parse main feature refs/stash; git -C /srv/git/web.git rev-parse main"))
    assert ids[0] == ids[1]


@pytest.mark.docker
def test_other_shapes(sandbox: DockerSandbox) -> None:
    specs = (
        GitSpec(commits=(), path="/home/agent/empty"),
        GitSpec(
            commits=(commit("One", files=("**",)), commit("Two", 2, write={"late": "x"})),
            path="sub",
            default_branch="trunk",
            remotes=(RemoteSpec("/srv/shared.git", name="upstream", push=("trunk~1:trunk",), owner="root"),),
            config={"user.name": 'a "quoted" $name'},
        ),
        GitSpec(commits=(commit("Big", write={f"f{number}": str(number) for number in range(150)}),), path="/home/agent/big"),
        GitSpec(
            commits=(commit("Base", write={"x": "1"}), commit("Side", branch="side/way", write={"x": "2"})),
            path="/home/agent/side",
            checkout="side/way",
        ),
    )
    files = (FileSpec("sub/in", content="x"), FileSpec("sub/deep/er", content="y"), FileSpec("late", content=""))
    with opened(sandbox, files=files, git=specs) as workspace:
        assert output(workspace, "git -C ~/empty status -sb") == "## No commits yet on main\n"
        assert output(workspace, "cd sub; git status -sb; git ls-tree -r --name-only trunk~1") == (
            "## trunk...upstream/trunk [ahead 1]\n D late\ndeep/er\nin\n"
        )
        assert output(workspace, "git config user.name; git ls-remote upstream | wc -l; stat -c %U /srv/shared.git/HEAD") == (
            'a "quoted" $name\n2\nroot\n'
        )
        assert output(workspace, "git -C ~/big fsck; git -C ~/big ls-files | wc -l").endswith("150\n")
        assert output(workspace, "git -C ~/side branch --show-current; git -C ~/side reflog -1 --format=%gs") == (
            "side/way\ncommit: Side\n"
        )


@pytest.mark.docker
def test_git_s_own_refusal_is_reported(sandbox: DockerSandbox) -> None:
    spec = GitSpec(commits=(commit("x", write={"a": ""}),), remotes=(RemoteSpec("/srv/a.git", push=("nothing:main",)),))
    with pytest.raises(TaskError) as caught, opened(sandbox, git=(spec,)):
        pytest.fail("the workspace must not be given")
    assert "example: workspace.git[0]: failed with exit code 1: error: src refspec nothing does not match any" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("spec", "where", "message"),
    [
        (
            GitSpec((commit("x", files=("nope/*",)),)),
            "commits[0].files[0]",
            "'nope/*' matches no file of the repository's work tree",
        ),
        (GitSpec((commit("x", delete=("a",)),)), "commits[0].delete[0]", "'a' matches no path of the commit before"),
        (GitSpec((commit("x", write={"../a": ""}),)), "commits[0].write", "'../a' is no path inside the repository"),
        (
            GitSpec((commit("x", write={".git/config": ""}),)),
            "commits[0].write",
            "'.git/config' is no path inside the repository",
        ),
        (
            GitSpec((commit("x"), commit("y", merge="other"))),
            "commits[1].merge",
            "there is no branch 'other' yet; branches are main",
        ),
        (GitSpec((commit("x", author="Ana"),)), "commits[0].author", "'Ana' is not of the form `Name <address>`"),
        (GitSpec((CommitSpec("x", ANA, "May"),)), "commits[0].date", "'May' is no ISO 8601 date such as 2026-03-02T10:00:00Z"),
        (GitSpec((commit("x"),), checkout="dev"), "checkout", "there is no branch 'dev'; branches are main"),
        (GitSpec((commit("x"),), staged=("a",)), "staged", "'a' matches no path of the work tree or of the last commit"),
        (GitSpec((), stashes=(StashSpec("s", {}),)), "stashes", "a stash needs a commit to stand on"),
        (
            GitSpec((commit("x"),), remotes=(RemoteSpec("/r", push=("dev",)),)),
            "remotes[0].push[0]",
            "there is no branch 'dev'; branches are main",
        ),
    ],
)
def test_histories_that_cannot_be_built(spec: GitSpec, where: str, message: str) -> None:
    with pytest.raises(HistoryError) as caught:
        plan(spec, repo="/r", remotes=["/x"] * len(spec.remotes), work={}, fill=str, scratch="/s", prefix="g")
    assert (caught.value.where, str(caught.value)) == (where, message)


def test_globs_name_paths_and_directories() -> None:
    paths = ["a", "src/b.js", "src/lib/c.js", "docs/d.md"]
    assert select(paths, "src") == ["src/b.js", "src/lib/c.js"]
    assert select(paths, "src/*") == ["src/b.js", "src/lib/c.js"]
    assert select(paths, "**/*.js") == ["src/b.js", "src/lib/c.js"]
    assert select(paths, "./a") == ["a"]
    assert select(paths, ".") == sorted(paths)
