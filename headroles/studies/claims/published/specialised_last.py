"""Specialised heads are the last to be pruned."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import TASK, Claim, Finding, NotTestable
from headroles.studies.claims.kinds import in_layers
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.specialised import specialised


def test(measured: Measured) -> Finding:
    """Are positional, syntactic and rare-word heads more important than others of their layers?"""
    task = measured.tasks[0]
    values = task.importances.mean(axis=0).reshape(task.shape)
    marked = specialised(measured)
    if not marked.any():
        raise NotTestable("no head is positional, syntactic or a rare-word head")
    ranks = np.argsort(np.argsort(values.ravel())).reshape(values.shape) / (values.size - 1)
    ranks[np.isnan(values)] = np.nan
    return in_layers(ranks, marked, seed=measured.options.seed)


CLAIM = Claim(
    id="specialised-last",
    source="Voita et al. 2019",
    statement="Positional, syntactic and rare-word heads are more important than the other heads.",
    published="in words and a figure only (all functions are there with 17 of 48 heads left)",
    needs=TASK,
    effect="rank of importance (0 to 1) of such heads less the mean of their layers",
    rule="Random: heads of the same layers. Null: such heads are like the others of their layers. "
    "Contradicted if they are less important.",
    test=test,
)
