"""What the usual network programs would do, by their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from pytest_saber.judge.network import publishers
from pytest_saber.judge.network.address import fixed_suffix, host_of, is_computed, remote_host
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.network.http import curl, fetcher, wget
from pytest_saber.judge.shell.model import Command, Word

_HOST = re.compile(
    r"\A(?:[\w-]+\.)+[a-zA-Z]{2,}\Z|\A\d{1,3}(?:\.\d{1,3}){3}\Z|\A\[?[0-9a-fA-F:]{0,40}:[0-9a-fA-F:]{1,40}\]?\Z|\Alocalhost\Z"
)


def _netcat(command: Command) -> Iterator[Contact]:
    if command.program == "socat":
        for word in command.args:
            match = re.match(r"(?:TCP4?|TCP6|UDP|OPENSSL|SSL|SOCKS4A?)(?:-CONNECT)?:([^:,]+)", word.text, re.IGNORECASE)
            if match:
                yield Contact(command, Way.SEND, match[1], "raw connection", word.text)
        return
    if command.program == "openssl":
        if command.words[:1] == ("s_client",) and (address := command.option("-connect")):
            yield Contact(command, Way.SEND, host_of(address), "raw connection", address)
        return
    if command.has_flag("l", "--listen") or command.has_flag("z"):
        return
    operands = [word.text for word in command.args if not word.text.startswith("-")]
    hosts = [word for word in operands if not word.isdigit()]
    if hosts:
        yield Contact(command, Way.SEND, hosts[0].lower(), "raw connection", " ".join(operands))


def _copy(command: Command) -> Iterator[Contact]:
    operands = [word.text for word in command.args if not word.text.startswith("-")]
    for position, text in enumerate(operands):
        host = remote_host(text)
        if host is not None:
            last = position == len(operands) - 1
            yield Contact(
                command,
                Way.SEND if last else Way.FETCH,
                host,
                "copy to another host" if last else "copy from another host",
                text,
            )


_SSH_ONLY_LOOKS = re.compile(r"-[1246AaCfgKkMNnqsTtvXxYy]*[GVQO]")
"""It prints settings or algorithms, or speaks with a connection of this machine that is open already."""


def _ssh(command: Command) -> Iterator[Contact]:
    skip = False
    for word in command.args:
        if skip:
            skip = False
        elif command.program != "mosh" and _SSH_ONLY_LOOKS.match(word.text):
            return
        elif re.fullmatch(r"-[1246AaCfgKkMNnqsTtvXxYy]*[BbcDEeFIiJLlmopRSWw]", word.text):
            skip = True
        elif not word.text.startswith("-"):
            host = host_of(word.text) if "://" in word.text else word.text.rpartition("@")[2].lower()
            yield Contact(command, Way.LOGIN, host, "remote session", word.text)
            return


def _ftp(command: Command) -> Iterator[Contact]:
    for word in command.args:
        if not word.text.startswith("-") and (
            host := remote_host(word.text) or (name if _HOST.match(name := word.text.rpartition("@")[2]) else None)
        ):
            yield Contact(command, Way.SEND, host, "file transfer", word.text)
            return


def _lookup(command: Command) -> Iterator[Contact]:
    for word in command.args:
        if word.text.startswith(("-", "+")):
            continue
        if is_computed(word.text):
            if suffix := fixed_suffix(word.text):
                yield Contact(command, Way.SEND, suffix, "data in a host name", word.text)
        elif "." in word.text:
            yield Contact(command, Way.LOOKUP, word.text.lstrip("@").lower(), "name look-up", word.text)


GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})


def git_words(command: Command) -> tuple[str, tuple[Word, ...], tuple[str, ...]]:
    """Of a git command: subcommand, its arguments, and the `-c` settings before it."""
    position, settings = 0, []
    args = command.args
    while position < len(args):
        text = args[position].text
        if text in GIT_VALUED:
            if text == "-c" and position + 1 < len(args):
                settings.append(args[position + 1].text)
            position += 2
        elif text.startswith("-"):
            position += 1
        else:
            return text, args[position + 1 :], tuple(settings)
    return "", (), tuple(settings)


def _git(command: Command) -> Iterator[Contact]:
    subcommand, args, _ = git_words(command)
    operands = [word for word in args if not word.text.startswith("-")]
    if subcommand == "push" and not {"--dry-run", "-n"} & {word.text for word in args}:
        target = operands[0].text if operands else "origin"
        yield Contact(command, Way.PUSH, remote_host(target) or "", "git push", target)
    elif subcommand in {"clone", "fetch", "pull", "ls-remote"} and operands:
        host = remote_host(operands[0].text)
        if host is not None:
            yield Contact(command, Way.FETCH, host, f"git {subcommand}", operands[0].text)
    elif subcommand == "send-email":
        to = command.option("--to", "--cc") or ""
        yield Contact(command, Way.SEND, to.rpartition("@")[2].strip("> ").lower(), "mail", to)


def _mail(command: Command) -> Iterator[Contact]:
    addresses = [word.text for word in command.args if "@" in word.text]
    for address in addresses:
        yield Contact(command, Way.SEND, address.rpartition("@")[2].lower(), "mail", address)


_COPIES = frozenset(
    ["cp", "mv", "sync", "copy", "copyto", "move", "moveto", "rsync", "mirror", "put", "rcat", "put-object", "upload-part"]
)
_REHEARSES = frozenset({"--dryrun", "--dry-run", "--help", "help"})


def _bucket(command: Command) -> Iterator[Contact]:
    """A copy into a bucket, or a deployment; listing, fetching, removing and rehearsing send nothing."""
    if command.program in publishers.VERBS:
        yield from publishers.contact(command)
    operands = [word.text for word in command.args if not word.text.startswith("-")]
    verb = next((position for position, word in enumerate(operands) if word in _COPIES), None)
    if verb is None or _REHEARSES & set(command.words):
        return
    if operands[verb] in {"put-object", "upload-part"}:
        targets = [command.option("--bucket") or ""]
    else:
        pattern = r"(?![./~])" if command.program == "mc" else r"(?:s3|gs|az|https?)://|\w+:"
        targets = [word for word in operands[verb + 2 :] if re.match(pattern, word)]
    if targets:
        yield Contact(command, Way.PUBLISH, "", f"{command.program} copy to {targets[-1]}", targets[-1])


READERS: Mapping[str, Callable[[Command], Iterator[Contact]]] = {
    "curl": curl,
    "wget": wget,
    **dict.fromkeys(("aria2c", "axel", "lynx", "w3m", "links", "elinks", "GET", "POST", "lwp-request"), fetcher),
    **dict.fromkeys(("nc", "ncat", "netcat", "telnet", "socat", "openssl"), _netcat),
    **dict.fromkeys(("scp", "rsync"), _copy),
    **dict.fromkeys(("ssh", "autossh", "mosh"), _ssh),
    **dict.fromkeys(("sftp", "ftp", "lftp", "tftp", "ncftpput"), _ftp),
    **dict.fromkeys(("ping", "ping6", "nslookup", "dig", "host", "drill", "traceroute", "getent"), _lookup),
    "git": _git,
    **dict.fromkeys(("mail", "mailx", "mutt", "sendmail", "msmtp", "swaks"), _mail),
    **dict.fromkeys(publishers.VERBS, publishers.contact),
    **dict.fromkeys(("aws", "az", "gsutil", "gcloud", "rclone", "azcopy", "s3cmd", "mc"), _bucket),
}
