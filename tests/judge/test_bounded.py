"""The guard of the tests with hostile input: what hangs fails, with its place; what does not is none the wiser."""

from __future__ import annotations

import re

import pytest
from support.bounded import run_bounded


def length(text: str) -> int:
    return len(text)


def search(text: str) -> bool:
    """Needs centuries for many letters without an end."""
    return re.search(r"(?:a|a)+\Z", text) is not None


def refuse(text: str) -> str:
    raise ValueError(f"no {text}")


def test_every_input_gets_its_result() -> None:
    assert run_bounded(length, ["", "ab", "\udcff\n" * 100_000]) == [0, 2, 200_000]


def test_what_hangs_fails_with_the_input_and_the_place() -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        run_bounded(search, ["a", "a" * 100 + "b"], guard=0.5)
    text = str(caught.value)
    assert text.startswith(f"search({'a' * 60!r}, ... 101 characters) did not end well:\nTimeout (0:00:00.500000)!\n")
    assert re.search(r'test_bounded\.py", line \d+ in search\n', text)


def test_what_raises_fails_with_the_traceback() -> None:
    with pytest.raises(
        pytest.fail.Exception, match=r"(?s)\Arefuse\('x', ... 1 characters\) did not end well:.*ValueError: no x"
    ):
        run_bounded(refuse, ["x"])
