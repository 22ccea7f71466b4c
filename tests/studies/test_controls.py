"""Permuted words and weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import headroles as hr
from headroles.errors import UsageError
from headroles.roles import contrast_of
from headroles.studies.classification.assignment import assign
from headroles.studies.classification.options import AssignOptions
from headroles.studies.controls import with_permuted_weights, with_permuted_words
from tests.conftest import flat, make_bert, make_scores


def matrices_of(model: object) -> dict[str, Tensor]:
    return {name: one.detach() for name, one in model.named_parameters()}  # type: ignore[attr-defined]


def test_scores_alone_have_no_control_that_takes_its_own_pass(sample: Path) -> None:
    for name in ("words", "trees,weights"):
        with pytest.raises(UsageError, match="which only classify makes; give trees, or none"):
            hr.score_heads(make_bert(), sample, controls=name)


def test_where_no_sentence_has_another_tree(bert_folder: Path) -> None:
    """Sentences of lengths of their own give no arcs of others, under first choices neither."""
    words = ("the", "a", "of", "to", "in")
    trees = [(words[:n], [-1, *[0] * (n - 1)], ["root", *["nsubj"] * (n - 1)]) for n in range(2, 6)]
    table = hr.classify_heads(bert_folder, hr.make_corpus(trees), score="hit", roles="syntactic")
    assert table.roles.frame["mean_trees"].isna().all()
    assert table.roles.frame["mean"].notna().any()


def test_words_are_permuted_and_trees_stay(sample: Path) -> None:
    corpus = hr.read_conllu(sample)
    before, after = list(corpus), list(with_permuted_words(corpus, 0))
    assert after == list(with_permuted_words(corpus, 0))
    assert after != list(with_permuted_words(corpus, 1))
    assert sum(one.words != other.words for one, other in zip(before, after, strict=True)) > 2
    for one, other in zip(before, after, strict=True):
        assert (one.governors, one.relations) == (other.governors, other.relations)
        pairs = [sorted(zip(own.words, own.upos, strict=True)) for own in (one, other)]
        assert pairs[0] == pairs[1]


def test_the_order_of_a_sentence_depends_on_it_alone(sample: Path) -> None:
    sentences = list(hr.read_conllu(sample))
    alone = with_permuted_words(hr.make_corpus(sentences[3:4]), 0)
    assert list(alone) == list(with_permuted_words(hr.make_corpus(sentences), 0))[3:4]


def test_weights_are_permuted_within_matrices() -> None:
    model = make_bert()
    before, after = matrices_of(model), matrices_of(with_permuted_weights(model, 0))
    again, other = (matrices_of(with_permuted_weights(model, seed)) for seed in (0, 1))
    for name, weights in before.items():
        assert torch.equal(after[name].flatten().sort().values, weights.flatten().sort().values)
        assert torch.equal(after[name], again[name])
        is_moved = weights.ndim > 1
        assert torch.equal(after[name], weights) != is_moved
        assert torch.equal(after[name], other[name]) != is_moved


@pytest.mark.parametrize(("n_found", "warned"), [(1, False), (2, False), (3, True), (8, True)])
def test_a_control_that_finds_more_than_a_quarter_is_warned_of(n_found: int, warned: bool) -> None:
    """Of 8 heads with a role of arcs, a control finds some; the page and methods count them."""
    role = "syntactic:nsubj:to_governor"
    noise = np.random.default_rng(0).normal(0, 0.1, (40, 1, 8, 2))
    of_control = np.where(np.arange(8) < n_found, 9.0, 1.0)[:, None] * [1, 0] + [0, 1.0]
    own, other = (
        make_scores(level + noise, [role, contrast_of(role)]) for level in ([9.0, 1.0], of_control)
    )
    table = assign(own, AssignOptions(), {"words": other})
    assert table.controls.iloc[0][["heads", "words"]].tolist() == [8, n_found]
    found = f"With permuted words {n_found} head"
    assert found in flat(table)
    assert any("Controls find heads" in one for one in table.record.warnings) == warned
