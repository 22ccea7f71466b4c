"""Separators get half of the attention in the middle layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.studies.claims.claim import CORPUS, Claim, Finding, NotTestable
from headroles.studies.claims.means import SHARES, mean_beyond
from headroles.studies.claims.measured import Measured
from headroles.studies.inspection.token_reading import SEPARATORS, WEIGHTS

HALF = 0.5


def middle(n_layers: int) -> NDArray[np.intp]:
    """The layers that answer to layers 6 to 10 of 12, counted from 1."""
    depth = (np.arange(n_layers) + 0.5) / n_layers
    return np.flatnonzero((depth > 5 / 12) & (depth < 10 / 12))


def test(measured: Measured) -> Finding:
    """Test whether the share of separators in the weights of these layers is above one half."""
    shares = measured.share_of_tokens(SEPARATORS, WEIGHTS)
    if np.isnan(shares).all():
        raise NotTestable("no example has a separator")
    values = shares[:, middle(shares.shape[1])].mean(axis=1)
    return mean_beyond(values, HALF, measured.tokens[1], alpha=measured.alpha, bounds=SHARES)


CLAIM = Claim(
    id="separators-middle",
    source="Clark et al. 2019",
    statement="In layers 6 to 10 of 12 separators get more than half of the attention.",
    published="above 0.50",
    needs=CORPUS,
    effect="share of attention to separators in these layers",
    rule="Random: documents. Null: one half. Contradicted if the share is smaller. Other depths "
    "take the layers at the same relative height.",
    test=test,
)
