"""Heads with several roles sit in the middle layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.studies.claims.answers import KINDS, HeadAnswers
from headroles.studies.claims.claim import TREES, Claim, Finding
from headroles.studies.claims.kinds import correlations, trend
from headroles.studies.claims.measured import Measured


def by_layer(answers: HeadAnswers) -> NDArray[np.float64]:
    """(layers,): share of heads with two or more of the kinds of roles that were scored."""
    kinds = np.stack([answers.has(kind) for kind in KINDS if kind in answers.by_role])
    return np.asarray((kinds.sum(axis=0) > 1).mean(axis=1))


def nearness(n_layers: int) -> NDArray[np.float64]:
    """(layers,): how near each is to the middle, as minus the number of layers between."""
    return np.asarray(-np.abs(np.arange(n_layers) - (n_layers - 1) / 2))


def test(measured: Measured) -> Finding:
    """Does the share of heads with several roles rise towards the middle layer?"""
    shares = by_layer(measured.answers)
    near = nearness(len(shares))

    def statistic(answers: HeadAnswers) -> float:
        return float(correlations(by_layer(answers)[None], near)[0])

    interval = measured.interval(statistic, statistic(measured.answers))
    return trend(shares, near, alpha=measured.alpha, seed=measured.options.seed, interval=interval)


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
