"""What sentences lend to each other: between equal lengths, pooled by pairs of words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from headroles import read_conllu, score_heads
from headroles.shared_controls import Lent, complete_contrasts, count_controls, lacking_distances
from headroles.sieves import BorrowedWeights, ContrastWeights, Controls
from tests.conftest import conllu_sentence, make_bert


def lent(
    totals: list[list[float]], sums: list[list[float]], lacks: list[list[float]], layer: int = 0
) -> Lent:
    """One layer, one head, one role; a distance per column, later words as keys."""
    n_examples, n_distances = np.shape(totals)
    example, column = np.nonzero(lacks)
    none = np.zeros((n_examples, 0), dtype=np.float32)
    weights = ContrastWeights(
        pairs=none.astype(np.int64),
        pair_weights=none[..., None],
        run_weights=none[..., None],
        lending=none[..., None],
        totals=np.array(totals),
        borrowed=BorrowedWeights(
            example, column, np.array(lacks, dtype=np.float32)[example, column, None]
        ),
    )
    both = np.zeros((n_examples, 1, 1, 2 * n_distances), dtype=np.float32)
    both[..., :n_distances] = np.array(sums)[:, None, None]
    return Lent(np.arange(n_examples), np.array([layer]), weights, both)


def completed(lengths: list[int], part: Lent) -> list[float]:
    values = np.ones((len(lengths), 1, 1, 2), dtype=np.float32)
    complete_contrasts(values, np.array(lengths), [part])
    assert (values[..., 0] == 1).all()  # no contrast: left alone
    return values[:, 0, 0, 1].tolist()


def test_a_mean_over_pairs_of_words() -> None:
    part = lent([[0], [1], [3]], [[0], [0.5], [0.3]], [[10], [0], [0]])
    assert completed([20, 20, 20], part) == pytest.approx([1 - 10 * 0.8 / 4, 1, 1])


def test_only_examples_of_the_same_length_lend() -> None:
    part = lent([[0], [1], [3]], [[0], [0.5], [0.3]], [[10], [0], [0]])
    assert completed([20, 20, 21], part) == pytest.approx([1 - 10 * 0.5, 1, 1])


def test_without_lender_the_contrast_is_missing() -> None:
    part = lent([[0, 2], [1, 2]], [[0, 0.1], [0.5, 0.1]], [[10, 0], [0, 0]])
    assert np.isnan(completed([20, 40], part)).tolist() == [True, False]


def test_the_later_word_as_query() -> None:
    """The second half of the columns, with the same pairs of words."""
    part = lent([[0], [4]], [[9], [9]], [[10], [0]])
    part.contrasts.borrowed.columns[:] = 1
    part.sums[..., 1] = [[[0]], [[0.8]]]
    assert completed([20, 20], part) == pytest.approx([1 - 10 * 0.8 / 4, 1])


def test_several_distances_add_up() -> None:
    part = lent([[0, 0], [1, 2]], [[0, 0], [0.5, 0.4]], [[2, 5], [0, 0]])
    assert completed([20, 20], part) == pytest.approx([1 - 2 * 0.5 - 5 * 0.2, 1])


def controls(
    lengths: list[int], distances: list[int], totals: list[float], n_arc_pairs: list[int]
) -> Controls:
    """A cell per example."""
    none = np.zeros(0, dtype=np.int64)
    return Controls(
        lengths=np.array(lengths),
        boundaries=np.full(len(lengths), 99),
        owners=np.arange(len(lengths)),
        sentences=np.zeros_like(distances),
        distances=np.array(distances),
        n_arc_pairs=np.array(n_arc_pairs),
        totals=np.array(totals),
        cells=none,
        firsts=none,
        seconds=none,
        weights=np.zeros(0),
    )


def test_counts_by_where_controls_are() -> None:
    """A pair of pieces of an arc is one from either end."""
    read = [controls([10, 10], [1, 4], [2, 0], [3, 1]), controls([10, 10], [4, 9], [5, 0], [2, 7])]
    assert lacking_distances(read).tolist() == [4, 9]
    assert count_controls(read) == {
        "in the same sentence": 2 * 5,
        "in sentences read together": 2 * 1,
        "nowhere": 2 * 7,
    }
    read[1] = controls([20, 10], [4, 9], [5, 0], [2, 7])
    assert count_controls(read)["nowhere"] == 2 * 8


def test_nothing_read() -> None:
    assert len(lacking_distances([])) == 0


def test_uniform_attention_has_no_contrast(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Whatever the lengths of sentences that borrow and lend."""
    model = make_bert(layers=1)
    attention = model.encoder.layer[0].attention.self
    attention.query.weight.data.zero_()
    attention.query.bias.data.zero_()
    rng = np.random.default_rng(0)
    sentences = []
    for k in range(60):
        n = int(rng.integers(2, 9))
        rows = [("the", int(rng.integers(1, d)) if d > 1 else 0, "nsubj") for d in range(1, n + 1)]
        sentences.append(conllu_sentence(rows, f"s{k}", f"d{k}"))
    file = tmp_path / "many.conllu"
    file.write_text("".join(sentences), "utf-8")
    scores = score_heads(model, read_conllu(file), tokenizer, relations=["nsubj"])
    assert scores.provenance["controls"]["in sentences read together"] > 5
    contrasts = [k for k, role in enumerate(scores.roles) if role.endswith("beyond_offset")]
    found = scores.values[..., contrasts]
    assert np.isfinite(found).mean() > 0.5
    np.testing.assert_allclose(found[np.isfinite(found)], 0, atol=1e-5)
