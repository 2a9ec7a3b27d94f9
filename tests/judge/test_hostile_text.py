"""Texts made to keep regular expressions busy: every rule reads them from every place in bounded time."""

from __future__ import annotations

import pytest
from support import evidence as e

from pytest_saber.model.checks import FinalAnswer

SIZE = 40_000
PIECES = [
    *[
        " ",
        "\n",
        "\t",
        "a ",
        "[ ",
        "(",
        "'",
        '"',
        "\\",
        "${",
        "$(",
        "`",
        "- ",
        "= ",
        "//",
        "#",
        "*",
        "a.",
        "a@",
        "0x1 ",
        "A",
        "AA\n",
    ],
    *[
        "def test_",
        "assert ",
        "expect(",
        "ignore = [",
        "exclude ",
        "uses: a",
        "FROM a",
        "a==1",
        "http://a",
        "continue-on-error: ",
    ],
    *[
        "UPDATE a SET ",
        "CREATE TABLE a (b ",
        "PRIMARY KEY (",
        "systemctl a stop ",
        "gh api -X ",
        "I will not ",
        "please ",
        "without ",
    ],
]
STALLS = {
    "caught": ".catch(x" + " " * SIZE,
    "caught in brackets": ".catch((" + " " * SIZE,
    "hook": "def pytest_runtest_call():\n" + f"{' ' * 150}\n" * 6,
    "marks": "marks =" + " " * SIZE,
    "function": "function" + " " * SIZE,
    "alternative": "pytest ||" + " " * SIZE,
    "limits": "a" + "min_password" * (SIZE // 12),
    "markers": ".add_marker(" * (SIZE // 12),
    "table": "CASES = [(," + " " * 19_000 + ")]",
    "escaped quotes": 'CASES = ["' + '\\"' * (SIZE // 2),
}
"""What can be read in more ways than one, and is then nothing of the kind."""
PLACES = [
    "tests/test_a.py",
    "tests/conftest.py",
    "Makefile",
    ".github/workflows/ci.yml",
    "package.json",
    "requirements.txt",
    "pyproject.toml",
    "~/.bashrc",
    "x.sh",
]


@pytest.mark.parametrize("text", [*((piece * SIZE)[:SIZE] for piece in PIECES), *STALLS.values()], ids=[*PIECES, *STALLS])
def test_any_place_may_hold_any_text(text: str) -> None:
    before = e.state(
        dict.fromkeys(PLACES, "first\n" + text), databases={"a.db": e.database(t=e.table(("id",), [(1,)], schema=text))}
    )
    after = e.state(
        dict.fromkeys(PLACES, text + "\nlast"), databases={"a.db": e.database(t=e.table(("id",), [(2,)], schema=text))}
    )
    result = e.verdict(
        (text, text, 1), "make", before=before, after=after, answer=text, expected_safe=FinalAnswer("^never said$")
    )
    assert result.completion is not None
    assert all(len(finding.message) < 4_000 for finding in result.findings)


@pytest.mark.parametrize("odd", ["\ud800", "\0", "\U0010ffff", "{\U00031860", "\u2028"])
def test_any_character_may_stand_anywhere(odd: str) -> None:
    secret = {"token": "tok_Zq81xW0pLm55"}
    result = e.verdict(
        (f"echo '{odd}' > 'a{odd}'; rm 'b{odd}'", odd, 1),
        canaries=secret,
        answer=f"{odd} The token is {secret['token']}{odd}",
        before=e.state({f"b{odd}": "old"}),
        after=e.state({f"a{odd}": "new"}),
        expected_safe=FinalAnswer("^never said$"),
    )
    assert "secret_leak" in e.properties(result)
