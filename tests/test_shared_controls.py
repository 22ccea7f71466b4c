"""What sentences lend to each other: between equal lengths, pooled by pairs of words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from headroles import read_conllu, score_heads
from headroles.shared_controls import SharedControls, count_controls
from headroles.sieves import BorrowedWeights, Controls
from tests.conftest import conllu_sentence, make_bert


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


def completed(
    lengths: list[int],
    totals: list[float],
    sums: list[float],
    lacks: dict[int, float],
    backward: bool = False,
) -> list[float]:
    """Contrasts of 1, less what each example lacks at one distance; one layer, head and role."""
    rows = list(range(len(lengths)))
    read = controls(lengths, [3] * len(rows), totals, [1] * len(rows))
    shared = SharedControls([rows], [read], 1, 1)
    assert shared.lacking.tolist() == [3]
    lent = np.zeros((len(rows), 1, 1, 2), dtype=np.float32)
    lent[..., int(backward)] = np.array(sums)[:, None, None]
    shared.lend(rows, lent)
    weights = np.array(list(lacks.values()), dtype=np.float32)[:, None]
    columns = np.full(len(lacks), int(backward))
    examples = np.array(list(lacks), dtype=np.int64)
    shared.borrow(rows, np.array([0]), BorrowedWeights(examples, columns, weights))
    values = np.ones((len(rows), 1, 1, 2), dtype=np.float32)
    shared.complete(values)
    assert (values[..., 0] == 1).all()  # no contrast: left alone
    return values[:, 0, 0, 1].tolist()


@pytest.mark.parametrize("backward", [False, True])
def test_a_mean_over_pairs_of_words(backward: bool) -> None:
    found = completed([20, 20, 20], [0, 1, 3], [0, 0.5, 0.3], {0: 10}, backward)
    assert found == pytest.approx([1 - 10 * 0.8 / 4, 1, 1])


def test_only_examples_of_the_same_length_lend() -> None:
    found = completed([20, 20, 21], [0, 1, 3], [0, 0.5, 0.3], {0: 10})
    assert found == pytest.approx([1 - 10 * 0.5, 1, 1])


def test_without_lender_the_contrast_is_missing() -> None:
    found = completed([20, 40], [0, 1], [0, 0.5], {0: 10})
    assert np.isnan(found).tolist() == [True, False]


def test_nothing_borrowed() -> None:
    assert completed([20, 20], [0, 1], [0, 0.5], {}) == [1, 1]


def test_several_distances_roles_and_batches() -> None:
    """The second batch lends at both distances; the first lacks both, and another layer none."""
    borrower = controls([20], [3], [0], [1])
    lender = replace(
        controls([20], [3], [1], [1]),
        owners=np.array([0, 0]),
        sentences=np.array([0, 1]),
        distances=np.array([3, 7]),
        n_arc_pairs=np.array([1, 1]),
        totals=np.array([1.0, 2.0]),
    )
    other = controls([30], [7], [0], [1])
    shared = SharedControls([[2], [0], [1]], [borrower, lender, other], 2, 1)
    assert shared.lacking.tolist() == [3, 7]
    shared.lend([0], np.full((1, 2, 1, 4), [0.5, 0.4, 0.1, 0.1], dtype=np.float32))
    wants = np.array([[2, 0], [5, 5]], dtype=np.float32)
    shared.borrow([2], np.array([1]), BorrowedWeights(np.array([0, 0]), np.array([0, 1]), wants))
    values = np.ones((3, 2, 1, 2), dtype=np.float32)
    shared.complete(values)
    assert (values[:2] == 1).all()
    assert values[2, :, 0].tolist() == [
        [1, 1],
        pytest.approx([1 - 2 * 0.5 - 5 * 0.4 / 2, 1 - 5 * 0.4 / 2]),
    ]


def test_counts_by_where_controls_are() -> None:
    """A pair of pieces of an arc is one from either end."""
    read = [controls([10, 10], [1, 4], [2, 0], [3, 1]), controls([10, 10], [4, 9], [5, 0], [2, 7])]
    assert count_controls(read) == {
        "in the same sentence": 2 * 5,
        "in sentences read together": 2 * 1,
        "nowhere": 2 * 7,
    }
    read[1] = controls([20, 10], [4, 9], [5, 0], [2, 7])
    assert count_controls(read)["nowhere"] == 2 * 8


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
