"""Which assertions of a test file say less, or the opposite, after an edit."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator

_MAX_LENGTH = 2_000
_BEGINS = re.compile(
    r"^[ \t]*+(?=assert\b|(?:await\s+)?expect\(|(?:assert|refute|verify|flunk)\w*!?\(|(?:assert|refute)_\w+[ \t]+(?![=.])\S"
    r"|refute[ \t]|(?:await\s+)?(?:\$?\w{1,40}(?:\.|->|::)){1,4}(?:assert|refute)\w*!?\(|assert\.\w+[\w.]*\("
    r"|with (?:pytest\.|self\.)?(?:raises\b|assertRaises)"
    r"|(?:t|require)\.(?:Error|Fatal|Equal|True|False|NoError|Nil|Len|Contains|assert\.)\w*\("
    r"|t\.(?:is|not|ok|notOk|true|false|truthy|falsy|like|match|regex|same|strictSame|(?:not)?(?:e|E)qual|deepEqual|throws|rejects)\w*\("
    r"|(?:Assert|Assertions|chai\.assert)(?:\.|::)\w+\(|\w[\w.]*\.(?:should|Should)\b|\?assert\w*\(|#(?:expect|require)\("
    r"|(?:is|isnt|ok|nok|like|unlike|cmp_ok|is_deeply|isa_ok|can_ok|new_ok|eq_or_diff|throws_ok|dies_ok|lives_ok|cmp_deeply)"
    r"(?:\s?\(|[ \t]+(?![=.])[^\n]{1,400};[ \t]*$)"
    r"|(?:XCTAssert|XCTFail|ASSERT_|EXPECT_|TEST_ASSERT|CHECK|REQUIRE|ck_assert|BOOST_|g_assert|CU_ASSERT)\w*\s?\("
    r"|expect_\w+\(|is_expected\b|(?:expect|it)[ \t]?\{|@test\s+[^'\"\s]|\(is[ \t]\("
    r"|\[\[? [^\n]{1,300} \]\]?\s*(?:$|\|\||&&|;)|test[ \t]+[-!\"$]|run ! |(?:diff|cmp)[ \t]+[-\"$<]"
    r"|(?:(?:const|let|var|my|our|local|auto|final|val)[ \t]+)?[$@]?(?:expected|EXPECTED|[wW]ant(?:ed)?|golden)\w{0,40}"
    r"[ \t]*+(?::?=(?![=~>])|:[ \t])"
    r"|\w[^\n]{0,300}[ \t](?:shouldBe|should[ \t]be|must(?:Equal|_equal|[ \t]be)|shouldEqual|`shouldBe`|\|>[ \t]should)\b)",
    re.MULTILINE,
)
_COMPARES = re.compile(r"[ \t]*+(?:\}[ \t]*+else[ \t]+)?if\b.*\{[ \t]*\Z")
_COMPLAINS = re.compile(r"[ \t]*+(?:t|b|tb|c)\.(?:Error|Fatal)")
"""Of Go: `if got != 3 {` is the assertion where a complaint follows."""
_GOES_ON = re.compile(r"\s{1,80}\.")
_TOKEN = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|[A-Za-z_]\w*|\d[\w.]*|[^\w\s]")
_CLOSES = frozenset(")]}")
_FIXED = frozenset(
    [
        "assert",
        "not",
        "in",
        "is",
        "and",
        "or",
        "None",
        "True",
        "False",
        "null",
        "true",
        "false",
        "undefined",
        "self",
        "pytest",
        "expect",
        "eq",
        "ne",
        "lt",
        "gt",
        "le",
        "ge",
        "undef",
        "nil",
        "nullptr",
        "isnt",
        "ok",
        "nok",
        "to",
        "not_to",
        "to_not",
        "be_nil",
        "be_truthy",
    ]
)
_VERBS = re.compile(
    r"assert\w*|to(?:Be|Equal|Have|Throw|Match|Contain|Strict)\w*|raises|should\w*|expect\w*|refute\w*|flunk|"
    r"(?:un)?like|cmp_ok|is_deeply|(?:isa|can|new|throws|dies|lives)_ok|cmp_deeply|must\w*|wont\w*|[A-Z]+[a-z]*Assert\w*|"
    r"(?:ASSERT|EXPECT|CHECK|REQUIRE|BOOST|TEST_ASSERT|CU_ASSERT)\w*|(?:not)?(?:[eE]qual|[dD]eep\w*|[sS]trict\w*)|"
    r"(?:Are|Is|Not|Has|Does)[A-Z]\w*"
)

_EXCEPTIONS = frozenset({"raises", "assertRaises", "assertRaisesRegex", "toThrow", "toThrowError", "throws", "rejects"})
"""With these the name of an exception is what is asserted."""


def weakened(before: str, after: str, elsewhere: frozenset[tuple[str, ...]] = frozenset()) -> list[str]:
    """Assertions of `before` that `after` no longer makes, as they were written, apart from those that stand `elsewhere`.

    Layout, kind of quotes, place in the file and renamed variables or functions do not count, nor do added assertions. One
    whose test is gone altogether is left to those who look for tests.
    """
    written = dict(_assertions(before))
    old, new = (Counter(tokens for tokens, _ in _assertions(text)) for text in (before, after))
    gone = list((old - new).elements())
    added = list((new - old).elements())
    for statement in list(gone):
        renamed = next((other for other in added if _is_renamed(statement, other)), None)
        if renamed is not None:
            gone.remove(statement)
            added.remove(renamed)
    return [written[statement] for statement in gone if statement not in elsewhere]


def stated(text: str) -> frozenset[tuple[str, ...]]:
    """The words of every assertion of a text, whatever their layout."""
    return frozenset(tokens for tokens, _ in _assertions(text))


def _assertions(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The words of each statement, and the statement on one line as it was written."""
    text = _effective(text)
    lines = text.split("\n")
    for line, following in itertools.pairwise(lines):
        if _COMPLAINS.match(following[:200]) and _COMPARES.match(line[:_MAX_LENGTH]):
            yield _tokens(line[:_MAX_LENGTH]), " ".join(line.split())
    # Only where brackets never close do statements overlap, and are together longer than the text.
    left = 4 * len(text)
    for match in _BEGINS.finditer(text):
        statement = _statement(text, match.end())
        left -= len(statement)
        if left < 0:
            return
        tokens = _tokens(statement)
        if tokens:
            yield tokens, " ".join(statement.split())


