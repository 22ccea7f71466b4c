"""Specialised heads are the last to be pruned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.roles import is_contrast
from headroles.studies.claims.claim import TASK, Claim, Finding, NotTestable
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import in_layers
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.testing.evidence import find_p_values
from headroles.testing.options import TestOptions

_THRESHOLDS = {"position:-1": 0.9, "position:+1": 0.9, "rare": 0.5}


def specialised(measured: Measured) -> NDArray[np.bool_]:
    """Heads (layers, heads) with a function of Voita et al. (2019).

    Their first choice is at one place (90 % of tokens), at the other end of an arc (10 points more
    often than the best offset), or at the rarest word (half of the words), by tests that are
    corrected over all heads and functions.
    """
    scores = measured.hits
    columns = HeadColumns.of(scores)
    options = measured.options.part(TestOptions)
    tested = hypotheses_of(scores, columns, options)
    own = [_THRESHOLDS.get(role, np.nan) for role in columns.ids]
    limits = columns.by_role(own)
    tested = tested.against(np.where(np.isnan(limits), tested.threshold, limits))
    shown = find_p_values(tested, options, "greater").shows(options.alpha)
    counts = [not is_contrast(role) for role in columns.ids]
    has = shown.reshape(len(columns.roles), columns.n_layers, columns.n_heads)[counts]
    return np.asarray(has.any(axis=0))


def test(measured: Measured) -> Finding:
    """Test whether specialised heads are more important than others of their layers."""
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
