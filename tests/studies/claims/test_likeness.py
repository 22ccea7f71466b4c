"""Divergences of heads against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from headroles.studies.claims.likeness import divergences
from tests.rounding import tolerance


def test_divergences_are_those_of_scipy() -> None:
    rows = torch.softmax(torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0)), -1)
    rows[0, 0] = torch.tensor([1.0, 0, 0, 0])
    found = divergences(rows)
    arrays = rows.numpy()
    oracle = [
        [(jensenshannon(one, other, axis=1) ** 2).mean() for other in arrays] for one in arrays
    ]
    assert found == pytest.approx(np.array(oracle), abs=tolerance())
