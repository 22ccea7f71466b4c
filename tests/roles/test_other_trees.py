"""The control with the arcs of other sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroles import classify_heads, make_corpus, score_heads
from headroles.corpus import Sentence
from headroles.results.shown import as_text
from headroles.roles import is_other_trees
from headroles.roles.batch import PaddedBatch
from headroles.roles.contrasts import MOST_LENDERS, BorrowedLinks, Lenders
from headroles.roles.syntactic import Arcs
from headroles.scoring.scores import HeadScores
from tests.conftest import make_bert, make_tokenizer
from tests.roles.examples import S, make_example

ARCS = Arcs(("nsubj", "obj"))
RNG = np.random.default_rng(0)


def sentence(governors: list[int], document: str, relations: str = "nsubj", n: int = 0) -> Sentence:
    words = tuple(f"{document}{n}w{k}" for k in range(len(governors)))
    labels = tuple(relations if own >= 0 else "root" for own in governors)
    return Sentence(f"{document}-{n}", document, n, words, tuple(governors), labels)


def borrowed(one: Sentence, *others: Sentence) -> list[list[int]]:
    """The arcs that a sentence borrows in a corpus with others."""
    example = make_example([S, *[0] * len(one.words), S], governors=list(one.governors))
    batch = PaddedBatch([replace(example, sentences=(one,))])
    table = BorrowedLinks(ARCS, Lenders([one, *others]))(batch)
    return (np.stack([table.first[:, 0], table.second[:, 0]], axis=1) - 1).tolist()


def test_arcs_are_those_of_another_sentence_without_real_ones_in_either_direction() -> None:
    one, other = sentence([1, -1, 1, 2], "a"), sentence([3, 0, 3, -1], "b")
    assert borrowed(one, other) == [[0, 3]]  # (1, 0) and (2, 3) join words of (0, 1) and (3, 2)


@pytest.mark.parametrize(
    "other",
    [sentence([1, -1, 1], "b"), sentence([3, 0, 3, -1], "a", n=1)],
    ids=["another length", "the same document"],
)
def test_a_sentence_without_a_lender_borrows_nothing(other: Sentence) -> None:
    assert borrowed(sentence([1, -1, 1, 2], "a"), other, sentence([-1], "c")) == []


def test_a_corpus_of_one_document_lends_within_it() -> None:
    assert borrowed(sentence([1, -1, 1, 2], "a"), sentence([3, 0, 3, -1], "a", n=1)) == [[0, 3]]


def test_lenders_do_not_depend_on_the_order_of_the_corpus() -> None:
    several = [sentence([1, -1, 1, 2], f"d{k}") for k in range(3 * MOST_LENDERS)]
    found = [
        [one.lender_of(sentence) for sentence in several]
        for one in (Lenders(several), Lenders(several[::-1]))
    ]
    assert found[0] == found[1]
    assert None not in found[0]
    assert len({lender.id for lender in found[0] if lender}) == MOST_LENDERS


@pytest.fixture(scope="module")
def both() -> tuple[HeadScores, HeadScores]:
    """Scores of a corpus with the control and without it."""
    triples = []
    for length in RNG.integers(4, 9, 40).tolist():
        governors = [int(RNG.integers(0, k)) if k else -1 for k in range(length)]
        labels = ["root", *(RNG.choice(["nsubj", "obj"], length - 1).tolist())]
        triples.append((RNG.choice([*"abcdefghi"], length).tolist(), governors, labels))
    corpus, options = make_corpus(triples), {"tokenizer": make_tokenizer()}
    model = make_bert(layers=2, heads=2)
    return tuple(score_heads(model, corpus, controls=one, **options) for one in ("none", "trees"))


def test_it_adds_columns_and_changes_no_other(both: tuple[HeadScores, HeadScores]) -> None:
    without, whole = both
    added = whole.role_ids[len(without.roles) :]
    assert whole.role_ids[: len(without.roles)] == without.role_ids
    assert added
    assert all(map(is_other_trees, added))
    np.testing.assert_array_equal(whole.values[..., : len(without.roles)], without.values)
    assert whole.facts.controls == without.facts.controls
    assert whole.record.corpus.skipped == without.record.corpus.skipped


def test_sentences_without_a_lender_are_counted_and_said() -> None:
    arcs = ((1, -1, 1), (1, -1, 1), (1, -1, 1, 1))
    triples = [
        ([f"{k}{w}" for w in range(len(own))], own, ["nsubj", "root", "obj", "obj"][: len(own)])
        for k, own in enumerate(arcs)
    ]
    model, tokenizer = make_bert(), make_tokenizer()
    made = classify_heads(model, make_corpus(triples), tokenizer=tokenizer, pairing="none")
    assert made.scores.facts.without_other_tree == 1
    assert "(1 of 3 have none)" in " ".join(as_text(made.roles.summarize()).split())
