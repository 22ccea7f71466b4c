"""Quantities that describe heads: hand-checked examples and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headroles.passes.examples import as_tensors
from headroles.roles import SCORES, PaddedBatch, RoleOptions, Scope, choose_roles, make_readout
from headroles.scoring.layer import read_scores
from tests.noise import with_noise
from tests.roles.examples import HAND, HAND_SEGMENTS, S, make_example
from tests.roles.test_first_choices import FOUR, FOUR_SEGMENTS
from tests.rounding import tolerance


def quantities(attention: np.ndarray, segments: list[int], score: str = "bias") -> dict[str, float]:
    options = RoleOptions(roles=["confidence", "entropy", "distance"])
    roles = choose_roles(options, (), SCORES[score])
    readout = make_readout(roles, Scope(PaddedBatch([make_example(segments)]), None, SCORES[score]))
    weights = with_noise(torch.tensor(attention, dtype=torch.float32))
    read = read_scores(weights, as_tensors(readout, torch.device("cpu")))
    found = read[0, 0, list(readout.columns)].tolist()
    return dict(zip([role.id for role in roles], found, strict=True))


@pytest.mark.numbers
@pytest.mark.parametrize("score", SCORES)
def test_hand_checked_examples(score: str) -> None:
    """Voita et al.'s confidence; the entropies of the rows of the other example."""
    assert quantities(FOUR, FOUR_SEGMENTS, score)["confidence"] == pytest.approx(0.575)
    rows = [1.609438, 1.609438, 1.470808, 1.054920, 1.748067, 1.470808, 1.834372]
    found = quantities(HAND, HAND_SEGMENTS, score)
    assert found["entropy"] == pytest.approx(np.mean(rows), abs=tolerance(rows))
    assert found["entropy:share"] == pytest.approx(np.mean(rows) / np.log(7), abs=tolerance())
    apart = np.abs(np.subtract.outer(range(7), range(7)))
    assert found["distance"] == pytest.approx((HAND[0, 0] * apart).sum(1).mean(), rel=tolerance())


def test_even_and_single_attention() -> None:
    segments = [S, 0, 0, 0, S]
    even = quantities(np.full((1, 1, 5, 5), 0.2), segments)
    assert even["entropy:share"] == pytest.approx(1)
    assert even["confidence"] == pytest.approx(0.2)
    assert even["distance"] == pytest.approx(1.6)
    itself = quantities(np.eye(5)[None, None], segments)
    assert list(itself.values()) == pytest.approx([1, 0, 0, 0], abs=tolerance())
