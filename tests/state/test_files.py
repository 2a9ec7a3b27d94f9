"""Every kind of path and of change, read from real containers, directly and through the helper container."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from support.state import CANARY, WORKDIR, Box, both_ways, changes

from pytest_saber.model.state import FileType, State
from pytest_saber.sandbox.state.content import Bounds

pytestmark = pytest.mark.docker


def _unchanged(before: State, after: State) -> None:
    assert changes(before, after) == (set(), set(), set())


@both_ways
def test_every_kind_of_path_with_all_its_metadata(box: Box, rights: bool) -> None:
    box.run(
        f"""cd {WORKDIR}
        printf 'hello\\n' > plain; chmod 640 plain; ln plain hard; ln -s /etc/passwd link; mkfifo pipe; mkdir -m 1777 sticky
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
        head -c 5000 /dev/zero > binary; touch -d @1700000000.25 old; cp plain "$(printf 'bad\\377\\nname')"
        setfacl -m u:33:rw plain; setfattr -n user.note -v secret old; chmod 4755 old"""
    )
    box.run(f"cd {WORKDIR}; mknod null c 1 3; chown root:daemon binary; chmod 4755 binary; setcap cap_kill+ep old", user="root")

    files = box.reader(rights=rights).baseline().files

    plain = files[f"{WORKDIR}/plain"]
    assert (plain.type, plain.mode, plain.uid, plain.gid, plain.size, plain.nlink) == (FileType.FILE, 0o660, 1000, 1000, 6, 2)
    assert plain.text == "hello\n"
    assert plain.sha256 == hashlib.sha256(b"hello\n").hexdigest()
    assert plain.blob == hashlib.sha1(b"blob 6\0hello\n").hexdigest()
    assert "system.posix_acl_access" in plain.xattrs
    assert files[f"{WORKDIR}/hard"] == plain
    assert (files[f"{WORKDIR}/link"].type, files[f"{WORKDIR}/link"].target) == (FileType.SYMLINK, "/etc/passwd")
    assert files[f"{WORKDIR}/link"].text is None
    assert files[f"{WORKDIR}/pipe"].type is FileType.FIFO
    assert files[f"{WORKDIR}/sock"].type is FileType.SOCKET
    assert files[f"{WORKDIR}/null"].type is FileType.CHAR_DEVICE
    assert (files[f"{WORKDIR}/sticky"].type, files[f"{WORKDIR}/sticky"].mode) == (FileType.DIRECTORY, 0o1777)
    binary = files[f"{WORKDIR}/binary"]
    assert (binary.text, binary.mode, binary.uid, binary.gid) == (None, 0o4755, 0, 1)
    old = files[f"{WORKDIR}/old"]
    assert old.mtime == 1700000000.25
    assert old.xattrs["user.note"] == b"secret".hex()
    assert "security.capability" in old.xattrs
    assert files[f"{WORKDIR}/bad\udcff\nname"].text == "hello\n"


@both_ways
def test_changes_of_the_project_and_of_the_image(box: Box, rights: bool) -> None:
    box.run(f"cd {WORKDIR}; mkdir keep gone; echo 1 > keep/a; echo 2 > gone/b; echo 3 > edit; echo 4 > chmod; echo 5 > move")
    box.run("rm /etc/debian_version", user="root")
    reader = box.reader(rights=rights)
    reader.baseline()

    box.run(f"cd {WORKDIR}; echo new > made; rm -r gone; echo more >> edit; chmod 777 chmod; mv move moved")
    box.run(
        """echo '# extra' >> /etc/bash.bashrc; rm /etc/issue; chmod 600 /etc/profile; touch -a /etc/shells
        python3 -c 'open("/etc/login.defs", "r+").close()'
        rm -r /etc/skel; mkdir /etc/skel; rm -r /etc/profile.d; echo file > /etc/profile.d; mv /etc/pam.d /etc/pam.old
        echo 13 > /etc/debian_version""",
        user="root",
    )
    before, after = reader.final()
    created, changed, deleted = changes(before, after)

    assert {path for path in created if not path.startswith("/etc/pam.old")} == {
        f"{WORKDIR}/made", f"{WORKDIR}/moved", "/etc/debian_version"
    }  # fmt: skip
    assert changed == {f"{WORKDIR}/edit", f"{WORKDIR}/chmod", "/etc/bash.bashrc", "/etc/profile", "/etc/profile.d"}
    assert {f"{WORKDIR}/gone", f"{WORKDIR}/gone/b", f"{WORKDIR}/move", "/etc/issue", "/etc/skel/.bashrc"} <= deleted
    assert {path for path in deleted if path.startswith("/etc/pam.old")} == set()
    assert before.files["/etc/bash.bashrc"].text == (after.files["/etc/bash.bashrc"].text or "").removesuffix("# extra\n")
    assert (before.files["/etc/issue"].text or "").startswith("Debian")
    assert before.files["/etc/profile.d"].type is FileType.DIRECTORY
    assert before.files["/etc/pam.d/login"].sha256 == after.files["/etc/pam.old/login"].sha256
    assert {"/etc/shells", "/etc/login.defs"}.isdisjoint(before.files.keys() | after.files.keys())
    assert after.notes == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root's rights")
def test_both_ways_see_the_same(box: Box) -> None:
    box.run(
        f"""cd {WORKDIR}; git init -q .; echo 'token={CANARY}' > .env; git add .
        git -c user.name=a -c user.email=a@b commit -qm one; tar czf /data/x.tgz .env; sqlite3 db 'create table t(x)'
        echo > "$(printf 'bad\\377')"; mkfifo pipe; setfacl -m u:33:rw .env; echo shm > /dev/shm/x; echo > /mnt/fast/y"""
    )
    first, second = box.reader(rights=True), box.reader(rights=False)
    assert first.baseline() == second.baseline()
    box.run(f"cd {WORKDIR}; rm .env; rm -rf .git/refs; echo x > made; rm /data/x.tgz /dev/shm/x")
    box.run("rm -r /etc/profile.d /usr/share/doc; mkdir /usr/share/doc; ln -s / /usr/share/doc/root", user="root")
    assert first.final() == second.final()
    box.container.kill()
    assert first.final() == second.final()


def test_an_untouched_workspace_has_no_changes(box: Box) -> None:
    box.run(f"cd {WORKDIR}; echo x > a; git init -q .; rm -r .git/hooks; mkdir -p a.d/b; rmdir a.d/b")
    box.run("rm -r /etc/skel; mkdir -p /etc/skel/new; rm /etc/issue; echo > /etc/issue", user="root")
    reader = box.reader()
    baseline = reader.baseline()
    before, after = reader.final()
    assert before == baseline
    assert after == baseline


@both_ways
def test_volumes_and_temporary_file_systems(box: Box, rights: bool) -> None:
    box.run("echo v > /data/v; ln -s /etc /data/link; echo t > /mnt/fast/t; echo s > /dev/shm/s")
    reader = box.reader(rights=rights)
    baseline = reader.baseline()
    assert {"/data/v", "/data/link", "/mnt/fast/t", "/dev/shm/s", "/etc/hosts"} <= baseline.files.keys()
    assert baseline.files["/data/link"].target == "/etc"

    box.run("rm /data/v /mnt/fast/t; echo changed > /dev/shm/s; echo n > /mnt/fast/n")
    box.run("echo 10.0.0.1 evil >> /etc/hosts", user="root")
    before, after = reader.final()
    assert changes(before, after) == ({"/mnt/fast/n"}, {"/dev/shm/s", "/etc/hosts"}, {"/data/v", "/mnt/fast/t"})

    box.container.kill()
    before, after = reader.final()
    assert changes(before, after) == (set(), {"/etc/hosts"}, {"/data/v"})
    assert "/mnt/fast: the mount was no longer there to be read; what it held counts as unchanged" in after.notes
    assert after.processes == ()


def test_links_never_lead_out_of_the_workspace(box: Box, tmp_path: Path) -> None:
    here = tmp_path / "config"
    here.write_text("[here]\n is = outside\n")
    box.run("printf '[here]\\n is = inside\\n' > /etc/here", user="root")
    box.run(
        f"""cd {WORKDIR}; ln -s /proc/self/root/etc/shadow shadow; ln -s /proc/1/root host; ln -s loop loop; ln -s ../w self
        ln -s / /dev/shm/root; mkdir .git; ln -s /etc .git/objects; ln -s /etc .git/refs; ln -s /etc/passwd .git/HEAD
        mkdir -p repo/.git/refs; mkdir repo/.git/objects; ln -s {here} repo/.git/config
        ln -s /proc/self/environ repo/.git/HEAD; mkdir -p in/.git/refs; mkdir in/.git/objects
        ln -s ../../../../../../../../../etc/here in/.git/config; echo x > in/.git/HEAD"""
    )
    state = box.reader().baseline()
    assert state.files[f"{WORKDIR}/shadow"].type is FileType.SYMLINK
    assert [path for path in state.files if path.startswith((f"{WORKDIR}/host/", f"{WORKDIR}/self/", "/dev/shm/root/"))] == []
    odd = state.git[f"{WORKDIR}/.git"]
    assert (odd.head, odd.refs, odd.commits, odd.config) == ("ref: /etc/passwd", {}, {}, {})
    assert state.git[f"{WORKDIR}/in/.git"].config == {"here.is": ("inside",)}
    assert state.git[f"{WORKDIR}/repo/.git"].config == {}
    assert "root" not in repr(state.git[f"{WORKDIR}/repo/.git"])


def test_a_flood_of_files_does_not_hide_what_was_there(box: Box) -> None:
    box.run(f"cd {WORKDIR}; mkdir -p z/y; echo known > z/y/known; echo other > z/other")
    reader = box.reader(bounds=Bounds(entries=300, names=250))
    reader.baseline()
    box.run(
        f"cd {WORKDIR}; mkdir a; cd a; seq 400 | xargs touch; cd ../z; seq 1 900 | xargs touch; rm y/known; echo more >> other"
    )
    before, after = reader.final()
    created, changed, deleted = changes(before, after)
    assert (changed, deleted) == ({f"{WORKDIR}/z/other"}, {f"{WORKDIR}/z/y/known"})
    assert 200 < len(created) <= 300
    assert any("more than 300 new paths: the rest was not read" in note for note in after.notes)
    assert after.unread == "more than 300 new paths: the rest was not read"
    assert any(f"{WORKDIR}/a: more than 250 names" in note for note in after.notes)


def test_a_scan_without_time_says_so_and_blames_nobody(box: Box) -> None:
    box.run(f"echo x > {WORKDIR}/a")
    reader = box.reader()
    baseline = reader.baseline()
    reader._bounds = Bounds(seconds=0)
    before, after = reader.final()
    assert after.files == before.files == baseline.files
    assert after.notes == ("the scan took longer than 0 s: paths not reached count as unchanged",)
    assert after.unread == after.notes[0]


def test_deep_sparse_and_huge_things_are_bounded(box: Box) -> None:
    box.run(
        f"""cd {WORKDIR}; truncate -s 1T sparse; truncate -s 20M zeros
        python3 - <<'END'
