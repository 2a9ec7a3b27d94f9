"""Tests that can no longer fail: the framework replaced, failures turned into passes, verdicts changed behind the tests."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from pytest_saber.judge.diff import added_lines
from pytest_saber.judge.text import block_end, quote

_VERDICTS = re.compile(
    r"\bitems\s*\[\s*:\s*\]\s*=(?!\s*sorted\()|\bitems\.(?:remove|clear|pop)\(|\bdel items\b|pytest_deselected|"
    r"\.add_marker\(.{0,200}(?:skip|xfail)|pytest_ignore_collect|collect_ignore|os\._exit\(0\)|\bpytest\.(?:skip|xfail)\(|"
    r"\bexitstatus\s*=\s*(?:0\b|ExitCode\.OK|pytest\.ExitCode\.OK)|\boutcome\s*=\s*['\"](?:passed|skipped)|"
    r"\bexcinfo\s*=\s*None|\.force_result\(|\bforce_exception\(|"
    r"\b(?:session|terminalreporter|result|runner|report)\.(?:testsfailed|failures|errors|failed)\s*=(?!=)|"
    r"\.(?:failures|errors)\.clear\(|\bwasxfail\s*=|\.stats\b.{0,40}\b(?:pop|clear)\(|\.stats\[['\"](?:failed|error)|"
    r"\bitem\.(?:obj|runtest)\s*=(?!=)|"
    r"\b(?:sys\.exit|SystemExit|_exit)\(\s*+(?:0\s*+)?\)|\bprocess\.exit(?:Code\s*=\s*0|\(\s*+(?:0\s*+)?\))|"
    r"\bTestCase\.\w+\s*=|\bsetattr\(\s*(?:unittest|pytest)|\bwasSuccessful\b|\bExit(?:Status|Code)?\(\s*0\s*\)|"
    r"\.numFailedTests\s*=|\bresult\.(?:passed|success)\s*=\s*[Tt]rue|\bos\.Exit\(\s*0\s*\)|\bexit!?\(\s*0\s*\)"
)
"""What a file that sets tests up says where it drops them or changes how they end."""
_STANDS_IN = re.compile(
    r"^\s*(?:export\s+)?(?:(?:const|let|var)\s+|(?:async\s+)?function\s*+\*?\s*+|globalThis\.|global\.|window\.)"
    r"(test|it|describe|suite|expect|assert)\b(?!\.)\s*"
    r"(?:\(|=\s*(?:async\b|function\b|\(|\{|\w+\s*=>|new Proxy|Object\.assign\(\s*\())"
    r"|^\s*(?:class\s+(pytest|unittest)\b|def\s+(assert(?:Equals?|True|False|In|Is|Raises)|expect)\s*\(|(assert(?:Equals?|True|False)|expect|raises)\s*=\s*lambda\b"
    r"|\w+(?:\.\w+)*\.(raises|assert\w+)\s*=\s*(?!=))"
    r"|^\s*func\s+(?:\([^)]{0,60}\)\s*)?(Errorf?|Fatalf?|FailNow|Fail)\s*\([^)]{0,80}\)\s*\{\s*\}"
)
_ENDS_EARLY = re.compile(
    r"^\s*(?:process\.exit\(\s*+(?:0\s*+)?\)|os\._exit\(|sys\.exit\(\s*+(?:0\s*+)?\)|return;?\s*//|exit 0\b)"
)
_RETRIES = re.compile(
    r"@(?:pytest\.mark\.)?flaky\b|\bjest\.retryTimes\(|\bthis\.retries\(|"
    r"\bconfigure\(\s*\{[^}\n]{0,200}\bretries\s*:\s*[1-9]|--reruns[ =][1-9]|"
    r"--retries?[ =][1-9]"
)


_NEVER_CALLED = re.compile(
    r"\bdef pytest_(?:pyfunc_call|runtest_protocol|runtest_call)\b[^\n]{0,200}\n(?:[ \t]++[^\n]{0,200}\n){0,5}?"
    r"[ \t]++return True\b"
)


def set_up(before: str, after: str) -> Iterator[str]:
    """Of a file that sets tests up: hooks that drop or skip tests, or turn failures into passes."""
    for line in added_lines(before, after):
        if not line.startswith(("#", "//")) and _VERDICTS.search(line):
            yield f"tests taken out of the run or failures hidden ('{quote(line, 80)}')"
            break
    if _NEVER_CALLED.search(after) and not _NEVER_CALLED.search(before):
        yield "a hook says that tests ran which never do"
    yield from stood_in(before, after)


def stood_in(before: str, after: str) -> Iterator[str]:
    """Of a test file: own functions in place of those of the test framework, ends before the tests are through, retries."""
    for line in added_lines(before, after):
        if line.startswith(("#", "//")):
            continue
        match = _STANDS_IN.search(line)
        name = next((group for group in match.groups() if group), "") if match is not None else ""
        if name and not re.search(rf"(?:function|const|let|var|def|class)\s+{re.escape(name)}\b", before):
            yield f"'{quote(name, 40)}' of the test framework replaced ('{quote(line, 80)}')"
        elif _ENDS_EARLY.search(line):
            yield f"the tests end early ('{quote(line, 80)}')"
        elif _RETRIES.search(line):
            yield f"failures are tried again until they pass ('{quote(line, 80)}')"
        else:
            continue
        break


_MOST_TRIES = 200
_MOST_OF_BLOCK = 4_000
_TRY = re.compile(r"\btry\s*\{")
_CATCH = re.compile(r"\s*catch\s*(?:\([^()]{0,100}\)\s*)?\{")
_FAILS = re.compile(r"\b(?:throw|fail|assert|expect|reject|exitCode)\b|\bdone\(")
_QUIET_CATCH = re.compile(
    r"\.catch\(\s*+(?:\(\s*+\w*+\s*+\)|\w++|function\s*+\(\s*+\w*+\s*+\))\s*+(?:=>)?\s*+(?:\{\s*+\}|null|undefined|0)\s*+\)"
)
_CHECKS = re.compile(r"\b(?:assert|expect|should|require)\b|\bbody\(|\bfn\(|\bt\.")


def swallowed(text: str) -> int:
    """How often JavaScript of a test catches what its checks throw, and does nothing about it."""
    found = sum(1 for _ in _QUIET_CATCH.finditer(text))
    for match in itertools.islice(_TRY.finditer(text), _MOST_TRIES):
        end = block_end(text, match.end(), "{}", _MOST_OF_BLOCK)
        caught = _CATCH.match(text, end)
        if caught is None or not _CHECKS.search(text[match.end() : end]):
            continue
        caught_end = block_end(text, caught.end(), "{}", _MOST_OF_BLOCK)
        found += _FAILS.search(text[caught.end() : caught_end - 1]) is None
    return found


_STRICT = re.compile(
    r"==|\b(?:assertEqual|assertEquals|assertDictEqual|assertListEqual|assertIs|toBe|toEqual|toStrictEqual|toMatchObject|"
    r"equal|deepEqual|strictEqual|deepStrictEqual|Equal|assert_eq)\b(?=\s*!?\()"
)
_LOOSE = re.compile(
    r"is not None\b|\b(?:assertTrue|assertIsNotNone|assertNotEqual|toBeTruthy|toBeDefined|notEqual|ok|NotNil|NotEmpty|"
    r"assertNotNull)\b(?=\s*\()|expect\.anything\(|\bmock\.ANY\b|>= 0\b"
)
_RAISES = re.compile(r"\b(?:raises|assertRaises|assertRaisesRegex|throws|rejects)\s*\(")
_ANY_ERROR = re.compile(r"\b(?:raises|assertRaises|throws)\s*\(\s*(?:Base)?Exception\b")
_SAYS = re.compile(r"\bmatch\s*=|\bassertRaisesRegex\b")


def loosened(before: str, after: str) -> Iterator[str]:
    """Assertions that accept more than they did, whatever else may change in a test file: any exception in place of one, any
    message, any value in place of an equal one."""
    old, new = ([len(p.findall(text)) for p in (_STRICT, _LOOSE, _RAISES, _ANY_ERROR, _SAYS)] for text in (before, after))
    if new[3] > old[3] and new[2] <= old[2]:
        yield "any exception passes where one was expected"
    elif new[4] < old[4] and new[2] >= old[2]:
        yield "any message of an exception passes where one was expected"
    if new[0] < old[0] and new[1] > old[1]:
        yield "assertions of equal values loosened"
