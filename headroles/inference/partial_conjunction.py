"""Partial conjunctions: evidence that a hypothesis holds in at least u of k places.

The null hypothesis is that it holds in fewer than u, so that at least k - u + 1 of k null
hypotheses are true (Benjamini and Heller 2008). Which ones is unknown; the k - u + 1 places with
the least evidence stand for all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.errors import StatisticsError


def partial_conjunction(log_e: ArrayLike, at_least: int, independent: bool) -> FloatArray:
    """Return the log (tests,) of E against the null that fewer than ``at_least`` of k H1 hold.

    E is the product of the k - u + 1 smallest E if the places are independent, and otherwise their
    average, which holds under any dependence.

    Args:
        log_e: (k, tests), logarithms of E in each place; NaN if not tested, which counts as no
            evidence, E = 1.
        at_least: u, from 1 to k.
        independent: whether the data of the places are independent.

    Raises:
        StatisticsError: ``log_e`` is not two-dimensional, or ``at_least`` not from 1 to k.

    >>> partial_conjunction(np.log([[8.0], [2.0], [4.0]]), 2, independent=False).round(3).tolist()
    [1.099]
    """
    values = np.asarray(log_e, dtype=np.float64)
    if values.ndim != 2:
        raise StatisticsError(f"log_e has {values.ndim} dimensions; give (places, tests)")
    n_places = len(values)
    if not 1 <= at_least <= n_places:
        raise StatisticsError(f"at_least is {at_least}; give a number from 1 to {n_places}")
    # places with most evidence may be the u - 1 true ones, so only the others count
    least = np.sort(np.nan_to_num(values, nan=0.0), axis=0)[: n_places - at_least + 1]
    if independent:
        return np.asarray(least.sum(axis=0))
    return np.asarray(np.logaddexp.reduce(least, axis=0) - np.log(len(least)))


def partial_conjunction_of_p(p_values: ArrayLike, at_least: int) -> float:
    """Return the p-value of H1: ``at_least`` u of k single H1 hold, under any dependence.

    It is the u-th smallest of k p-values times k - u + 1 (Bonferroni; Benjamini and Heller 2008):
    the largest one if all H1 must hold, Bonferroni's if any must. Missing p-values are no evidence,
    p = 1.

    Raises:
        StatisticsError: ``at_least`` is not from 1 to k.

    >>> partial_conjunction_of_p([0.01, 0.2, 0.02], 2)
    0.04
    """
    values = np.sort(np.nan_to_num(np.asarray(p_values, dtype=np.float64).ravel(), nan=1.0))
    if not 1 <= at_least <= len(values):
        raise StatisticsError(f"at_least is {at_least}; give a number from 1 to {len(values)}")
    return float(min(1.0, values[at_least - 1] * (len(values) - at_least + 1)))
