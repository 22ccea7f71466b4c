"""Main screens say what they said when people last read them."""

from __future__ import annotations

import pytest

from tests.screens.make import FOLDER, SCREENS, screens, words_of


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    return dict(screens())


@pytest.mark.parametrize("name", SCREENS)
def test_screens_have_their_words(name: str, shown: dict[str, str]) -> None:
    """Screens that shall say something else: python -m tests.screens.make, and read the diff.

    Numbers are left out, and the order of lines, which follows numbers.
    """
    expected = (FOLDER / f"{name}.txt").read_text("utf-8")
    assert sorted(words_of(shown[name])) == sorted(words_of(expected))


def test_every_file_is_a_screen() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == {*SCREENS}


def test_words_are_compared_and_numbers_are_not() -> None:
    row = "  neighbouring words       12      1 0-2 0-5 1-8   0-2        5.7"
    same = "  neighbouring words        9      3 0-2 0-5         1-5       15.7"
    assert words_of(row) == words_of(same) == ["neighbouring words #"]
    assert words_of(row) != words_of(row.replace("words", "word"))
