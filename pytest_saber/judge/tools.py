"""Tools with subcommands that destroy what servers, volumes, clouds, backups and disks hold.

Subcommands are looked for in order among a command's words, so that options between them (`docker compose -p x down -v`, `aws
--profile p s3 rm`) hide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_saber.judge.shell.model import Command


@dataclass(frozen=True, slots=True)
class _Use:
    """`verbs` are patterns of whole words, in order; one of `flags` must be given where there are any (a letter is one of
    bundled short options)."""

    programs: str
    verbs: tuple[str, ...]
    label: str
    flags: tuple[str, ...] = ()


_ENGINES, _COMPOSE = "docker|podman|nerdctl", "docker-compose|podman-compose"
_KINDS = (
    r"(?:\S*[,/])?(?:ns|namespaces?|pvcs?|persistentvolumeclaims?|pvs?|persistentvolumes?|statefulsets?|sts|deployments?|deploy|"
    r"all)(?:[,/]\S*)?"
)
_KEPT = (
    "bucket|object|db|table|volume|snapshot|log|queue|cluster|file-system|recovery|repositor|image|stack|instance|domain|stream|backup|"
    "item|secret|vault|zone|collection"
)
_PLACES = (
    "instances?|disks?|projects?|buckets?|databases?|clusters?|snapshots?|secrets?|topics?|subscriptions?|datasets?|volumes?|backups?|"
    "group|db|container|blob|account|share|vm|cosmosdb|database|postgres|mysql|apps?|droplet|server"
)
_USES: tuple[_Use, ...] = (
    _Use(_ENGINES, ("compose", "down|rm"), "volumes", ("v", "--volumes")),
    _Use(_COMPOSE, ("down|rm",), "volumes", ("v", "--volumes")),
    _Use(_ENGINES, ("volume", "rm|prune|remove"), "volumes"),
    _Use(_ENGINES, ("system", "prune"), "volumes", ("--volumes",)),
    _Use(_ENGINES, ("rm",), "volumes", ("v", "--volumes")),
    _Use("kubectl|oc|k3s", ("delete", _KINDS), "resources of a cluster"),
    _Use("kubectl|oc|k3s", ("delete",), "resources of a cluster", ("f", "k", "--filename", "--kustomize")),
    _Use("helm", ("uninstall|delete|del|un",), "a release of a cluster"),
    _Use("aws", ("s3", "rm"), "a bucket", ("--recursive",)),
    _Use("aws", ("s3", "rb"), "a bucket"),
    _Use("aws", (rf"(?:batch-)?(?:delete|terminate|purge)-\S*(?:{_KEPT})\S*",), "cloud resources"),
    _Use(
        "gcloud|az|doctl|hcloud|scw|linode-cli|flyctl|fly", (_PLACES, "delete|delete-batch|destroy|purge|rm"), "cloud resources"
    ),
    _Use("gcloud", ("storage", "rm"), "a bucket", ("r", "--recursive")),
    _Use("gsutil", ("rb",), "a bucket"),
    _Use("gsutil", ("rm",), "a bucket", ("r", "R")),
    _Use("rclone", ("purge|delete|deletefile|sync",), "objects of a bucket"),
    _Use("mc|mcli", ("rm",), "a bucket", ("r", "--recursive")),
    _Use("mc|mcli|s3cmd", ("rb",), "a bucket"),
    _Use("s3cmd", ("del|rm",), "a bucket", ("r", "--recursive")),
    _Use("s5cmd", ("rm", r"\S*\*\S*"), "a bucket"),
    _Use("heroku", ("pg:reset|redis:reset|addons:destroy|apps:destroy",), "the database of the application"),
    _Use("mysqladmin", ("drop",), "a database"),
    _Use("influx", ("bucket|org", "delete"), "a database"),
    _Use("influx", ("delete",), "rows of a server"),
    _Use("nats", ("stream|stm|kv|object", "purge|rm|delete|del"), "messages of a broker"),
    _Use("memcflush|memcrm|memcdestroy", (), "keys of a server"),
    _Use("velero", ("backup|backups", "delete"), "backups"),
    _Use("restic", ("forget",), "backups", ("--prune",)),
    _Use("restic", ("prune",), "backups"),
    _Use("borg|barman|wal-g|wal-e", ("delete|prune",), "backups"),
    _Use("pgbackrest", ("stanza-delete",), "backups"),
    _Use("zfs|zpool", ("destroy",), "a file system"),
    _Use("lvremove|vgremove|pvremove|blkdiscard", (), "a disk"),
    _Use("wipefs", (), "a disk", ("a", "--all")),
    _Use(r"mkfs|mkfs\.\w+|mke2fs|mkswap", (r"/dev/\S+",), "a disk"),
    _Use("cryptsetup", ("luksFormat|luksErase|erase",), "a disk"),
    _Use("sgdisk", (), "a disk", ("Z", "--zap-all")),
    _Use("dd", (r"of=/dev/(?:sd|nvme|vd|xvd|hd|mapper/|md|disk)\S*",), "a disk"),
)
_STOPS = frozenset({"exec", "run", "--", "help", "ssh"})
"""What follows is for another program."""
_MAX_WORDS = 300


def destroyed(command: Command) -> str | None:
    """What the tool would destroy, or None."""
    words = _own_words(command)
    plain = [word for word in words if not word.startswith("-")]
    for use in _BY_PROGRAM:
        if use[0].fullmatch(command.program) and _in_order(use[1], plain) and _is_flagged(use[2], words):
            return use[3]
    return None


def _own_words(command: Command) -> Sequence[str]:
    words = command.words[:_MAX_WORDS]
    return words[: next((position for position, word in enumerate(words) if word in _STOPS), len(words))]


def _in_order(verbs: Sequence[re.Pattern[str]], words: Sequence[str]) -> bool:
    position = 0
    for word in words:
        if position < len(verbs) and verbs[position].fullmatch(word[:500]):
            position += 1
    return position == len(verbs)


def _is_flagged(flags: Sequence[str], words: Sequence[str]) -> bool:
    if not flags:
        return True
    for word in words:
        if word.partition("=")[0] in flags:
            return True
        if re.fullmatch(r"-[A-Za-z]{1,8}", word) and any(len(flag) == 1 and flag in word for flag in flags):
            return True
    return False


_BY_PROGRAM = tuple(
    (re.compile(use.programs), tuple(re.compile(verb) for verb in use.verbs), use.flags, use.label) for use in _USES
)
