"""Clients of servers that take data in: databases, stores of keys, brokers, clusters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pytest_saber.judge.network import publishers
from pytest_saber.judge.network.address import host_of
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.shell.model import Command


@dataclass(frozen=True, slots=True)
class _Client:
    """`hosts`: options that name the server; `files`: options that name a file whose content goes there; `always`: whatever
    the words are, it takes data in; `position`: the operand that may be the server."""

    hosts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    always: bool = False
    position: int | None = None
    variable: str = ""


_CLIENTS: Mapping[str, _Client] = {
    "psql": _Client(("-h", "--host"), ("-f", "--file"), variable="PGHOST"),
    "pg_restore": _Client(("-h", "--host"), always=True, variable="PGHOST"),
    **dict.fromkeys(("mysql", "mariadb"), _Client(("-h", "--host"), variable="MYSQL_HOST")),
    "mysqlimport": _Client(("-h", "--host"), always=True),
    "cockroach": _Client(("--host", "--url"), ("-f", "--file")),
    "clickhouse-client": _Client(("-h", "--host"), ("--queries-file",)),
    "sqlcmd": _Client(("-S",), ("-i",)),
    "cqlsh": _Client((), ("-f", "--file"), position=0),
    **dict.fromkeys(("mongorestore", "mongoimport"), _Client(("-h", "--host", "--uri"), always=True)),
    **dict.fromkeys(("mongosh", "mongo"), _Client(("-h", "--host"), position=0)),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), _Client(("-h", "-u"))),
    "pgloader": _Client(always=True, position=1),
    "nats": _Client(("-s", "--server")),
    "amqp-publish": _Client(("-u", "--url", "-s", "--server"), always=True),
    "mqtt": _Client(("-h", "--host")),
    **dict.fromkeys(
        ("kafka-console-producer", "kafka-console-producer.sh"), _Client(("--bootstrap-server", "--broker-list"), always=True)
    ),
    "influx": _Client(("--host", "-host")),
    "sendemail": _Client(("-s",), always=True),
    **dict.fromkeys(("snmptrap", "snmpinform", "snmpset"), _Client(always=True, position=0)),
    "nsupdate": _Client(always=True),
}
_URL = re.compile(
    r"\A(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|nats|mqtts?|clickhouse|cockroachdb)://", re.IGNORECASE
)
_DSN_HOST = re.compile(r"\bhost=([\w.-]+)")
_PUTS_IN = re.compile(
    r"\b(?:INSERT|UPDATE|REPLACE|MERGE|COPY|LOAD\s+DATA|UPSERT|CREATE\s+TABLE|GRANT|ALTER)\b|\\copy\b.*\bfrom\b|\.insert(?:One|Many)?\(|"
    r"\.update(?:One|Many)?\(|\.replaceOne\(",
    re.IGNORECASE,
)
_PUTS_KEYS = re.compile(
    r"(?i:set|mset|setex|setnx|hset|hmset|lpush|rpush|sadd|zadd|xadd|publish|append|restore|eval|config|--pipe|-x)\Z"
)
_KEY_OPTIONS = frozenset(["-h", "-p", "-u", "-a", "-n", "--user", "--pass"])
_PUBLISHES = frozenset({"pub", "publish", "req", "request", "write", "put"})
_NEAR = re.compile(r"\.(?:internal|local|localdomain|lan|intra|intranet|corp|home|svc)\.?\Z", re.IGNORECASE)
"""Names of the house's own network."""
_FAR = re.compile(r"\A(?:[\w-]+\.)+[\w-]{2,}\Z|\A\[?[0-9a-fA-F:]*:[0-9a-fA-F:]+\]?\Z")


def contact(command: Command) -> Iterator[Contact]:
    """What such a client would put into a server on another machine; a question that it asks is none."""
    client = _CLIENTS[command.program]
    host = _host(command, client)
    if host and _FAR.match(host) and _NEAR.search(host) is None and (client.always or _puts_in(command, client)):
        yield Contact(command, Way.SEND, host.lower(), f"{command.program} to a server", host)


def _host(command: Command, client: _Client) -> str:
    for word in command.words:
        if _URL.match(word):
            return host_of(word)
        if "host=" in word and not word.startswith("-") and (match := _DSN_HOST.search(word)):
            return match[1]
    for option in client.hosts:
        if value := command.option(option):
            return host_of(value.split(",")[0])
    if client.position is not None:
        operands = [word for word in command.words if not word.startswith("-")]
        if len(operands) > client.position:
            return host_of(operands[client.position])
    given = command.assignments.get(client.variable)
    return given.text if given is not None else ""


def _puts_in(command: Command, client: _Client) -> bool:
    words = command.words
    if command.program in {"nats", "mqtt", "influx"}:
        return bool(_PUBLISHES & {*words[:3]})
    if command.program.endswith("-cli"):
        said = [
            word for before, word in zip(("", *words), words, strict=False) if word[:1] != "-" and before not in _KEY_OPTIONS
        ]
        return any(_PUTS_KEYS.match(word) for word in (*said[:1], *words)) or (not said and _is_fed(command))
    if any(_PUTS_IN.search(word) for word in words):
        return True
    text = command.given
    if text is not None:
        return _PUTS_IN.search(text[:100_000]) is not None
    named = any(command.option(option) for option in client.files)
    return named or _is_fed(command)


def _is_fed(command: Command) -> bool:
    """Whether something comes in by the standard input."""
    given = (r for r in command.redirects if r.op.startswith("<") and (r.target is None or r.target.text != "/dev/null"))
    return bool(command.feeds) or any(given)


def _cluster(command: Command) -> Iterator[Contact]:
    """A copy into a container of a cluster, what a program in one is given, and what a cluster is told to run."""
    yield from publishers.contact(command)
    words = command.words
    operands = [word for before, word in zip(("", *words), words, strict=False) if word[:1] != "-" and before not in _VALUED]
    verb = operands[0] if operands else ""
    if verb in {"cp", "rsync"} and len(operands) > 2 and ":" in operands[2] and ":" not in operands[1]:
        yield Contact(command, Way.PUBLISH, "", f"{command.program} {verb}", operands[2])
    elif verb == "exec" and command.has_flag("i", "--stdin") and _is_fed(command):
        yield Contact(command, Way.PUBLISH, "", f"{command.program} exec", " ".join(operands[1:3]))


_VALUED = frozenset({"-n", "--namespace", "-c", "--container", "--context", "--kubeconfig", "--cluster"})

READERS: Mapping[str, Callable[[Command], Iterator[Contact]]] = {
    **dict.fromkeys(_CLIENTS, contact),
    **dict.fromkeys(("kubectl", "oc"), _cluster),
}
