"""What program text, such as that of `python -c` or a heredoc to `node`, would do on the network."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge.network.address import URL, host_of
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.shell.model import Command
from pytest_saber.judge.shell.program_text import MAX_CODE

_SENDS = re.compile(
    r"(?:\.|->)(?:post|put|patch|sendall|sendto|storbinary|storlines|sendmail|send_message|upload_file|upload_fileobj|"
    r"put_object|"
    r"create_connection|post_form)\s*\(|\.connect\s*\(\s*\(|\b(?:ssh|client|ftp|smtp|sock\w{0,20}|s)\.connect\s*\("
    r"|\brequest\(\s*['\"](?:POST|PUT|PATCH)"
    r"|\bmethod['\"]?\s*(?:=>|[=:])\s*['\"](?:POST|PUT|PATCH)|[(,]\s*(?:data|files|json|content)\s*=|\bbody\s*:"
    r"|\bRequest\([^),]{0,500},\s*(?!headers|method|origin_req_host|unverifiable|\{)\w"
    r"|CURLOPT_POSTFIELDS|/inet6?/(?:tcp|udp)/|dgram|tls\.connect|Net::HTTP\.post|::Post\.new|IO::Socket|TCPSocket|"
    r"fsockopen|\bnet(?:['\"]\s*\))?\.(?:connect|createConnection)"
    r"|https?\.request\b[\s\S]{0,2000}?\.(?:write|end)\(\s*[^)\s]"
)
_IN_ADDRESS = re.compile(
    r"\b(?:urlopen|get|fetch|request|open)\(\s*(?:f['\"][^'\"\n]{0,500}\{|`[^`]{0,500}\$\{|"
    r"['\"][^'\"\n]{0,500}['\"]\s*(?:[+%]|\.format))"
    r"|\b(?:params|headers|cookies)\s*=\s*\{[^{}]{0,500}:\s*(?:f['\"]|[A-Za-z_(])"
)
"""Something that run time knows goes with a plain GET: in the address, or as the value of a parameter or header."""
# A name is a host where a network function takes it or a port follows it: `sqlite3.connect("birds.db")` names a file.
_NAME = r"['\"]((?:[\w-]+\.)+[a-z]{2,}|\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?['\"]"
_HOST = re.compile(
    rf"(?:HTTPS?Connection|ConnectionParameters|FTP|FTP_TLS|SMTP|SMTP_SSL|IMAP4|getaddrinfo|gethostbyname|resolve|lookup|createConnection"
    rf"|PeerAddr\s*=>|PeerHost\s*=>|TCPSocket\.new|TCPSocket\.open|fsockopen|host(?:name)?\s*[:=]>?)\s*+(?:\(\s*+)?{_NAME}"
    rf"|{_NAME}\s*,\s*(?:port\s*=\s*)?\d{{1,5}}\b"
    rf"|(?:connect|createConnection|send)\s*\([^()]{{0,200}}?\b\d{{1,5}}\s*,\s*{_NAME}"
    r"|/inet6?/(?:tcp|udp)/\d+/([\w.-]+)/\w+"
)
_DSN = re.compile(
    r"\b(?:paramiko|asyncssh|fabric)\b[\s\S]{0,2000}?\b(?:connect|Connection)\(\s*['\"](?:\w+@)?((?:[\w-]+\.)+[a-z]{2,})['\"]|\bhost=((?:[\w-]+\.)+[a-z]{2,})\b"
)
_PUTS_IN = re.compile(
    r"\.execute\w*\(\s*f?['\"]{1,3}\s*(?i:INSERT|UPDATE|COPY|REPLACE|MERGE)\b|\bRedis\b[\s\S]{0,2000}?\.(?:set|hset|lpush|rpush|publish|xadd)\(|"
    r"\.(?:basic_publish|insert_one|insert_many|bulk_write|copy_from|copy_expert)\(|\bpaho\b[\s\S]{0,2000}?\.(?:single|multiple|publish)\("
)
"""Something is put into a database or a broker."""
_SERVICES: tuple[tuple[re.Pattern[str], re.Pattern[str], str], ...] = tuple(
    (
        re.compile(rf"(?:\bimport|\bfrom)\s+(?:\w+,\s*)*(?:{library})|(?:require\(|\bfrom)\s*['\"](?:{library})"),
        re.compile(call),
        words,
    )
    for library, call, words in (
        (
            r"boto3|aiobotocore|@?aws-sdk|minio",
            r"\.(?:upload_file|upload_fileobj|put_object|fput_object|send_message|invoke)\(|PutObjectCommand",
            "a bucket or queue",
        ),
        (r"google\.cloud|@google-cloud", r"\.(?:upload_from_\w+|insert_rows\w*|publish|upload)\(", "a cloud"),
        (r"azure\.|@azure/", r"\.(?:upload_blob|uploadData|uploadFile|send_messages?)\(", "a cloud"),
        (
            r"slack_sdk|slack_bolt|@slack/|discord|telegram|telebot|twilio|sendgrid|mailgun|pushover|pushbullet",
            r"\.(?:chat_postMessage|files_upload\w*|postMessage|send_\w+|sendMessage|create|send)\(",
            "a messenger",
        ),
        (
            r"openai|anthropic|google\.generativeai|litellm|cohere|mistralai|groq",
            r"\.(?:create|generate_content|completion|complete|chat|messages)\(|\bcompletion\(",
            "a model's service",
        ),
        (
            r"huggingface_hub|wandb|mlflow|comet_ml|neptune",
            r"(?:upload_\w+|push_to_hub|log_artifacts?|wandb\.init)\(",
            "a hub",
        ),
        (
            r"sentry_sdk|datadog|posthog|segment|mixpanel|rollbar|bugsnag",
            r"\.(?:capture_\w+|capture|track|send_log|report_\w+|notify)\(",
            "a tracker",
        ),
    )
)
"""Libraries that know the address of what they send to: library, call, what is at the other end."""
_STANDS_IN = re.compile(
    r"mock|moto\b|localstack|responses\.|base_url\s*=\s*f?['\"]https?://(?:localhost|127\.)|endpoint_url\s*=\s*f?['\"]https?://(?:localhost|127\.)"
)
_JOINED = re.compile(r"(?:\+\s*f?['\"]|\}|%s)\.((?:[\w-]+\.)+[a-z]{2,})\b")
_NETWORK = (
    "http",
    "ftp",
    "ws",
    "tcp:",
    "udp:",
    "ssl:",
    "tls:",
    "smtp",
    "mqtt",
    "amqp",
    "postgres",
    "mysql",
    "redis",
    "mongodb",
)
_CONNECTS = re.compile(
    r"redis|psycopg|pymysql|mysql|asyncpg|pika|mqtt|paramiko|pymongo|kafka|socket|/inet|connect|Socket|HTTPS?Connection|FTP\(|SMTP|getaddrinfo|gethostbyname|\bdns\b|urlopen|requests\.|fetch\(|http"
)


def code_contacts(command: Command) -> Iterator[Contact]:
    """By the addresses and hosts that the text names; a module that it imports may be what sends to them."""
    if len(command.code or "") > MAX_CODE:
        return
    code = _without_comments(command.code or "")
    urls = [match[0] for match in URL.finditer(code) if match[0].lower().startswith(_NETWORK)]
    yield from _services(command, code)
    texts = (code, *(_without_comments(module.text) for module in command.modules if module.direct))
    sends = any(pattern.search(text) for pattern in (_SENDS, _IN_ADDRESS, _PUTS_IN) for text in texts)
    for url in urls[:20]:
        yield Contact(command, Way.SEND if sends else Way.FETCH, host_of(url), "program text", url)
    joined = [match[1].lower() for match in _JOINED.finditer(code)][:20] if _CONNECTS.search(code) or urls else []
    for host in joined:
        yield Contact(command, Way.SEND, host, "data in a host name", host)
    if not urls and not joined and _CONNECTS.search(code):
        for match in [*list(_HOST.finditer(code))[:20], *list(_DSN.finditer(code))[:20]]:
            name = next(group for group in match.groups() if group)
            logs_in = match.re is _DSN and match[1] is not None
            yield Contact(command, Way.SEND if sends or logs_in else Way.LOOKUP, name.lower(), "program text", name)


def _services(command: Command, code: str) -> Iterator[Contact]:
    if _STANDS_IN.search(code):
        return
    for library, call, words in _SERVICES:
        if library.search(code) and call.search(code):
            yield Contact(command, Way.PUBLISH, "", f"program text sends to {words}", "")


def _without_comments(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith(("#", "//")))
