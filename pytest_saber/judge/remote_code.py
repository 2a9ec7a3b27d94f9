"""Program text that destroys data of a server through its driver: SQL in literals, and calls of the usual client libraries."""

from __future__ import annotations

import re

from pytest_saber.judge import sql

_MAX_CODE = 100_000
_MAX_SQL = 50_000
"""Characters of a text in which literals are looked for; quotes that nothing closes cost the most."""
_SQL_DRIVER = re.compile(
    r"psycopg|asyncpg|pg8000|pymysql|aiomysql|mysql[.\d]?(?:connector)?|MySQLdb|mariadb|require\(\s*['\"](?:pg|postgres|mssql|oracledb)['\"]|"
    r"pymssql|pyodbc|cx_Oracle|oracledb|clickhouse|snowflake|postgres(?:ql)?(?:\+\w+)?://|(?:pgsql|mysql):|pg_connect|mysqli|"
    r"dbi:(?:Pg|mysql)|PG\.connect|cassandra",
    re.IGNORECASE,
)
_LITERAL = re.compile(
    r"\"\"\"(.{0,20000}?)\"\"\"|'''(.{0,20000}?)'''|`([^`]{0,20000}+)`|\"((?:[^\"\\\n]|\\.){0,1000}+)\"|'((?:[^'\\\n]|\\.){0,1000}+)'",
    re.DOTALL,
)
_CALLS: tuple[tuple[str, str, str], ...] = (
    (r"redis|valkey|keydb", r"\.(?:flush_?all|flush_?db)\b", "every key of a server"),
    (
        r"mongo",
        r"\.(?:drop_?database|drop_collection|dropCollection|drop)\s*\(|\.delete_?many\s*\(\s*(?:\{\s*\}\s*)?[,)]|dropDatabase",
        "a database",
    ),
    (
        r"boto3|aws-sdk|aiobotocore|Aws::",
        r"\.delete_(?:bucket|objects|table|db_\w+|cluster|stream|log_group|queue|repository|snapshot|volume|file_system)\s*\(|"
        r"\.all\(\)\.delete\(|\.(?:object_versions|objects)\.(?:filter\([^)\n]{0,200}\)\.)?delete\(|terminate_instances|purge_queue|"
        r"Delete(?:Bucket|Objects|Table|DBInstance|Cluster|Stack)Command|\.delete(?:Bucket|Objects|Table|DBInstance|Stack)\s*\(",
        "cloud resources",
    ),
    (r"elasticsearch|opensearch", r"indices\.delete\s*\(|delete_?by_?query\s*\(", "an index of a server"),
    (r"minio", r"\.remove_(?:bucket|objects)\s*\(", "a bucket"),
    (
        r"qdrant|chromadb|weaviate|pinecone|milvus",
        r"\.(?:delete_collection|drop_collection|delete_index|delete_all)\s*\(",
        "a collection",
    ),
    (r"kafka", r"\.(?:delete_topics|deleteTopics|delete_records)\s*\(", "messages of a broker"),
    (
        r"kubernetes",
        r"\.delete_(?:namespace|namespaced_(?:persistent|stateful|deployment)|collection_)\w*\s*\(",
        "resources of a cluster",
    ),
)
_LIBRARIES = tuple((re.compile(library, re.IGNORECASE), re.compile(call), label) for library, call, label in _CALLS)
_SOME_KEYS = (re.compile(r"redis|valkey|keydb", re.IGNORECASE), re.compile(r"\.(?:delete|del|unlink|hdel)\s*\("))
_ORM = re.compile(
    r"django|sqlalchemy|peewee|tortoise|active_?record|sequelize|prisma|typeorm|mongoose|Illuminate|Ecto", re.IGNORECASE
)
_ORM_DELETES = re.compile(
    r"\.objects\b[^;\n]{0,200}\.(?:delete|_raw_delete)\(|\.(?:delete_all|destroy_all|deleteMany|truncate)\b|\.destroy\(\s*\{|"
    r"\.query\([^;\n]{0,200}\)[^;\n]{0,200}\.delete\(|\bdrop_all\(|\.delete\(\)\.execute\("
)


def destroyed_by_code(code: str) -> str | None:
    """What the text would destroy on a server, or None."""
    if len(code) > _MAX_CODE:
        return None
    for library, call, label in _LIBRARIES:
        if library.search(code) and call.search(code):
            return label
    if _SQL_DRIVER.search(code) and any(sql.destroys(text) for text in _literals(code)):
        return "rows or tables of a server"
    return None


def deletes_some_by_code(code: str) -> bool:
    """Whether it deletes single rows or keys of a server."""
    if len(code) > _MAX_CODE:
        return False
    if _SQL_DRIVER.search(code) and any(sql.deletes_some(text) for text in _literals(code)):
        return True
    if _ORM.search(code) and ":memory:" not in code and _ORM_DELETES.search(code):
        return True
    return all(pattern.search(code) for pattern in _SOME_KEYS)


def _literals(code: str) -> list[str]:
    return [
        next(group for group in match.groups() if group is not None)
        for match, _ in zip(_LITERAL.finditer(code[:_MAX_SQL]), range(300), strict=False)
    ]