import os
for _ in range(300):
    os.mkdir("d"); os.chdir("d")
END
        python3 -c 'print("ä" * 50000)' > long.txt; printf '\\377\\376' > latin"""
    )
    state = box.reader(bounds=Bounds(content=1 << 20)).baseline()
    sparse = state.files[f"{WORKDIR}/sparse"]
    assert (sparse.size, sparse.sha256, sparse.text) == (1 << 40, None, None)
    zeros = state.files[f"{WORKDIR}/zeros"]
    assert zeros.sha256 == hashlib.sha256(bytes(20 << 20)).hexdigest()
    assert f"{WORKDIR}/sparse: {1 << 40} bytes are too many to read" in state.notes
    assert f"{WORKDIR}/zeros: hashed only, not searched: too large ({20 << 20} bytes)" in state.notes
    assert any("deeper than 128 levels; not read" in note for note in state.notes)
    long = state.files[f"{WORKDIR}/long.txt"]
    assert (long.text, long.text_truncated) == ("ä" * 32768, True)
    assert state.files[f"{WORKDIR}/latin"].text is None


def test_programs_of_the_workspace_are_not_needed(box: Box) -> None:
    reader = box.reader()
    reader.baseline()
    code, _ = box.container.exec_run(
        ["rm", "-rf", "--no-preserve-root", "/bin", "/usr/bin", "/lib", "/usr/lib/x86_64-linux-gnu"]
    )
    assert code == 0
    before, after = reader.final()
    _, _, deleted = changes(before, after)
    assert {"/bin", "/usr/bin/bash", "/usr/bin/git", "/lib"} <= deleted
    assert before.files["/bin"].target == "usr/bin"


def test_what_a_removed_part_of_the_image_held_is_bounded(box: Box) -> None:
    reader = box.reader(bounds=Bounds(image_entries=100))
    reader.baseline()
    box.run("rm -rf /usr/share/doc", user="root")
    before, after = reader.final()
    assert 90 < len(before.files.keys() - after.files.keys()) <= 101
    assert any("of what the image held here, not more than 100 paths are listed" in note for note in after.notes)


def test_device_nodes_are_named_and_not_opened(box: Box) -> None:
    """Opening the read end of this terminal would block or fail; a listing does neither."""
    box.run(f"cd {WORKDIR}; mknod tty c 5 0; mknod disk b 7 200; mknod zero c 1 5", user="root")
    files = box.reader().baseline().files
    assert files[f"{WORKDIR}/disk"].type is FileType.BLOCK_DEVICE
    assert (files[f"{WORKDIR}/zero"].type, files[f"{WORKDIR}/zero"].sha256) == (FileType.CHAR_DEVICE, None)


def test_no_program_is_started_for_reading(box: Box) -> None:
    """Hostile git settings name programs; none runs, inside or outside."""
    box.run(
        f"""cd {WORKDIR}; git init -q .; echo x > a; git add a; git -c user.name=a -c user.email=a@b commit -qm x
        printf '[core]\\n pager = touch /tmp/pwned\\n sshCommand = touch /tmp/pwned\\n' >> .git/config
        printf '[core]\\n fsmonitor = "touch /tmp/pwned; false"\\n' >> .git/config
        printf '[include]\\n path = /etc/passwd\\n[includeIf "gitdir:/"]\\n path = /etc/shadow\\n' >> .git/config
        echo /var/lib/docker > .git/objects/info/alternates
        printf '#!/bin/sh\\ntouch /tmp/pwned\\n' > .git/hooks/post-index-change
        chmod +x .git/hooks/post-index-change"""
    )
    repo = box.reader().baseline().git[f"{WORKDIR}/.git"]
    assert repo.config["core.fsmonitor"] == ("touch /tmp/pwned; false",)
    assert repo.config["include.path"] == ("/etc/passwd",)
    assert repo.config["includeif.gitdir:/.path"] == ("/etc/shadow",)
    assert not any(key.startswith("root") for key in repo.config)
    assert list(repo.hooks) == ["post-index-change"]
    assert repo.truncated
    assert subprocess.run(["ls", "/tmp/pwned"], capture_output=True, check=False).returncode != 0
    assert box.run("ls /tmp").strip() == ""
