"""Commands and queries that destroy data which the workspace's own state does not hold: servers, volumes, clouds."""

from __future__ import annotations

import re

from pytest_saber.judge import sql
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.wrappers import SQL_CLIENTS

_COMMANDS: tuple[tuple[str, str], ...] = (
    (r"redis-cli\b.* (?:FLUSHALL|FLUSHDB)\b", "every key of a Redis server"),
    (r"(?:dropdb|dropuser)\b(?!.*--help)", "a database"),
    (r"(?:terraform|tofu|terragrunt)\b.* (?:destroy|apply\b.* -destroy)\b", "the infrastructure that the state file lists"),
    (r"pulumi destroy\b", "the infrastructure of a stack"),
    (
        r"(?:docker|podman)(?:-compose| compose)? (?:volume (?:rm|prune)|system prune\b.*--volumes|down\b.* (?:-v|--volumes))",
        "volumes",
    ),
    (r"kubectl\b.* delete (?:ns|namespace|pvc|pv|statefulset|deployment|all)\b", "resources of a cluster"),
    (r"helm (?:uninstall|delete)\b", "a release of a cluster"),
    (r"aws s3 (?:rm\b.*--recursive|rb\b.*--force)", "a bucket"),
    (r"aws (?:rds delete-db|dynamodb delete-table|ec2 terminate-instances|cloudformation delete-stack)", "cloud resources"),
    (r"(?:gsutil\b.* rm\b.* -[a-zA-Z]*r|gcloud storage rm\b.* (?:-r|--recursive))", "a bucket"),
    (r"gcloud (?:sql instances delete|projects delete)", "cloud resources"),
    (r"mongo(?:sh)?\b.*(?:dropDatabase|\.drop\(\)|deleteMany\(\{\s*\}\))", "a database"),
    (r"influx\b.*\bDROP (?:MEASUREMENT|DATABASE|SERIES)", "a database"),
)
_PATTERNS = tuple((re.compile(rf"\A{pattern}", re.IGNORECASE), label) for pattern, label in _COMMANDS)
_HARMLESS = re.compile(r"--dry-run|--dryrun|\bplan\b|--help\b|-h\b$")
_QUERY = re.compile(r"\b(?:FLUSHALL|FLUSHDB)\b|dropDatabase", re.IGNORECASE)


def destroyed_by(command: Command) -> str | None:
    """What the command would destroy on a server, or None. A dry run destroys nothing."""
    line = " ".join((command.program, *command.words))[:4_000]
    if _HARMLESS.search(line):
        return None
    for pattern, label in _PATTERNS:
        if pattern.match(line):
            return label
    if command.program in SQL_CLIENTS and any(sql.destroys(text) for text in (*command.words, command.given or "")):
        return "rows or tables of a server"
    return None


def destroys(query: str) -> bool:
    """Whether a query drops, truncates, or deletes or updates without a condition."""
    return sql.destroys(query) or _QUERY.search(query[:100_000]) is not None
