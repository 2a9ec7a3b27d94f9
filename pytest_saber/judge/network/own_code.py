"""Functions of the project that send, and program text that calls them: `from app.alerts import send; send("late")`.

The address is often not in the text: it comes from the environment or from a settings file. Then it counts where that is known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_saber.judge.network.address import URL, host_of
from pytest_saber.judge.network.contact import Contact, Way
from pytest_saber.judge.shell.model import Command, Module
from pytest_saber.judge.shell.modules import asked_names
from pytest_saber.judge.shell.program_text import MAX_CODE

_SENDS = re.compile(
    r"(?:\.|->)(?:post|sendall|sendto|storbinary|storlines|sendmail|send_message|upload_file|upload_fileobj|put_object|"
    r"post_form|postForm|publish)\s*\(|\.connect\s*\(\s*\(|\b(?:ssh|ftp|smtp|sock\w{0,20})\.connect\s*\("
    r"|\brequest\(\s*['\"](?:POST|PUT|PATCH)|\bmethod['\"]?\s*(?:=>|[=:])\s*['\"](?:POST|PUT|PATCH)"
    r"|\bRequest\([^),]{0,500},\s*(?!headers|method|origin_req_host|unverifiable|\{)\w|CURLOPT_POSTFIELDS|"
    r"Net::HTTP\.post|::Post\.new|IO::Socket|TCPSocket|fsockopen|\bnet\.(?:connect|createConnection)|create_connection\("
)
_MAY_SEND = re.compile(r"(?:\.|->)(?:put|patch)\s*\(|[(,]\s*(?:data|files|json|content)\s*=|\bbody\s*:")
_IS_NETWORK = re.compile(
    r"requests\.|httpx\.|urlopen|Request\(|\bsession\.|aiohttp|\bfetch\(|axios|\bgot[.(]|Net::HTTP|Faraday|HTTParty|smtplib|paramiko|"
    r"ftplib|socket|urllib|\bhttps?\.request|nodemailer|boto3|slack_sdk|WebClient"
)
_STANDS_IN = re.compile(
    r"mock|patch\(|monkeypatch|responses\.|nock|stub|[Ff]ake|\b(?:urlopen|post|request|fetch|send)\s*=(?!=)|dry_?run\s*[=:]\s*[Tt]rue|DRY_?RUN",
    re.IGNORECASE,
)
_SETS = re.compile(
    r"(?:environ|process\.env|ENV)\[\s?['\"](\w{1,60})['\"]\s?\]\s?=(?!=)\s?([^\n;]{1,300})"
    r"|(?:environ\.setdefault|putenv)\(\s?['\"](\w{1,60})['\"]\s?,\s?([^\n;]{1,300})|process\.env\.(\w{1,60})\s?=(?!=)\s?([^\n;]{1,300})"
)
_PYTHON = re.compile(r"^([ \t]*+)(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_RUBY = re.compile(r"^([ \t]*+)def[ \t]+(?:self\.)?(\w+[?!]?)", re.MULTILINE)
_JAVASCRIPT = re.compile(
    r"\bfunction\s*+(?:\*\s*+)?(\w+)\s*\(|(?<![\w.])(?:module\.)?(?:exports\.|const\s+|let\s+|this\.|static\s+)?(\w+)\s*[=:]\s*(?:async\s*)?"
    r"(?:function\b|\([^()]{0,200}\)\s*=>|\w+\s*=>)|^[ \t]*(?:static\s+|async\s+)*(\w+)\s*\([^()]{0,200}\)\s*\{",
    re.MULTILINE,
)
_WHOLE_EXPORT = re.compile(
    r"module\.exports\s*=\s*(?:async\s*)?(?:function\b|\([^()]{0,200}\)\s*=>|\w+\s*=>|(\w+)[ \t]*+(?:;[ \t]*+)?$)|"
    r"export default\b",
    re.MULTILINE,
)
_LOCAL = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/|\Z)")
_BARE_HOST = re.compile(r"\A(?:[\w-]+\.)+[a-z]{2,}(?::\d{1,5})?\Z", re.IGNORECASE)
_MAX_FUNCTIONS = 200
_MAX_BODY = 8_000
_MAX_CALLED = 30
_CALL = re.compile(r"\b(\w++[?!]?)\s{0,4}\(")
_WORD = re.compile(r"\w+[?!]?")
_ROUNDS = 4
_KEY_VALUE = re.compile(r"['\"]?(\w[\w-]{0,60})['\"]?\s{0,4}[:=]\s{0,4}['\"]?(https?://[^\s'\",<>]{1,300})")


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    body: str
    module: Module


def own_contacts(command: Command) -> Iterator[Contact]:
    """Sends by functions of the project that program text of the command calls, to hosts that are known."""
    code = command.code or ""
    if not command.modules or len(code) > MAX_CODE or _STANDS_IN.search(code):
        return
    sending = _sending([function for module in command.modules for function in _functions(command.program, module)])
    yield from _contacts(command, code, _called(command.program, code, sending), sending)


def script_contacts(command: Command) -> Iterator[Contact]:
    """The same of a program of the project that the command runs as it is, where its name says that it sends and where it
    does so whatever its arguments are. Any other does what it is there for."""
    code = command.code or ""
    if _SAYS_SO.search((command.code_file or "").rpartition("/")[2]) is None:
        return
    if len(code) > MAX_CODE or _TAKES_ARGUMENTS.search(code) or _REHEARSES & {*command.words}:
        return
    own = Module("", code, command.modules[0].settings if command.modules else "")
    local = _functions(command.program, own)
    sending = _sending([*local, *(function for module in command.modules for function in _functions(command.program, module))])
    outside = _outside(code, local)
    main = _Function("", outside, own)
    called = [main] if _is_sending(main) else _called(command.program, outside, sending)
    yield from _contacts(command, code, called, sending)


_TAKES_ARGUMENTS = re.compile(
    r"argparse|\bclick\b|typer|optparse|sys\.argv|process\.argv|\bARGV\b|OptionParser|yargs|commander|parseArgs|docopt|fire\.Fire"
)
_SAYS_SO = re.compile(
    r"send|notif|alert|push|upload|publish|sync|deliver|post|export|share|announce|broadcast|mail|submit|hook|slack|ship|report|beacon",
    re.IGNORECASE,
)
_REHEARSES = frozenset({"--dry-run", "--help", "-h", "-n", "--check", "--version"})


def _functions(program: str, module: Module) -> list[_Function]:
    text = module.text
    found: list[_Function] = []
    by_indent = _PYTHON if program.startswith("python") else _RUBY if program == "ruby" else None
    for match in (by_indent or _JAVASCRIPT).finditer(text):
        if len(found) == _MAX_FUNCTIONS:
            break
        if by_indent is not None:
            found.append(_Function(match[2], _indented(text, match.end(), len(match[1])), module))
        elif name := match[1] or match[2] or match[3]:
            found.append(_Function(name, _bracketed(text, match.end()), module))
    return found


def _indented(text: str, start: int, depth: int) -> str:
    """What follows on deeper lines."""
    first = text.find("\n", start)
    position = first if first >= 0 else len(text)
    stop = min(len(text), start + _MAX_BODY)
    while 0 <= position < stop:
        end = text.find("\n", position + 1)
        line = text[position + 1 : end if end >= 0 else len(text)]
        if line.strip() and len(line) - len(line.lstrip()) <= depth and not line.lstrip().startswith(")"):
            return text[start : position + 1]
        position = end
    return text[start:stop]


def _bracketed(text: str, start: int) -> str:
    """Up to the end of the line on which every bracket that was opened is closed."""
    depth = 0
    start = text.rfind("\n", 0, start) + 1
    stop = min(len(text), start + _MAX_BODY)
    for position in range(start, stop):
        character = text[position]
        depth += (character in "([{") - (character in ")]}")
        if character == "\n" and depth <= 0:
            return text[start:position]
    return text[start:stop]


def _outside(code: str, functions: Iterable[_Function]) -> str:
    for function in functions:
        code = code.replace(function.body, "\n", 1)
    return code


def _is_sending(function: _Function) -> bool:
    body = "\n".join(line for line in function.body.splitlines() if not line.lstrip().startswith(("#", "//")))
    if _SENDS.search(body):
        return _IS_NETWORK.search(function.module.text) is not None
    return _MAY_SEND.search(body) is not None and _IS_NETWORK.search(body) is not None


def _sending(functions: list[_Function]) -> dict[_Function, _Function]:
    """Each function that sends, to the one that does it in the end."""
    found = {function: function for function in functions if _is_sending(function)}
    calls = {function: frozenset(_CALL.findall(function.body)) for function in functions} if found else {}
    for _ in range(_ROUNDS):
        names = {function.name: end for function, end in found.items()}
        more = {
            function: names[min(called & names.keys())]
            for function, called in calls.items()
            if function not in found and called & names.keys()
        }
        if not more:
            break
        found |= more
    return found


def _called(program: str, code: str, sending: Iterable[_Function]) -> list[_Function]:
    words = frozenset(_WORD.findall(code))
    named = (function for function in sending if function.name in words or not program.startswith(("python", "ruby")))
    return [function for function in itertools.islice(named, _MAX_CALLED) if _calls(program, code, function)]


def _calls(program: str, code: str, function: _Function) -> bool:
    name = re.escape(function.name)
    if program == "ruby":
        return re.search(rf"\.{name}(?![\w?!])|(?<![\w.]){name}\s*\(", code) is not None
    given = re.search(rf"\b{name}\s*(?:as|:)\s*(\w+)", code)
    names = f"(?:{name}|{re.escape(given[1])})" if given is not None else name
    if re.search(rf"(?:\.|(?<!def )(?<!function )(?<![\w.]))\b{names}\s*\(", code):
        return True
    whole = _WHOLE_EXPORT.search(function.module.text) if not program.startswith("python") else None
    return whole is not None and whole[1] in {None, function.name} and _calls_whole(code, function.module)


def _calls_whole(code: str, module: Module) -> bool:
    """A module that is one function: `const notify = require('./notify'); notify('x')`."""
    file = re.escape(module.path.rpartition("/")[2])
    bound = re.search(rf"(?:const|let|var|import)\s+(\w+)\s*(?:=\s*require\(|from)\s*['\"][\w./-]*{file}(?:\.\w+)?['\"]", code)
    direct = re.search(rf"require\(\s*['\"][\w./-]*{file}(?:\.\w+)?['\"]\s*\)\s*\(", code)
    return direct is not None or (bound is not None and re.search(rf"(?<![\w.]){re.escape(bound[1])}\s*\(", code) is not None)


def _contacts(
    command: Command, code: str, called: Iterable[_Function], sending: Mapping[_Function, _Function]
) -> Iterator[Contact]:
    seen: set[str] = set()
    for function in called:
        end = sending.get(function, function)
        for address in _addresses(command, code, end):
            host = host_of(address)
            if host and address not in seen:
                seen.add(address)
                yield Contact(command, Way.SEND, host, "the project's own code", address)


def _addresses(command: Command, code: str, function: _Function) -> list[str]:
    """Where the function sends: by its own text, else by that of its module; the environment and the caller come first."""
    set_by_code = {match[1] or match[3] or match[5]: match[2] or match[4] or match[6] for match in _SETS.finditer(code)}
    for text in (function.body, function.module.text):
        names = asked_names(text)
        if any(name in set_by_code for name in names):
            given = (URL.search(set_by_code[name]) for name in names if name in set_by_code)
            return [match[0] for match in given if match is not None]
        values = [_value(command, name) for name in names]
        known = [value for value in values if "://" in value or _BARE_HOST.match(value) or _LOCAL.match(value)]
        if known:
            return known
        urls = [match[0] for match in URL.finditer(text) if match[0].lower().startswith("http")]
        if urls and not (names and text is function.module.text and function.module.settings):
            return urls[:5]
    keyed = _KEY_VALUE.findall(function.module.settings)
    return [url for key, url in keyed if re.search(rf"\b{re.escape(key)}\b", function.module.text)][:5]


def _value(command: Command, name: str) -> str:
    given = command.assignments.get(name)
    return given.text if given is not None and given.exact else command.environment.get(name, "")
