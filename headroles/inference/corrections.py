"""Several tests: corrections for their number, and partial conjunctions (u of k H1 hold)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.errors import StatisticsError

CORRECTIONS = ("fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none")


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
    if method == "holm":
        adjusted[tested] = _holm(adjusted[tested])
    elif method != "none" and tested.any():
        from statsmodels.stats.multitest import multipletests  # a second to import

        name = "simes-hochberg" if method == "hochberg" else method
        adjusted[tested] = multipletests(adjusted[tested], method=name)[1]
    return adjusted


def _holm(p_values: FloatArray) -> FloatArray:
    """Adjust as statsmodels does, which collects the garbage of the whole program at each call."""
    order = np.argsort(p_values)
    adjusted = np.empty_like(p_values)
    factors = np.arange(len(p_values), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1)
    return adjusted


# Partial conjunctions: the null is that H1 holds in fewer than u of k places, so that at least
# k - u + 1 of k null hypotheses are true (Benjamini and Heller 2008). Which ones is unknown; the
# k - u + 1 places with the least evidence stand for all.


def partial_conjunction(log_e: ArrayLike, at_least: int, independent: bool) -> FloatArray:
    """Return the log (tests,) of E against the null that fewer than ``at_least`` of k H1 hold.

    E is the product of the k - u + 1 smallest E if the places are independent, and otherwise their
    average, which holds under any dependence.

    Args:
        log_e: (k, tests), logarithms of E in each place; NaN if not tested, which counts as no
            evidence, E = 1.
        at_least: u, from 1 to k.
        independent: whether the data of the places are independent.

    >>> partial_conjunction(np.log([[8.0], [2.0], [4.0]]), 2, independent=False).round(3).tolist()
    [1.099]
    """
    values = np.asarray(log_e, dtype=np.float64)
    # places with most evidence may be the u - 1 true ones, so only the others count
    least = np.sort(np.nan_to_num(values, nan=0.0), axis=0)[: len(values) - at_least + 1]
    if independent:
        return np.asarray(least.sum(axis=0))
    return np.asarray(np.logaddexp.reduce(least, axis=0) - np.log(len(least)))


def partial_conjunction_of_p(p_values: ArrayLike, at_least: int) -> float:
    """Return the p-value of H1: ``at_least`` u of k single H1 hold, under any dependence.

    It is the u-th smallest of k p-values times k - u + 1 (Bonferroni; Benjamini and Heller 2008):
    the largest one if all H1 must hold, Bonferroni's if any must. Missing p-values are no evidence,
    p = 1.

    >>> partial_conjunction_of_p([0.01, 0.2, 0.02], 2)
    0.04
    """
    values = np.sort(np.nan_to_num(np.asarray(p_values, dtype=np.float64).ravel(), nan=1.0))
    return float(min(1.0, values[at_least - 1] * (len(values) - at_least + 1)))
