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
    r"secrets?|configmaps?|cm|crds?|customresourcedefinitions?|services?|svc|ingress(?:es)?|daemonsets?|all)(?:[,/]\S*)?"
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
    _Use("mdadm", (), "a disk", ("--zero-superblock",)),
    _Use("nvme", ("format|sanitize",), "a disk"),
    _Use("btrfs", ("subvolume", "delete|del"), "a file system"),
    _Use("snapper", ("delete|remove|rm",), "backups"),
    _Use("timeshift", (), "backups", ("--delete", "--delete-all")),
    _Use("tarsnap", (), "backups", ("d", "--nuke")),
    _Use("kopia", ("snapshot|snapshots", "delete|expire"), "backups", ("--delete", "--all-snapshots-for-source")),
    _Use("duplicity", (r"remove-\S+|cleanup",), "backups", ("--force",)),
    _Use("lxc|incus", ("delete|rm",), "a virtual machine"),
    _Use("virsh", ("undefine|vol-delete|pool-delete",), "a virtual machine"),
    _Use("vagrant", ("destroy",), "a virtual machine"),
    _Use("multipass", ("delete|purge",), "a virtual machine"),
    _Use("minikube|colima|limactl", ("delete",), "a cluster of this machine"),
    _Use("kind|k3d", ("delete", "clusters?"), "a cluster of this machine"),
    _Use("k3d", ("cluster", "delete|rm"), "a cluster of this machine"),
    _Use("eksctl|rosa|kops", ("delete", r"cluster|nodegroup|instancegroup|fargateprofile"), "a cluster"),
    _Use("argocd", ("app|appset|proj|cluster", "delete|rm"), "what a cluster runs"),
    _Use("pg_dropcluster", (), "a database"),
    _Use("neo4j-admin", ("database", "delete"), "a database"),
    _Use("turso", ("db|group", "destroy"), "a database"),
    _Use("pscale|neonctl|neon", (r"databases?|branch(?:es)?|projects?", "delete"), "a database"),
    _Use("railway", ("down|delete",), "an application"),
    _Use("eb", ("terminate",), "an application"),
    _Use("cf", (r"delete(?:-\S+)?|purge-service-instance",), "an application"),
    _Use("serverless|sls", ("remove",), "the infrastructure of a stack"),
    _Use("cdk|cdktf|sst|amplify", ("destroy|remove|delete",), "the infrastructure of a stack"),
    _Use("sam", ("delete",), "the infrastructure of a stack"),
    _Use("copilot", ("app|env|svc|job", "delete"), "an application"),
    _Use(
        "heroku|vercel|netlify|firebase",
        (r"apps:destroy|remove|rm|sites:delete|(?:firestore|database|projects):(?:delete|remove)",),
        "an application",
    ),
    _Use("wrangler", (r"(?:kv:)?(?:key|namespace|bulk)|d1|r2|bucket|object|queues", "delete|purge"), "what a cloud keeps"),
    _Use("wrangler", (r"kv|d1|r2|queues|delete",), "what a cloud keeps", ("--delete",)),
    _Use("b2", (r"delete-bucket|delete-file-version|rm|bucket|file", r"delete|b2://\S+|\S+"), "a bucket"),
    _Use("gh|glab|tea|hub", ("repo|repos|release|project", "delete"), "what a code host keeps"),
    _Use("vault", ("kv", "destroy|delete"), "secrets of the vault"),
    _Use("vault", ("kv", "metadata", "delete"), "secrets of the vault"),
    _Use("vault", ("delete",), "secrets of the vault"),
    _Use("dvc", ("gc",), "versions of data", ("f", "--force")),
    _Use("celery", ("purge",), "messages of a broker"),
    _Use("celery", ("amqp", r"queue\.(?:purge|delete)"), "messages of a broker"),
    _Use("rq", ("empty",), "messages of a broker"),
    _Use("temporal|tctl", ("workflow|wf|namespace", "terminate|delete"), "workflows of a server"),
    _Use("ceph", ("osd|fs", "pool|rm", r"delete|rm|\S+"), "a file system"),
    _Use("gluster", ("volume", "delete"), "a file system"),
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
