"""Hostile text in every place it is shown in."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_saber.reports import escape

HOSTILE = "\x1b[2J\x1b]0;owned\x07 a\x00b ]]> <b>&</b>\r\n::error::x%0A | @team `code` \u202ereversed \ud800 \ufffe"


def test_a_line_shows_what_is_hidden() -> None:
    assert escape.line(HOSTILE) == (
        "\\x1b[2J\\x1b]0;owned\\x07 a\\x00b ]]> <b>&</b> / ::error::x%0A | @team `code` \\u202ereversed \\ud800 \\ufffe"
    )


def test_a_block_keeps_its_lines() -> None:
    assert escape.block("one\r\n\ttwo\rthree \n") == "one\n    two\\x0dthree"


def test_long_text_keeps_both_ends() -> None:
    text = escape.line("a" * 5000 + "the end", 300)
    assert text.startswith("aaa")
    assert text.endswith("the end")
    assert "[4707 characters left out]" in text


def test_xml_survives_a_parser() -> None:
    text = escape.xml(HOSTILE)
    assert "]]>" not in text
    element = ET.Element("failure", {"message": text})
    element.text = text
    parsed = ET.fromstring(ET.tostring(element))
    assert parsed.text == text
    assert ET.fromstring(f"<a><![CDATA[{text}]]></a>").text == text


def test_markdown_makes_no_markup() -> None:
    text = escape.markdown("- [x](http://e) <img src=y> | @team `code` *b* #1 www.e.org\n# a_b")
    assert text == (
        "\\- \\[x\\](http:&#8203;//e) \\<img src=y\\> \\| @&#8203;team \\`code\\` "
        "\\*b\\* #&#8203;1 www&#8203;.e.org / #&#8203; a\\_b"
    )


def test_workflow_commands_cannot_be_started() -> None:
    assert escape.workflow_data("50%\r\n::error::boo") == "50%25%0A::error::boo"
    assert escape.workflow_property("a,b:c%\nd") == "a%2Cb%3Ac%25 / d"


@pytest.mark.parametrize(("text", "cells"), [("abc", 3), ("漢字", 4), ("e\u0301", 1)])
def test_cells_count_terminal_columns(text: str, cells: int) -> None:
    assert escape.cells(text) == cells


def test_fit_and_wrap() -> None:
    assert escape.fit("shared-cache", 8) == "share..."
    assert escape.wrap("the quick brown fox", 14, "  ", "    ") == ["  the quick", "    brown fox"]
    assert escape.wrap("", 20) == []


@given(st.text(), st.integers(20, 120))
def test_nothing_gets_wider_than_asked(text: str, width: int) -> None:
    line = escape.line(text)
    assert escape.cells(escape.fit(line, width)) <= width
    assert all(escape.cells(part) <= width for part in escape.wrap(line, width, "  ", "    "))


@given(st.text(st.characters()))
def test_escaped_lines_are_printable(text: str) -> None:
    assert all(char.isprintable() for char in escape.line(text))
    escape.line(text).encode("utf-8")