def _tokens(statement: str) -> tuple[str, ...]:
    """Its words; a comma before a closing bracket is layout."""
    words = [_normal(word) for word in _TOKEN.findall(statement)]
    return tuple(word for word, after in zip(words, [*words[1:], ""], strict=True) if word != "," or after not in _CLOSES)


def _normal(token: str) -> str:
    return f'"{token[1:-1]}"' if token[:1] in {"'", '"'} and len(token) > 1 else token


def _statement(text: str, start: int) -> str:
    """Up to the end of the line on which every bracket is closed again."""
    depth = 0
    for position in range(start, min(len(text), start + _MAX_LENGTH)):
        character = text[position]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "\n" and depth <= 0 and _GOES_ON.match(text, position) is None:
            return text[start:position]
    return text[start : start + _MAX_LENGTH]


def _is_renamed(before: tuple[str, ...], after: tuple[str, ...]) -> bool:
    """The same with other names: no operator, literal, keyword or kind of assertion differs, and one name stands for one."""
    if len(before) != len(after) or _EXCEPTIONS & {*before}:
        return False
    names: dict[str, str] = {}
    for old, new in zip(before, after, strict=True):
        is_name = re.fullmatch(r"[A-Za-z_]\w*", old) and re.fullmatch(r"[A-Za-z_]\w*", new)
        if old == new and not is_name:
            continue
        fixed = {old, new} & _FIXED or _VERBS.fullmatch(old) or _VERBS.fullmatch(new)
        if not is_name or (old != new and fixed) or names.setdefault(old, new) != new:
            return False
    return True


_LEAVES = re.compile(
    r"(?:return\b|pytest\.skip\(|pytest\.exit\(|self\.skipTest\(|raise (?:unittest\.)?SkipTest|sys\.exit\(|os\._exit\()"
)
_NEVER = re.compile(r"(?:if (?:False|0|not True)\s*:|while (?:False|0)\s*:)")
_SWALLOWS = re.compile(r"except(?:\s*:|\s[^:]*\b(?:AssertionError|Exception|BaseException)\b)")
_SUPPRESSES = re.compile(r"with\s+(?:contextlib\.)?suppress\([^)]*\b(?:AssertionError|Exception|BaseException)\b")
_FAILS = re.compile(r"\b(?:raise|assert|fail)\b")


def _effective(text: str) -> str:
    """Of Python, without what is never reached and what is swallowed when it fails."""
    lines = text.split("\n")
    dead = [False] * len(lines)
    for position, line in enumerate(lines):
        bare = line.strip()
        if re.match(r"(?:async )?def test", bare):
            _after_leaving(lines, dead, position)
        elif _NEVER.match(bare) or _SUPPRESSES.match(bare):
            _mark(dead, position + 1, _block_end(lines, position))
        elif bare == "try:":
            end = _block_end(lines, position)
            handler = lines[end].strip() if end < len(lines) else ""
            if _SWALLOWS.match(handler):
                body = "\n".join(lines[end : _block_end(lines, end)])
                if not _FAILS.search(body.partition(":")[2]):
                    _mark(dead, position + 1, end)
    return "\n".join("" if gone else line for line, gone in zip(lines, dead, strict=True))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block_end(lines: list[str], start: int) -> int:
    """The line after the block that the line at `start` opens."""
    depth = _indent(lines[start])
    for position in range(start + 1, len(lines)):
        if lines[position].strip() and _indent(lines[position]) <= depth:
            return position
    return len(lines)


def _after_leaving(lines: list[str], dead: list[bool], start: int) -> None:
    """What follows a statement that leaves the function, in its own body."""
    end = _block_end(lines, start)
    body = next((_indent(line) for line in lines[start + 1 : end] if line.strip()), 0)
    for position in range(start + 1, end):
        if _indent(lines[position]) == body and _LEAVES.match(lines[position].strip()):
            _mark(dead, position + 1, end)
            return


def _mark(dead: list[bool], start: int, end: int) -> None:
    for position in range(start, end):
        dead[position] = True
