"""What clients of HTTP would fetch and send, by their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pytest_saber.judge.network.address import DYNAMIC_START, fixed_suffix, host_of, is_computed
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.shell.model import Command, Word

_CURL_VALUED = frozenset(
    [
        "-o",
        "-O",
        "-H",
        "-A",
        "-e",
        "-u",
        "-x",
        "-b",
        "-c",
        "-m",
        "-w",
        "-K",
        "-C",
        "-E",
        "-r",
        "-t",
        "-y",
        "-Y",
        "-z",
        "-Q",
        "-P",
        "-D",
        "-U",
        "--output",
        "--header",
        "--user-agent",
        "--referer",
        "--user",
        "--proxy",
        "--cookie",
        "--cookie-jar",
        "--max-time",
        "--write-out",
        "--config",
        "--connect-timeout",
        "--retry",
        "--retry-delay",
        "--cacert",
        "--cert",
        "--key",
        "--resolve",
        "--interface",
        "--range",
        "--dump-header",
        "--limit-rate",
        "--oauth2-bearer",
        "--proxy-user",
        "--ciphers",
        "--output-dir",
        "--unix-socket",
    ]
) - {"-O"}
_CURL_DATA = frozenset(
    [
        "-d",
        "-F",
        "-T",
        "--data",
        "--data-raw",
        "--data-binary",
        "--data-urlencode",
        "--data-ascii",
        "--form",
        "--form-string",
        "--upload-file",
        "--json",
        "--url-query",
    ]
)


def curl(command: Command) -> Iterator[Contact]:
    """What a `curl` fetches and sends."""
    urls: list[Word] = []
    data = False
    method = ""
    position, args = 0, command.args
    while position < len(args):
        text = args[position].text
        name, _, value = text.partition("=") if text.startswith("--") else (text, "", "")
        short = text[:2] if text.startswith("-") and not text.startswith("--") else ""
        if name in _CURL_DATA or short in _CURL_DATA:
            data = True
            position += 1 if value or (short and len(text) > 2) else 2
        elif name in {"-X", "--request"} or short == "-X":
            method = value or (
                text[2:] if short and len(text) > 2 else args[position + 1].text if position + 1 < len(args) else ""
            )
            position += 1 if value or (short and len(text) > 2) else 2
        elif name == "--url":
            if position + 1 < len(args):
                urls.append(args[position + 1])
            position += 2
        elif name in _CURL_VALUED and not value:
            position += 2
        elif short and len(text) > 2:
            last = "-" + text[-1]
            if last == "-X" and position + 1 < len(args):
                method = args[position + 1].text
            data = data or any("-" + letter in {"-d", "-F", "-T"} for letter in text[1:])
            method = method or ("POST" if data else "")
            position += 2 if last in _CURL_VALUED or last in _CURL_DATA or last == "-X" else 1
        elif text.startswith("-") and len(text) > 1:
            position += 1
        else:
            urls.append(args[position])
            position += 1
    data = data or any(url.text.startswith(("telnet://", "smtp://", "smtps://", "gopher://", "mqtt://")) for url in urls)
    sends = data or method.upper() in {"POST", "PUT", "PATCH", "DELETE"}
    for url in urls:
        yield from request(command, url, sends, "upload" if data else method.upper() or "request")
    credentials = any(word.text in {"-u", "--user", "-H", "--header"} for word in args)
    if not urls and (sends or credentials):
        yield Contact(command, Way.SEND if sends else Way.FETCH, "", "request to an address only known at run time")


def request(command: Command, url: Word, sends: bool, detail: str) -> Iterator[Contact]:
    """What one URL of a client of HTTP comes to, where its host or a part of its address is only known at run time too."""
    host = host_of(url.text) if not is_computed(url.text) else fixed_suffix(url.text)
    computed = url.runs and (DYNAMIC_START.match(url.text) is None or bool(fixed_suffix(url.text)))
    if computed or (url.variables and _data_in_url(url)):
        yield Contact(command, Way.SEND, host, "data in the address", url.text)
    else:
        yield Contact(command, Way.SEND if sends else Way.FETCH, host, detail, url.text)


def _data_in_url(url: Word) -> bool:
    """A variable after the path began, as in `https://host/?t=$TOKEN`; a plain base URL in a variable is not data."""
    place = url.source.find("$")
    return 0 <= url.source.find("://") < place and "?" in url.source[:place]


def saved_as(command: Command, fetched: Iterable[Contact]) -> Iterator[tuple[Contact, str]]:
    """The absolute path that a `curl` or `wget` writes what it fetches to, of those that do not go to standard output."""
    letter, long = ("o", "--output") if command.program == "curl" else ("O", "--output-document")
    name = command.option(long) or ""
    for position, word in enumerate(command.words):
        if re.fullmatch(rf"-[a-zA-Z#]*{letter}", word) and position + 1 < len(command.words):
            name = command.words[position + 1]
        elif word.startswith(f"-{letter}") and len(word) > 2 and not word.startswith("--"):
            name = word[2:]
    remote = not name and (command.program == "wget" or command.has_flag("O", "--remote-name"))
    for redirect in command.redirects:
        if redirect.writes and redirect.target is not None:
            name, remote = redirect.target.text, False
    for contact in fetched:
        target = contact.target.split("?")[0].rstrip("/").rpartition("/")[2] if remote else name
        if target and target != "-" and (path := command.absolute(target)):
            yield contact, path


def fetcher(command: Command) -> Iterator[Contact]:
    """Of other programs that are given addresses: what they fetch, and what they send where an option says so."""
    sends = any(re.match(r"-{1,2}post(?:[-_]data)?\b", word) for word in command.words) or command.program == "POST"
    for word in command.args:
        if "://" in word.text and not word.text.startswith(("-", "file://")):
            yield from request(command, word, sends, "upload" if sends else "request")


def wget(command: Command) -> Iterator[Contact]:
    """What a `wget` fetches and sends."""
    sends = any(
        word.text.startswith(("--post-data", "--post-file", "--body-data", "--body-file", "--method=P"))
        for word in command.args
    )
    skip = False
    for word in command.args:
        if skip:
            skip = False
        elif word.text in {
            "-O",
            "-o",
            "-P",
            "--header",
            "-U",
            "--user-agent",
            "--post-data",
            "--post-file",
            "--body-data",
            "--method",
            "-e",
        }:
            sends |= word.text in {"--post-data", "--post-file", "--body-data"}
            skip = True
        elif not word.text.startswith("-"):
            yield from request(command, word, sends, "upload" if sends else "request")
