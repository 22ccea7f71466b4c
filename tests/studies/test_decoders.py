"""Answers about decoders: the contrast with other trees, and directions that they do not see."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from headroles import HeadScores, SavedAttention, assign_roles, classify_heads, score_heads
from headroles.corpus import Corpus, make_corpus
from headroles.errors import UsageError
from tests.models.decoders import make_decoder

OBJ, TO_VERB = "syntactic:obj:to_dependent", "syntactic:obj:to_governor"
RNG = np.random.default_rng(0)


def corpus_of_objects(n: int = 60) -> Corpus:
    """Sentences of two lengths, whose verb has an object before it."""
    trees = []
    for k in range(n):
        length, verb = 8 + k % 2, int(RNG.integers(3, 7))
        place = int(RNG.integers(0, verb))
        governors, relations = [verb] * length, ["dep"] * length
        governors[verb], relations[verb] = -1, "root"
        relations[place] = "obj"
        trees.append(([f"w{k}-{word}" for word in range(length)], governors, relations))
    return make_corpus(trees, documents=[f"d{k}" for k in range(n)])


def scores_of_heads(corpus: Corpus, **options: str) -> HeadScores:
    """Heads: uniform, to the previous word, and half of its attention from a verb to its object."""
    arrays, words = {}, {}
    for sentence in corpus:
        n = len(sentence.words)
        uniform = np.tri(n) / np.arange(1, n + 1)[:, None]
        previous = np.eye(n, k=-1) + np.eye(n)[:, :1] @ np.eye(1, n)
        follows = uniform / 2
        for place, relation in enumerate(sentence.relations):
            if relation == "obj":
                follows[sentence.governors[place], place] += 0.5
        rows = follows.sum(axis=1, keepdims=True)
        arrays[sentence.id] = np.stack([uniform, previous, follows / rows])[None]
        words[sentence.id] = list(range(n))
    asked = {"roles": "syntactic", "relations": "obj", "pairing": "none", **options}
    return score_heads(SavedAttention(arrays, words), corpus, **asked)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpus_of_objects()


@pytest.mark.parametrize("score", ["bias", "excess"])
def test_distance_is_shown_by_the_contrast_with_other_trees(corpus: Corpus, score: str) -> None:
    scores = scores_of_heads(corpus, score=score)
    table = assign_roles(scores, threshold=0.05)
    rows = table.frame[table.frame["role"] == OBJ].set_index("head")
    own, others = (scores.column(name) for name in (OBJ, f"{OBJ}:other_trees"))
    expected = np.nanmean(own.astype(float) - others, axis=0)
    for column in ("beyond_distance", "beyond_trees"):
        np.testing.assert_allclose(rows[column], expected, atol=1e-6)
    assert rows["beyond_distance"][0] == pytest.approx(0, abs=1e-6)
    assert rows.loc[2, "answer"] == "yes"
    assert rows.loc[2, "evidence"] == "distance"
    assert not rows["assigned"][[0, 1]].any()
    assert "Above other trees" in str(table)


def test_directions_that_a_decoder_does_not_see_are_untestable(corpus: Corpus) -> None:
    table = assign_roles(scores_of_heads(corpus))
    rows = table.frame[table.frame["role"] == TO_VERB]
    assert set(rows["answer"]) == {"untestable"}
    n = sum(sentence.relations.count("obj") for sentence in corpus)
    assert set(rows["note"]) == {f"untestable: the key comes later in {n} of {n} arcs"}
    assert rows["mean"].isna().all()


def test_decoders_need_the_control_of_other_trees(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="without its control other_trees, which controls dist"):
        assign_roles(scores_of_heads(corpus, controls="none"))


def test_tables_of_decoders_are_saved_and_shown(
    sample: Path, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    found = classify_heads(make_decoder("llama"), sample, tokenizer=tokenizer, relations="obj,det")
    found.save(tmp_path / "out")
    again = type(found).load(tmp_path / "out").roles
    assert repr(again) == repr(found.roles)
    rows = again.frame[again.frame["role"] == "syntactic:det:to_governor"]
    assert rows["note"].str.contains("the key comes later in").all()
