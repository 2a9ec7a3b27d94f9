"""Which variables of a pipeline hold secrets, and where a line uses their value.

The code host gives a job its secrets as variables. A document names them where it binds one (`env:` with `secrets.NAME`,
Jenkins' `credentials(...)`, `from_secret`); elsewhere only the name tells, as of `DEPLOY_TOKEN`, and only if the document
itself gives it no literal value. `${#NAME}` and `${NAME:+set}` say nothing of a value, nor does a name between single quotes.
"""

from __future__ import annotations

import re

MARK = "CI_SECRET_VALUE"
"""Stands for the value of a secret."""
_MAX_LINE = 4_000
_EXPRESSION = re.compile(
    r"\$\{\{\s*(?:toJSON\(\s*)?secrets\b[^}]*\}\}|\$\{\{\s*github\.token\s*\}\}|<<\s*pipeline\.\w{0,40}secret\w{0,40}\s*>>"
)
_BOUND = re.compile(
    r"\b([A-Za-z_]\w*)['\"]?\s*:\s*['\"]?(?:\$\{\{\s*(?:toJSON\(\s*)?secrets\b|\$\{\{\s*github\.token)"
    r"|\b(?:variable|passwordVariable|keyFileVariable|passphraseVariable)\s*:\s*['\"](\w+)"
    r"|^[ \t]*(\w+)[ \t]*=[ \t]*credentials\(|^[ \t]*(\w+)[ \t]*:[ \t]*(?:\n[ \t]*|\{[ \t]*)from_secret[ \t]*:"
    r"|^[ \t]*(\w+)[ \t]*:[ \t]*\n[ \t]*vault[ \t]*:",
    re.MULTILINE,
)
_SECRET = re.compile(
    r"(?:\A|_|\.)(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|(?:PRIVATE|SECRET|ACCESS|SIGNING|DEPLOY|ENCRYPTION|SSH|"
    r"LICENSE|MASTER|AUTH)_KEY|CREDENTIALS?|CREDS|WEBHOOK(?:_URL)?|SERVICE_ACCOUNT|DATABASE_URL|DSN|[A-Z0-9]+_(?:PASS|PAT|PWD|AUTH))"
    r"(?:_(?:PROD|PRODUCTION|STAGING|STAGE|DEV|TEST|LIVE|CI|B64|BASE64|JSON|\d{1,3}))?\Z|[a-z0-9](?:Token|Secret|Password|ApiKey|PrivateKey)\Z",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"PUBLIC|(?i:_(?:NAME|ID|URL|PATH|FILE|TYPE|COUNT|LENGTH|TTL)\Z)(?<!WEBHOOK_URL)(?<!DATABASE_URL)")
_LITERAL = re.compile(
    r"^[ \t]*(?:-[ \t]+)?(?:export[ \t]+)?['\"]?([A-Za-z_]\w*)['\"]?[ \t]*[:=][ \t]*['\"]?[^\s$'\"{<|>&#]", re.MULTILINE
)
_ACTIONS = re.compile(r"^[ \t]*(?:-[ \t]+)?(?:runs-on|uses)[ \t]*:", re.MULTILINE)
_IN_SHELL = re.compile(
    r"\$(?:(?:env:)?([A-Za-z_]\w*)|\{(?:env[.:])?([A-Za-z_]\w*)(?!:?\+)[^}]{0,300}\}|\(([A-Z][A-Z0-9_]+|[a-z]+[A-Z]\w*)\))|%([A-Z_][A-Z0-9_]*)%"
)
_IN_CODE = re.compile(
    r"(?:os\.environ|ENV|\$ENV|process\.env|\$_ENV|\$_SERVER)\s?[\[{]\s?['\"]?(\w+)['\"]?\s?[\]}]|"
    r"(?:os\.environ\.get|os\.getenv|getenv|ENV\.fetch|process\.env\.|Deno\.env\.get|env\.)\(?\s?['\"]?(\w+)['\"]?(?:\s?\))?"
)


class Variables:
    """Of one document."""

    def __init__(self, document: str) -> None:
        self.bound = frozenset(next(group for group in match.groups() if group) for match in _BOUND.finditer(document))
        """Names that the document gives the value of a secret."""
        # Actions get nothing but what the document binds.
        self._by_name = _ACTIONS.search(document) is None
        self._plain = frozenset(_LITERAL.findall(document)) if self._by_name else frozenset[str]()

    def secrets_in(self, line: str) -> frozenset[str]:
        """Names of variables that hold a secret: those that the document binds, and those of `line` by their name."""
        if not self._by_name:
            return self.bound
        matches = (match for pattern in (_IN_SHELL, _IN_CODE) for match in pattern.finditer(line[:_MAX_LINE]))
        return self.bound | {n for match in matches for n in match.groups() if n and is_secret(n) and n not in self._plain}


def binds(line: str) -> bool:
    """Whether the line only gives a variable its value."""
    return _BOUND.match(line.lstrip("- ")) is not None


def is_secret(name: str) -> bool:
    """By the name of a variable."""
    return _SECRET.search(name) is not None and _NO_SECRET.search(name) is None


def marked(line: str, names: frozenset[str]) -> str:
    """The line with `MARK` in place of each value of a secret that it uses."""
    text = _EXPRESSION.sub(MARK, line[:_MAX_LINE])
    if not names:
        return text
    text = _IN_CODE.sub(lambda match: MARK if {*match.groups()} & names else match[0], text)
    return _in_shell(text, names)


def _in_shell(text: str, names: frozenset[str]) -> str:
    """Outside single quotes, and where no backslash stands before."""
    parts: list[str] = []
    position, quoted = 0, False
    while position < len(text):
        character = text[position]
        end = position + 1
        if character == "\\":
            end += 1
        elif character == '"':
            quoted = not quoted
        elif character == "'" and not quoted:
            closing = text.find("'", end)
            end = closing + 1 if closing >= 0 else len(text)
        elif character in "$%" and (match := _IN_SHELL.match(text, position)) is not None:
            end = match.end()
            if {*match.groups()} & names:
                parts.append(MARK)
                position = end
                continue
        parts.append(text[position:end])
        position = end
    return "".join(parts)
