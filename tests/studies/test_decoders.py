"""Answers about decoders: the contrast with other trees, and directions that they do not see."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from headroles import (
    HeadScores,
    SavedAttention,
    assign_roles,
    classify_heads,
    read_attention,
    score_heads,
)
from headroles.corpus import Corpus, make_corpus
from headroles.errors import UsageError
from tests.conftest import make_bert
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


EARLIER = "syntactic:{}:to_earlier"


@pytest.mark.parametrize("score", ["bias", "hit"])
def test_every_arc_counts_from_its_later_word_to_the_earlier_one(
    sample: Path, tokenizer: PreTrainedTokenizerBase, score: str
) -> None:
    """The scores of an example are the mean of those of both directions, by their arcs."""
    model, relations = make_decoder("gpt2"), "nsubj,obj,obl+case"
    scores = score_heads(model, sample, tokenizer=tokenizer, relations=relations, score=score)
    for name in ("any", "nsubj", "obl+case"):
        ways = [f"syntactic:{name}:{end}" for end in ("to_governor", "to_dependent", "to_earlier")]
        places = [scores.role_ids.index(way) for way in ways]
        forth, back, either = scores.counts[:, places].T.astype(float)
        np.testing.assert_array_equal(forth + back, either)
        assert forth.sum() * back.sum() > 0
        there = either > 0
        sums = np.nan_to_num(np.stack([scores.column(way) for way in ways[:2]]))
        sums[0] *= forth[:, None]
        sums[1] *= back[:, None]
        expected = sums.sum(axis=0)[there] / either[there, None]
        np.testing.assert_allclose(scores.column(ways[2])[there], expected, rtol=1e-5)
    assert scores.roles[scores.role_ids.index(EARLIER.format("nsubj"))].words == (
        "subject and verb, later -> earlier"
    )
    of_model = {"model": model, "tokenizer": tokenizer}
    (read,) = read_attention(scores, (1, 2), EARLIER.format("any"), n=1, **of_model)
    queries, keys = np.nonzero(read.sieve)
    assert len(queries)
    assert (queries > keys).all()


def test_arcs_in_both_directions_have_one_answer(corpus: Corpus) -> None:
    """All objects stand before their verb, so that the pooled role is that of one direction."""
    table = assign_roles(scores_of_heads(corpus), threshold=0.5)
    rows = table.frame.set_index(["role", "head"])
    for column in ("mean", "beyond_distance", "answer", "evidence"):
        one_way, either = (rows.loc[(name, 2), column] for name in (OBJ, EARLIER.format("obj")))
        assert one_way == either, column
    assert rows.loc[(OBJ, 2), "answer"] == "yes"
    assert rows.loc[(TO_VERB, 2), "answer"] == "untestable"


def test_encoders_have_both_directions_alone(
    sample: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    bert = score_heads(make_bert(), sample, tokenizer=tokenizer, relations="obj")
    assert not any("to_earlier" in name for name in bert.role_ids)
