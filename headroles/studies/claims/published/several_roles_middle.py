"""Heads with several roles sit in the middle layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.studies.claims.answers import KINDS, HeadAnswers
from headroles.studies.claims.claim import TREES, Claim, Finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.role_trends import share_trend


def by_layer(answers: HeadAnswers) -> NDArray[np.float64]:
    """Share of heads (layers,) with two or more of the kinds of roles that were scored."""
    kinds = np.stack([answers.has(kind) for kind in KINDS if kind in answers.by_role])
    return np.asarray((kinds.sum(axis=0) > 1).mean(axis=1))


def nearness(n_layers: int) -> NDArray[np.float64]:
    """Nearness of each layer (layers,) to the middle: minus the number of layers between."""
    return np.asarray(-np.abs(np.arange(n_layers) - (n_layers - 1) / 2))


def test(measured: Measured) -> Finding:
    """Test whether the share of heads with several roles rises towards the middle layer."""
    return share_trend(measured, by_layer, nearness(measured.answers.shape[0]))


CLAIM = Claim(
    id="several-roles-middle",
    source="Pande et al. 2021, README",
    statement="Heads with more than one of the roles local, syntactic, delimiter and block sit in "
    "the middle layers.",
    published="in words only",
    needs=TREES,
    effect="correlation of a layer's share of such heads with its nearness to the middle",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if such "
    "heads sit at the ends.",
    test=test,
)
