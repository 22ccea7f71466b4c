"""McNemar's exact test: whether two classifiers are right equally often."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.inference._columns import FloatArray


def mcnemar_test(differences: ArrayLike) -> FloatArray:
    """Return two-sided p-values (tests,) of H0: as many differences are above 0 as below.

    Of the examples that only one classifier has right, half should belong to each (McNemar 1947),
    by the exact binomial test; without any such example p is 1.

    Args:
        differences: (examples, tests), 1 if only one is right, -1 if only the other is, else 0.

    >>> mcnemar_test([[1], [1], [1], [0]])
    array([0.25])
    """
    from scipy import stats  # half a second to import

    values = np.asarray(differences)
    gained, lost = (values > 0).sum(0), (values < 0).sum(0)
    fewer, total = np.minimum(gained, lost), gained + lost
    return np.asarray(np.minimum(1, 2 * stats.binom.cdf(fewer, total, 0.5)), dtype=np.float64)
