"""Controls: comparisons whose answer is known, on arrays and on a small encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import compare_roles, read_conllu, score_heads
from headroles.inference import adjust_p_values
from headroles.scoring.scores import HeadScores
from tests.conftest import make_bert
from tests.studies.comparison.made import make_scores

LAYERS, HEADS = 2, 4
HEAD = 2  # the one that is changed, in the last layer: nothing comes after it
NOISE = (0.03, 0.3, 3.0)


def score(
    model: PreTrainedModel, part: Path, tokenizer: PreTrainedTokenizerBase, **options: Any
) -> HeadScores:
    return score_heads(model, read_conllu(part), tokenizer=tokenizer, preset="published", **options)


@pytest.fixture(scope="module")
def part(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten documents of the sample treebank."""
    documents = sample.read_text(encoding="utf-8").split("# newdoc")
    file = tmp_path_factory.mktemp("part") / sample.name
    file.write_text("# newdoc".join(documents[:11]), encoding="utf-8")
    return file


def with_noisy_head(noise: float) -> PreTrainedModel:
    """The small BERT with noise on the query weights of one head of its last layer.

    ``noise`` is the standard deviation in units of that of the weights.
    """
    model = make_bert(layers=LAYERS, heads=HEADS)
    weight = model.encoder.layer[-1].attention.self.query.weight
    rows = slice(HEAD * weight.shape[0] // HEADS, (HEAD + 1) * weight.shape[0] // HEADS)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        scale = noise * weight.std()
        weight[rows] += scale * torch.randn(weight[rows].shape, generator=generator)
    return model


@pytest.fixture(scope="module")
def before(part: Path, tokenizer: PreTrainedTokenizerBase) -> HeadScores:
    return score(make_bert(layers=LAYERS, heads=HEADS), part, tokenizer)


def test_one_noisy_head_is_found_and_no_other(
    before: HeadScores, part: Path, tokenizer: Any
) -> None:
    noisy = [score(with_noisy_head(noise), part, tokenizer) for noise in NOISE]
    frame = compare_roles(before, noisy[-1], margin=1e-3).frame
    touched = (frame.layer == LAYERS - 1) & (frame["head"] == HEAD)
    assert (frame[touched].p_value < 0.05 / len(frame)).any()
    assert not frame[~touched].changed.any()
    assert (frame[~touched].difference == 0).all()
    shifts = compare_roles(before, *noisy)
    moved = shifts.moved(2).groupby("checkpoint")
    assert moved.nth(0)[["layer", "head"]].values.tolist() == [[LAYERS - 1, HEAD]] * len(NOISE)
    assert (moved.nth(1).effect_size == 0).all()
    layers = shifts.layers()
    last = layers[layers.layer == LAYERS - 1]
    assert last.rms_difference.is_monotonic_increasing  # with the noise
    assert last.rms_difference.is_unique
    assert (layers[layers.layer < LAYERS - 1].rms_difference == 0).all()


def test_nothing_changes_where_nothing_changed(
    before: HeadScores, part: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Scored again, examples, scores and roles are identical; another batch rounds otherwise."""
    again = score(make_bert(layers=LAYERS, heads=HEADS), part, tokenizer)
    assert again.digests == before.digests
    frame = compare_roles(before, again).frame
    assert (frame.difference == 0).all()
    assert set(frame.change) == {"undecided"}  # ten documents are too few to show equivalence
    assert not frame.status.isin(["gained", "lost"]).any()
    model = make_bert(layers=LAYERS, heads=HEADS)
    other = score(model, part, tokenizer, batch_tokens=300)
    frame = compare_roles(before, other, margin=1e-4).frame
    assert (frame.difference.abs() < 1e-5).all()
    assert not frame.change.isin(["changed"]).any()


N = 300
FAMILIES = tuple(f"role {k}" for k in range(N))
AT_MOST = 0.05 + 3 * np.sqrt(0.05 * 0.95 / N)
"""Level of the tests, and three standard errors of a share of N."""


def any_in(p_values: pd.Series, roles: pd.Series, correction: str) -> float:
    """Share of roles, each a family of its own, in which any test rejects."""
    adjusted = p_values.groupby(roles).transform(lambda p: adjust_p_values(p, correction))
    return float((adjusted <= 0.05).groupby(roles).any().mean())


def share_found(correction: str, documents: int = 1, at: float = 0.0, **options: Any) -> float:
    """Share of ``N`` families of six heads, whose differences are noise alone, that find a change.

    With the effect ``at`` the margin: by p-values of a change beyond it.
    """
    rng = np.random.default_rng(0)
    noise = rng.normal(at, 1, (24, 1, 6, N))
    if documents > 1:  # what examples of a document share
        noise += rng.normal(0, 1, noise.shape)[np.arange(24) % documents]
    sides = (make_scores(values, FAMILIES, documents) for values in (np.zeros_like(noise), noise))
    frame = compare_roles(*sides, margin=abs(at) or None, **options).frame
    return any_in(frame["p_changed" if at else "p_value"], frame["role"], correction)


@pytest.mark.parametrize("at", [0, 0.5, -0.5])
def test_the_family_wise_error_rate_holds(at: float) -> None:
    assert 0 < share_found("bonferroni", at=at) <= AT_MOST


def test_without_a_correction_or_clusters_it_does_not() -> None:
    assert share_found("none") > 0.2
    assert share_found("bonferroni", documents=8) <= AT_MOST
    assert share_found("bonferroni", documents=8, clusters="none") > 0.2


def test_a_change_as_large_as_the_margin_is_seldom_equivalent() -> None:
    """Heads at both ends of the margin, those at one end and at the other in one family."""
    ends = np.where(np.arange(6) % 2, 0.5, -0.5)[:, None]
    noise = np.random.default_rng(0).normal(ends, 0.3, (24, 1, 6, N))
    before, after = (make_scores(values, FAMILIES) for values in (np.zeros_like(noise), noise))
    frame = compare_roles(before, after, margin=0.5).frame
    assert 0 < any_in(frame["p_equivalent"], frame["role"], "bonferroni") <= AT_MOST
