"""What results show is text and nothing that a terminal would obey."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroles.results.shown import Grid, Shown, Warned, as_html, as_text, brief
from headroles.wording import as_given, in_one_line, json_lines, printable, printable_lines

NASTY = {
    "\x1b[31m": r"\x1b[31m",
    "\x9b2J": r"\x9b2J",
    "\u202egpj": r"\u202egpj",
    "\u200fx": r"\u200fx",
    "\u2066x": r"\u2066x",
    "\x07": r"\x07",
    "a\tb": r"a\tb",
    "\udc80": r"\udc80",
}


@pytest.mark.parametrize(("given", "shown"), NASTY.items())
def test_escapes_stand_for_what_terminals_obey(given: str, shown: str) -> None:
    parts: list[Shown] = [
        f"a {given}\nsecond line",
        Warned(f"w {given}"),
        Grid(("role", f"n{given}"), ((f"cell {given}", f"1{given}"),)),
    ]
    text = as_text(iter(parts))
    assert text.count(shown) == 5
    assert printable_lines(text) == text
    assert f"a {shown}\nsecond line" in text
    page = as_html(iter(parts))
    assert page.count(shown) == 5
    assert printable_lines(page) == page
    assert json_lines(f'{{"a": "{given}"}}\n').isprintable() is False  # the end of the line
    assert printable(json_lines(f'"{given}"')) == json_lines(f'"{given}"')


def test_other_writing_stays() -> None:
    text = "caf\u00e9 \u0627\u0628 \u65e5 \U0001f600 a\u0301"
    assert as_text(iter([text])) == text


def test_values_and_errors_that_cannot_describe_themselves() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise self

        __repr__ = __str__

    assert in_one_line(Mute()) == "Mute"
    assert as_given(Mute()) == "a value of type Mute"
    assert as_given(10**5000) == "a value of type int"
    assert as_given("x") == "'x'"


@given(
    st.lists(st.integers(1, 120), max_size=2),
    st.lists(st.integers(1, 50).map(lambda n: f"{'so ' * n}. More."), max_size=9),
)
def test_summaries_fit_a_screen(n_rows: list[int], warnings: list[str]) -> None:
    """Sentences stay; warnings lose their ends, then the longest grid loses rows, and says so."""
    grids = [Grid(("a", "b"), (("x", "y"),) * n) for n in n_rows]
    parts: list[Shown] = ["one", *grids[:1], "two", *map(Warned, warnings), *grids[1:]]
    lines = as_text(brief(parts)).splitlines()
    assert len(lines) <= 17
    assert {"one", "two"} <= set(lines)
    rows = sum(line.split() == ["x", "y"] for line in lines)
    left = [int(line.split()[0]) for line in lines if "more rows" in line]
    assert rows + sum(left) == sum(n_rows)
    assert sum(line.startswith("warning: ") for line in lines) >= min(1, len(warnings))
