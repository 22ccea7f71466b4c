"""Controls of roles of pairs: other words at the same offset, and the arcs of other sentences.

Which pairs are controls, `tests.reference` defines, and every test of scores compares with that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles import classify_heads, make_corpus, score_heads
from headroles.corpus import Sentence
from headroles.encoding import EncodedExample
from headroles.results.shown import as_text
from headroles.roles import is_other_trees
from headroles.roles.batch import PaddedBatch
from headroles.roles.contrasts import MOST_LENDERS, BorrowedLinks, Lenders
from headroles.roles.syntactic import Arcs
from headroles.scoring.scores import HeadScores
from tests.conftest import make_bert, make_tokenizer
from tests.roles.examples import (
    RELATIONS,
    ROLES,
    S,
    examples,
    make_example,
    score_of,
    sizes_in,
    tokens_of,
)
from tests.rounding import tolerance

FIRST = next(place for place, role in enumerate(ROLES) if role.endswith(":beyond_offset"))
CONTRASTS = ROLES[FIRST:]


def contrasts_of(
    attention: NDArray[np.floating], batch: list[EncodedExample], score: str = "bias"
) -> NDArray[np.float64]:
    """(batch, heads, contrasts), NaN where there is none."""
    return score_of(attention, batch, score)[..., -len(CONTRASTS) :]


def profile(n: int, seed: int) -> NDArray[np.float64]:
    """(n, n): attention that depends on the offset alone."""
    by_offset = np.random.default_rng(seed).random(2 * n)
    attention: NDArray[np.float64] = by_offset[np.subtract.outer(range(n), range(n)) + n] / n
    return attention


@given(examples(), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_attention_by_offset_alone_scores_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at positions and not at words has no contrast, not even of rounding."""
    values = contrasts_of(profile(len(example), seed)[None, None], [example])
    assert set(values[~np.isnan(values)].tolist()) <= {0.0}


@given(examples(min_words=5), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_attention_along_arcs_scores_above_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at governors, and else by offset, differs from one that does not."""
    n = len(example)
    attention = profile(n, seed)
    for _, dependent, governor in tokens_of(example).arcs(RELATIONS):
        attention[np.ix_(dependent, governor)] += 0.5
    values = score_of(attention[None, None], [example])
    sizes = sizes_in(values, [example])[0, 0, FIRST:]
    for role, value, size in zip(CONTRASTS, values[0, 0, FIRST:], sizes, strict=True):
        if not np.isnan(value):
            expected = 0.0 if "to_dependent" in role else 0.5 * n
            assert value == pytest.approx(expected, abs=tolerance(size))


@pytest.mark.parametrize("score", ["bias", "excess"])
def test_what_is_only_rounding_is_zero(score: str) -> None:
    """Contrasts below the bound of what arcs and controls get are 0; those above stay."""
    # w0 -> w1 and controls at +1: (1, 2), (2, 3); w1 -> w0, and controls at -1
    example = make_example([S, 0, 0, 0, 0, S], governors=[1, -1, -1, -1], relations={0: "r0"})
    attention = np.full((1, 2, 6, 6), 1 / 6)
    bound = 2 * tolerance()
    attention[0, 0, 1, 2] *= 1 + bound / 2
    attention[0, 1, 1, 2] *= 1 + 4 * bound
    found = contrasts_of(attention, [example], score)[0, :, 0]
    assert found[0] == 0
    assert found[1] == pytest.approx(4 * bound * (1 if score == "bias" else 1 / 5), rel=0.1)


# The trees of other sentences

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
