"""Attention between words is that of the pieces; model, tokenizer and words are those scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from headroles import HeadScores, WordAttention, read_attention, read_conllu, score_heads
from headroles.errors import ModelError, UsageError
from headroles.storage import plain
from tests.conftest import changed, make_bert, make_tokenizer
from tests.rounding import WEIGHTS, tolerance

OBJ = "syntactic:obj:to_governor"
ROLES = "local delimiter:sep position:-1 self punctuation syntactic block entropy".split()


@pytest.fixture
def scores(bert_folder: Path, treebank: Path) -> HeadScores:
    return score_heads(bert_folder, read_conllu(treebank), beyond_offset=False, roles=ROLES)


def one(scores: HeadScores, role: str, head: tuple[int, int] = (1, 2), **options: Any) -> Any:
    return read_attention(scores, head, role, n=1, **options)[0]


def by_loops(folder: Path, sentences: list[list[str]], layer: int, head: int) -> Any:
    """Attention between words and special tokens, from what the model itself gives out."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    batch = tokenizer(
        *[[words] for words in sentences], is_split_into_words=True, return_tensors="pt"
    )
    with torch.inference_mode():
        pieces = model(**batch, output_attentions=True).attentions[layer][0, head].numpy()
    units: list[list[int]] = []
    named: list[Any] = []
    for place, name in enumerate(zip(batch.sequence_ids(0), batch.word_ids(0), strict=True)):
        if None in name or name not in named:
            units.append([])
            named.append(name)
        units[-1].append(place)
    return np.array(
        [
            [np.mean([sum(pieces[i, j] for j in key) for i in query]) for key in units]
            for query in units
        ]
    )


@pytest.mark.numbers
def test_attention_is_summed_over_keys_and_averaged_over_queries(
    scores: HeadScores, bert_folder: Path
) -> None:
    found = one(scores, OBJ, example="a-1+a-2")
    words = [["Cats", "sleep", "."], ["Old", "dogs", "eat", "bones"]]
    assert found.labels == ("[CLS]", *words[0], "[SEP]", *words[1], "[SEP]")
    assert found.words.tolist() == [-1, 0, 1, 2, -1, 3, 4, 5, 6, -1]
    np.testing.assert_allclose(
        found.weights, by_loops(bert_folder, words, 1, 2), atol=tolerance(of=WEIGHTS)
    )
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=tolerance())


def test_the_score_follows_from_the_sieve(scores: HeadScores) -> None:
    found = one(scores, OBJ)
    ((query, key),) = np.argwhere(found.sieve).tolist()
    assert (found.labels[query], found.labels[key]) == ("bones", "eat")
    n_tokens, n_pieces = scores.lengths[scores.ids.index(found.example)], len("eat")
    assert found.score == pytest.approx(
        n_tokens / n_pieces * found.weights[query, key], rel=WEIGHTS
    )


@pytest.mark.parametrize(
    ("role", "is_looked_for"),
    [
        ("position:-1", lambda q, k: k == q - 1),
        ("delimiter:sep", lambda q, k: k in (4, 9)),
        ("syntactic:obj:to_dependent", lambda q, k: (q, k) == (7, 8)),
        ("block:ratio", lambda q, k: k in (range(1, 4) if q < 4 else range(5, 9))),
        ("entropy", lambda q, k: False),
    ],
)
def test_the_sieve_is_that_of_the_role(scores: HeadScores, role: str, is_looked_for: Any) -> None:
    found = one(scores, role, example="a-1+a-2")
    expected = np.array([[is_looked_for(q, k) for k in range(10)] for q in range(10)])
    if role == "position:-1":  # a word of several pieces looks at itself too
        expected |= np.diag([len(label) > 1 and label[0] != "[" for label in found.labels])
    np.testing.assert_array_equal(found.sieve, expected)


def test_norms_are_read_where_norms_were_scored(bert_folder: Path, treebank: Path) -> None:
    options = {"beyond_offset": False, "measure": "norms"}
    scores = score_heads(bert_folder, read_conllu(treebank), **options)
    found = one(scores, OBJ)
    ((query, key),) = np.argwhere(found.sieve).tolist()
    n_tokens = scores.lengths[scores.ids.index(found.example)]
    assert found.measure == "norms"
    assert found.score == pytest.approx(n_tokens / 3 * found.weights[query, key], rel=WEIGHTS)


def test_places_of_documents_and_ids_are_those_that_were_asked_for(
    bert_folder: Path, treebank: Path
) -> None:
    scores = score_heads(bert_folder, read_conllu(treebank, ids="place", documents="sent_id"))
    found = read_attention(scores, (0, 0), "local", n=2)
    assert {name.partition("-")[0] for name in (one.example for one in found)} == {"small"}


def test_another_model_is_refused(scores: HeadScores, tmp_path: Path) -> None:
    other = make_bert(seed=1)
    with pytest.raises(ModelError, match=r"is not the model that was scored.*with model"):
        one(scores, OBJ, model=other, tokenizer=make_tokenizer())
    same = one(scores, OBJ, model=make_bert(), tokenizer=make_tokenizer())
    assert isinstance(same, WordAttention)
    assert same.weights == pytest.approx(one(scores, OBJ).weights)
    model = {**plain(scores.record.model), "model": str(tmp_path / "gone")}
    scores = changed(scores, model=model)
    with pytest.raises(ModelError, match=r"there is no folder .*gone.*name the model.*with model"):
        one(scores, OBJ)


def test_another_precision_is_refused(scores: HeadScores) -> None:
    with pytest.raises(ModelError, match=r"scored: .* in float32, now in bfloat16"):
        one(scores, OBJ, dtype="bfloat16")


def test_half_precision_is_loaded_as_it_was_scored(bert_folder: Path, treebank: Path) -> None:
    scores = score_heads(bert_folder, read_conllu(treebank), dtype="bfloat16")
    found = one(scores, "local")
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=tolerance())


def test_other_pieces_are_refused(scores: HeadScores) -> None:
    cased = make_tokenizer()
    cased.backend_tokenizer.normalizer.lowercase = False
    with pytest.raises(ModelError, match="cuts words into other pieces"):
        one(scores, OBJ, tokenizer=cased)


def test_an_example_without_a_score_is_refused(scores: HeadScores) -> None:
    with pytest.raises(UsageError, match=f"no score of {OBJ} in an example 'a-3'"):
        one(scores, OBJ, example="a-3")
    with pytest.raises(UsageError, match="leave which out"):
        one(scores, OBJ, example="a-3", which="smallest")
