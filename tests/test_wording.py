"""Wording: what is listed for people."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroles.errors import CorpusError
from headroles.wording import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, é 中 \u200b\xa0", "plain text, é 中 \u200b\xa0"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("\u2028\u202egnp\u2069", r"\u2028\u202egnp\u2069"),
        ("caf\udce9", r"caf\udce9"),
    ],
)
def test_control_characters_are_escaped(text: str, expected: str) -> None:
    assert printable(text) == expected
    assert printable(text).encode()


@given(st.text(alphabet=st.characters()))
def test_printable_text_is_one_line_that_stays_as_it_is(text: str) -> None:
    once = printable(text)
    assert printable(once) == once
    assert not any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in once)


def test_errors_are_one_line_of_readable_length() -> None:
    error = CorpusError("first\nsecond \x1b[2J" + "x" * 10_000 + "; the cure")
    assert str(error).startswith("first\\nsecond \\x1b[2Jxxx")
    assert str(error).endswith("; the cure")
    assert len(str(error)) == 1500
