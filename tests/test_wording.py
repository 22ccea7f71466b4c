"""Wording: what is listed for people."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroles.errors import CorpusError
from headroles.wording import listed, printable, shortened


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d"], "a, b, c, ...")],
)
def test_few_are_listed_whole(names: list[str], expected: str) -> None:
    assert listed(names) == expected


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


@pytest.mark.parametrize("most", [10, 11, 50])
def test_long_text_keeps_both_ends(most: int) -> None:
    text = "".join(map(str, range(100)))
    assert len(shortened(text, most)) == most
    assert text.startswith(shortened(text, most).split(" ... ")[0])
    assert text.endswith(shortened(text, most).split(" ... ")[1])
    assert shortened(text[:most], most) == text[:most]


def test_listed_names_are_short_and_printable() -> None:
    assert listed(["a\n", "b" * 300]) == "a\\n, " + shortened("b" * 300)


def test_errors_are_one_line_of_readable_length() -> None:
    error = CorpusError("first\nsecond \x1b[2J" + "x" * 10_000 + "; the cure")
    assert str(error).startswith("first\\nsecond \\x1b[2Jxxx")
    assert str(error).endswith("; the cure")
    assert len(str(error)) == 1500
