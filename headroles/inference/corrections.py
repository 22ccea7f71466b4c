"""Corrections of p-values for the number of tests; missing p-values are ignored."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.errors import StatisticsError

CORRECTIONS = ("fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none")

_STATSMODELS_NAMES = {"hochberg": "simes-hochberg"}


def adjust_p_values(p_values: ArrayLike, method: str) -> FloatArray:
    """Adjust the p-values (tests,) of one family; NaN where p is NaN.

    Missing p-values do not count as tests. No adjusted p-value is below that of its own test.

    Args:
        p_values: (tests,), NaN for tests that were not made.
        method: ``fdr_bh`` (Benjamini and Hochberg 1995), ``fdr_by`` (Benjamini and Yekutieli
            2001, for any dependence), ``holm`` (1979), ``hochberg`` (1988, for independent or
            positively dependent tests), ``bonferroni``, or ``none``.

    Raises:
        StatisticsError: unknown method, or p-values outside [0, 1].

    >>> adjust_p_values([0.011, 0.02, 0.03, 0.04, 0.2], "holm").round(3).tolist()
    [0.055, 0.08, 0.09, 0.09, 0.2]
    """
    if method not in CORRECTIONS:
        raise StatisticsError(f"unknown correction {method!r}; use one of {', '.join(CORRECTIONS)}")
    adjusted = np.array(p_values, dtype=np.float64)
    if ((adjusted < 0) | (adjusted > 1)).any():
        raise StatisticsError("a p-value lies outside 0 to 1; give p-values")
    tested = ~np.isnan(adjusted)
    if method != "none" and tested.any():
        from statsmodels.stats.multitest import multipletests  # a second to import

        name = _STATSMODELS_NAMES.get(method, method)
        adjusted[tested] = multipletests(adjusted[tested], method=name)[1]
    return adjusted
