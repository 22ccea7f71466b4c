"""Fine-tuning changes the last layers most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.scoring.scores import HeadScores
from headroles.studies.claims.claim import SECOND_MODEL, Claim, Finding, NotTestable
from headroles.studies.claims.means import jackknifed, mean_of_known
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import correlations, trend
from headroles.studies.heads import HeadColumns


def movements(before: HeadScores, after: HeadScores) -> NDArray[np.float64]:
    """How far the scores of a layer move (examples, layers), in units of each role's mean."""
    columns = HeadColumns.of(before)
    moved = np.abs(columns.values(after).astype(np.float64) - columns.values(before))
    shape = (len(moved), len(columns.roles), columns.n_layers, columns.n_heads)
    by_role = mean_of_known(moved.reshape(shape), 3)
    usual = mean_of_known(by_role, (0, 2))[None, :, None]
    return mean_of_known(by_role / np.where(usual > 0, usual, 1), 1)


def test(measured: Measured) -> Finding:
    """Test whether scores of examples move farther in later layers."""
    moved = movements(measured.scored.scores, measured.later.scored.scores)
    if not np.nansum(moved):
        raise NotTestable("no score differs between both models")
    places = np.arange(moved.shape[1], dtype=np.float64)

    def statistic(chosen: NDArray[np.bool_]) -> float:
        return float(correlations(mean_of_known(moved[chosen], 0)[None], places)[0])

    whole = np.ones(len(moved), dtype=bool)
    without = [statistic(chosen) for chosen in measured.scored.groups()]
    low, high, _ = jackknifed(statistic(whole), without, measured.alpha)
    return trend(
        mean_of_known(moved, 0),
        places,
        alpha=measured.alpha,
        seed=measured.options.seed,
        interval=(low, high),
    )


CLAIM = Claim(
    id="last-layers-move",
    source="Pande et al. 2021, README",
    statement="Fine-tuning changes what heads of later layers do more than those of early layers.",
    published="in words only",
    needs=SECOND_MODEL,
    effect="correlation of a layer's number with how far its scores move",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if early "
    "layers move more.",
    test=test,
)
