"""Commands and queries that destroy data which the workspace's own state does not hold: servers, volumes, clouds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pytest_saber.judge import key_values, sql, tools
from pytest_saber.judge.shell.model import Command, Word
from pytest_saber.judge.shell.wrappers import SQL_CLIENTS, elsewhere, program_name

_COMMANDS: tuple[tuple[str, str], ...] = (
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
    (r"pg_restore\b.* (?:-[a-zA-Z]*c[a-zA-Z]*|--clean)\b(?=.* (?:-d|--dbname))", "the tables of a database"),
    (r"(?:kafka-topics|kafka-delete-records)(?:\.sh)?\b.* --delete\b|kafka-delete-records(?:\.sh)?\b", "messages of a broker"),
    (r"mongorestore\b.* --drop\b|influxd? restore\b.* --full\b", "collections of a database"),
    (
        r"(?:aws s3 sync\b.* --delete|gsutil\b.* rsync\b.* -[a-zA-Z]*d|rclone (?:sync|purge|delete|deletefile)|"
        r"s3cmd\b.* --delete-removed)\b",
        "objects of a bucket",
    ),
    (r"rsync\b.* --delete(?:-\w+)?\b.* (?:[\w.-]+@)?[\w.-]+:\S*(?:\s|\Z)", "files of another machine"),
    (r"rabbitmqadmin\b.* (?:purge|delete) (?:queue|exchange|vhost)", "messages of a broker"),
    (r"rabbitmqctl\b.* (?:purge_queue|delete_queue|delete_vhost|(?:force_)?reset)\b", "messages of a broker"),
    (
        r"(?:nats stream|pulsar-admin topics|gcloud pubsub (?:topics|subscriptions)) (?:rm|purge|delete)\b",
        "messages of a broker",
    ),
    (
        r"etcdctl\b.* del\b.* (?:--prefix|--from-key)|consul kv delete\b.* -recurse|zkCli\S*\b.* (?:deleteall|rmr)\b",
        "keys of a store",
    ),
    (r"bq\b.* rm\b.* -[a-zA-Z]*[rf]|az (?:group|sql db|storage \w+|cosmosdb) delete\b", "cloud resources"),
    (
        r"(?:curl|http|wget)\b.*(?:\b|-X)DELETE\b.* (?:https?://)?[\w.-]+:(?:9200|9201|5984|"
        r"6333|8086|8529|8983)/[^/?\s]+/?(?:\s|\Z)",
        "an index or a database of a server",
    ),
    (
        r"(?:curl|http|wget)\b.*DELETE\b.*/(?:indexes|indices|collections|databases|buckets|tables)/[^/\s]+/?(?:\s|\Z)",
        "a collection of a server",
    ),
    (r"(?:curl|http)\b.*_delete_by_query\b.*match_all", "an index or a database of a server"),
    (r"influx\b.*\bDROP (?:MEASUREMENT|DATABASE|SERIES)", "a database"),
)
_MIGRATIONS: tuple[str, ...] = (
    r"prisma (?:migrate reset|db push\b.*--(?:force-reset|accept-data-loss))",
    r"(?:bin/)?(?:rails|rake) (?:\S+=\S+ )*db:(?:drop|reset|schema:load|structure:load|purge|truncate_all|migrate:reset)",
    r"(?:(?:python3?|\./)\s*)?(?:\S*/)?manage\.py (?:flush|reset_db|sqlflush|migrate \w+ zero)\b",
    r"(?:sequelize|sequelize-cli) (?:db:drop|db:migrate:undo:all)",
    r"knex (?:migrate:rollback\b.*--all|migrate:down --all)",
    r"typeorm(?:-ts-node-\w+)? (?:schema:drop|\S*schema:drop)",
    r"drizzle-kit (?:drop|push\b.*--force)",
    r"flyway\b.* clean\b",
    r"liquibase\b.* (?:drop-?all|rollback-count)\b",
    r"(?:php )?artisan (?:migrate:(?:fresh|reset|refresh)|db:wipe)",
    r"mix ecto\.(?:drop|reset)",
    r"supabase db reset\b",
    r"heroku (?:pg:reset|redis:reset|addons:destroy)",
    r"alembic\b.* downgrade (?:\S+:)?base\b",
    r"flask\b.* db downgrade\b",
    r"(?:python3? )?(?:\S*/)?(?:bin/console|console) doctrine:(?:database|schema):drop",
    r"diesel database reset|sqlx database (?:drop|reset)|goose\b.* reset\b|dbmate drop\b|atlas schema clean\b",
)
_THROWAWAY = re.compile(r"sqlite|:memory:|/tmp/|mktemp|\btest(?:ing)?\b|_test\b", re.IGNORECASE)
"""A database that an assignment before the command names, and that nobody keeps."""
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.){0,2000}'|\"(?:[^\"\\\n]|\\.){0,2000}\"|//[^\n]*|/\*.{0,2000}?\*/", re.DOTALL)
_MONGO = re.compile(
    r"\bdropDatabase\s*:|\.(?:dropDatabase|drop|dropCollection)\s*\(|\.(?:deleteMany|remove)\s*\(\s*(?:\{\s*\}\s*)?[,)]"
)
_STATEMENTS = re.compile(r"\s(?:-[a-zA-Z]*[ce]|--command=?|--execute=?|--query=?)\s*")
_REMOVES_TREE = re.compile(r"(?:sudo )?(?:rm\b.* -[a-zA-Z]*[rR]|find\b.* -delete\b|mkfs|dd\b.* of=/dev/|shred\b)")
_PATTERNS = tuple((re.compile(rf"\A{pattern}", re.IGNORECASE), label) for pattern, label in _COMMANDS)
_RESETS = tuple(re.compile(rf"\A{pattern}") for pattern in _MIGRATIONS)
_HARMLESS = re.compile(r"--dry-run|--dryrun|\bplan\b|--help\b|-h\b$|\s--sql\Z|\sdowngrade\b.*\s--sql\b")
_ORM_SHELL = re.compile(
    r"(?:python3?\s+)?(?:\S*/)?manage\.py (?:\S+ )?(?:shell|shell_plus|dbshell)\b|"
    r"(?:\S*/)?(?:rails|rake) (?:r|runner|c|console|dbconsole)\b|"
    r"(?:php )?(?:\S*/)?artisan (?:tinker|db)\b|flask shell\b|mix (?:run|eval)\b|iex\b"
)
_ORM_DELETES = re.compile(
    r"\.objects\b[^;\n]{0,200}\.(?:delete|_raw_delete)\(|\b(?:delete_all|destroy_all|deleteMany|delete_many)\b|::truncate\(|"
    r"->(?:delete|truncate)\(|\.truncate\b|TRUNCATE\s|DROP\s+TABLE|\.query\([^;\n]{0,200}\)[^;\n]{0,200}\.delete\(",
)
_TAKES_SQL = frozenset(["wrangler", "turso", "supabase", "heroku", "gcloud", "aws", "bq", "pscale", "neonctl", "fly", "flyctl"])
_CYPHER = re.compile(r"\b(?:DETACH\s+DELETE|DELETE\s+[a-z]\w*\s*\Z|DROP\s+DATABASE)", re.IGNORECASE)
_QUERY = re.compile(r"\b(?:FLUSHALL|FLUSHDB)\b|dropDatabase", re.IGNORECASE)


def destroyed_by(command: Command) -> str | None:
    """What the command would destroy on a server, or None. A dry run destroys nothing."""
    line = " ".join((command.program, *command.words))[:4_000]
    if _HARMLESS.search(line):
        return None
    if remote := elsewhere(command.program, command.words):
        text = remote.strip("\"'")
        found = _line(text) or next((what for inner in _commands(command, text) if (what := _by_tool(inner))), None)
        return found or ("files of another machine" if _REMOVES_TREE.match(text) else None)
    if any(pattern.match(line) for pattern in _RESETS):
        given = [*(word.text for word in command.assignments.values()), command.environment.get("DATABASE_URL", "")]
        return None if any(_THROWAWAY.search(text) for text in given) else "the database that the migrations belong to"
    if command.program in {"mongo", "mongosh"}:
        return "a database" if any(_MONGO.search(_LITERAL.sub("''", text)) for text in _texts(command)) else None
    if found := _line(line) or _by_tool(command):
        return found
    if command.program == "cypher-shell" and any(_CYPHER.search(text) for text in _texts(command)):
        return "a database"
    if command.program == "arangosh" and any("._drop" in text or ".truncate(" in text for text in _texts(command)):
        return "a database"
    if command.program == "duckdb" and ":memory:" not in command.words and any(sql.destroys(text) for text in _texts(command)):
        return "rows or tables of a database"
    if command.program in _TAKES_SQL and any(sql.destroys(word) for word in command.words):
        return "rows or tables of a server"
    if command.program == "pg_restore" and command.has_flag("c", "--clean") and command.option("-d", "--dbname"):
        return "the tables of a database"
    if command.program in SQL_CLIENTS and any(sql.destroys(text) for text in (*command.words, command.given or "")):
        return "rows or tables of a server"
    return None


def _texts(command: Command) -> tuple[str, ...]:
    return (*command.words, *(redirect.body or "" for redirect in command.redirects), command.given or "")


def _by_tool(command: Command) -> str | None:
    return "every key of a server" if key_values.deleted(command) == "all" else tools.destroyed(command)


def _commands(command: Command, text: str) -> Iterator[Command]:
    """The commands of a line that another machine runs, as far as they are plain words."""
    for part in re.split(r"&&|\|\||[;|\n]", text[:4_000])[:50]:
        words = [word.strip("\"'") for word in part.split()]
        words = words[1:] if words[:1] == ["sudo"] else words
        if words:
            args = tuple(Word(word, word) for word in words[1:])
            yield replace(command, program=program_name(words[0]), args=args, code=None, given=None)


def _line(line: str) -> str | None:
    found = next((label for pattern, label in _PATTERNS if pattern.match(line)), None)
    if found is None and any(pattern.match(line) for pattern in _RESETS):
        return "the database that the migrations belong to"
    if found is None and line.partition(" ")[0] in SQL_CLIENTS and (given := _STATEMENTS.search(line)) is not None:
        return "rows or tables of a server" if sql.destroys(line[given.end() :].strip("\"' ")) else None
    return found


def destroys(query: str) -> bool:
    """Whether a query drops, truncates, or deletes or updates without a condition."""
    return sql.destroys(query) or _QUERY.search(query[:100_000]) is not None


def deletes_some(command: Command) -> bool:
    """Whether the client of a server deletes rows under a condition, or single keys: no state shows which."""
    if key_values.deleted(command) == "some":
        return True
    if _ORM_SHELL.match(" ".join((command.program, *command.words))[:1_000]):
        return any(_ORM_DELETES.search(text[:100_000]) for text in _texts(command))
    return command.program in SQL_CLIENTS and any(sql.deletes_some(text) for text in (*command.words, command.given or ""))
