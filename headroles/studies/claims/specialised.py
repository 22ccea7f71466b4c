"""Heads with one of the functions of Voita et al. (2019)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.roles import is_contrast
from headroles.studies.claims.measured import Measured
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.testing.evidence import find_p_values
from headroles.testing.options import TestOptions

_THRESHOLDS = {"position:-1": 0.9, "position:+1": 0.9, "rare": 0.5}


def specialised(measured: Measured) -> NDArray[np.bool_]:
    """(layers, heads): positional (90 %), syntactic (10 points beyond offset), rare words (half).

    Each is shown by a test, corrected over all heads and functions.
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
