"""Trees against a brute-force oracle, and examples of one sentence or two adjacent ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroles.corpus.sentence import (
    ROOT,
    Example,
    Sentence,
    find_cycle,
    make_examples,
    tree_defect,
)


@st.composite
def governor_tuples(draw: st.DrawFn) -> tuple[int, ...]:
    n = draw(st.integers(0, 7))
    return tuple(draw(st.lists(st.integers(ROOT, n - 1), min_size=n, max_size=n)))


def ancestors(governors: tuple[int, ...], word: int) -> list[int]:
    """Every word met on the way up, as many steps as there are words."""
    met = []
    for _ in governors:
        word = governors[word]
        if word == ROOT:
            break
        met.append(word)
    return met


@given(governor_tuples())
def test_cycle_is_the_one_that_the_first_lost_word_runs_into(governors: tuple[int, ...]) -> None:
    above = [ancestors(governors, word) for word in range(len(governors))]
    on_cycle = {word for word, met in enumerate(above) if word in met}
    lost = [met for met in above if on_cycle & set(met)]
    expected = tuple(sorted(on_cycle & set(lost[0]))) if lost else ()
    assert find_cycle(governors) == expected


@given(governor_tuples())
def test_no_defect_exactly_if_one_root_is_above_all(governors: tuple[int, ...]) -> None:
    roots = [word for word, governor in enumerate(governors) if governor == ROOT]
    is_tree = len(roots) == 1 and all(
        word in roots or roots[0] in ancestors(governors, word) for word in range(len(governors))
    )
    assert (tree_defect(governors) is None) == (is_tree or not governors)


def test_columns_of_a_sentence_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="sentence 's': words, governors and relations differ"):
        Sentence("s", "d", 0, ("a", "b"), (ROOT,), ("root", "obj"))


@pytest.mark.parametrize("ends_in_cycle", [True, False])
def test_long_chains_take_linear_time(ends_in_cycle: bool) -> None:
    """Quadratic work on so many words would take an hour."""
    n_words = 200_000
    last = n_words - 2 if ends_in_cycle else ROOT
    governors = (*range(1, n_words), last)
    assert find_cycle(governors) == ((n_words - 2, n_words - 1) if ends_in_cycle else ())


# Examples


def sentences(*places: tuple[str, int]) -> list[Sentence]:
    return [
        Sentence(f"{document}{position}", document, position, ("x",), (ROOT,), ("root",))
        for document, position in places
    ]


def ids(examples: Iterator[Example]) -> list[str]:
    return [example.id for example in examples]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], []),
        ([("a", 0)], ["a0"]),
        ([("a", 0), ("a", 1)], ["a0+a1"]),
        ([("a", 0), ("a", 1), ("a", 2), ("a", 3)], ["a0+a1", "a2+a3"]),
        ([("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)], ["a0+a1", "a2", "b0+b1"]),
        ([("a", 0), ("b", 1)], ["a0", "b1"]),
        ([("a", 0), ("a", 2), ("a", 3)], ["a0", "a2+a3"]),
        ([("a", 1), ("a", 0)], ["a1", "a0"]),
        ([("a", 1), ("a", 2)], ["a1+a2"]),
    ],
)
def test_adjacent_sentences_of_a_document_are_paired(
    places: list[tuple[str, int]], expected: list[str]
) -> None:
    assert ids(make_examples(sentences(*places), "adjacent")) == expected


def test_pairing_none_makes_every_sentence_an_example() -> None:
    examples = list(make_examples(sentences(("a", 0), ("a", 1), ("b", 0)), pairing="none"))
    assert [example.id for example in examples] == ["a0", "a1", "b0"]
    assert [example.document for example in examples] == ["a", "a", "b"]
