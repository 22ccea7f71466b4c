"""Sentences -> examples of one sentence or two adjacent ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroles.corpus import ROOT, Example, Sentence, make_examples


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


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=12))
def test_every_sentence_is_in_one_example_and_order_is_kept(places: list[tuple[str, int]]) -> None:
    given_sentences = sentences(*places)
    examples = list(make_examples(given_sentences, "adjacent"))
    assert [s for example in examples for s in example.sentences] == given_sentences
    for example in examples:
        assert len({s.document for s in example.sentences}) == 1
        first = example.sentences[0].position
        assert [s.position - first for s in example.sentences] in ([0], [0, 1])
