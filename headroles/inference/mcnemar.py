"""McNemar's exact test: whether two ways to answer are right equally often."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mcnemar_test(right: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """Two-sided p-values (tests,) of H0: answers are right as often as those of the reference.

    Of the examples that only one of both has right, half should be those of either (McNemar 1947),
    by the exact binomial test; without any such example p is 1.

    Args:
        right: (examples, tests) whether each answer is right.
        reference: (examples, 1) or (examples, tests), the same of what they are compared with.

    >>> mcnemar_test([[True], [True], [True], [False]], [[False], [False], [False], [False]])
    array([0.25])
    """
    from scipy import stats  # half a second to import

    one, other = np.broadcast_arrays(np.asarray(right, bool), np.asarray(reference, bool))
    gained, lost = (one & ~other).sum(0), (other & ~one).sum(0)
    fewer, total = np.minimum(gained, lost), gained + lost
    return np.asarray(np.minimum(1, 2 * stats.binom.cdf(fewer, total, 0.5)), dtype=np.float64)
