"""Correction of p-values for the number of tests, missing ones left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from statsmodels.stats.multitest import multipletests

from headroles.errors import StatisticsError

CORRECTIONS = ("fdr_bh", "holm", "bonferroni", "fdr_by", "none")


def adjust_p_values(
    p_values: ArrayLike, method: str, families: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Adjusted p-values (tests,), each family corrected by itself; NaN where p is NaN.

    Missing p-values are not tests: they neither count nor spoil the others.

    Args:
        p_values: (tests,), NaN for tests that were not made.
        method: ``fdr_bh`` (Benjamini-Hochberg), ``fdr_by`` (Benjamini-Yekutieli), ``holm``,
            ``bonferroni``, or ``none``.
        families: (tests,) label of the family of each test; one family if None.

    Raises:
        StatisticsError: unknown method, or p-values outside [0, 1].

    >>> adjust_p_values([0.011, 0.02, 0.03, 0.04, 0.2], "holm").round(3).tolist()
    [0.055, 0.08, 0.09, 0.09, 0.2]
    """
    if method not in CORRECTIONS:
        raise StatisticsError(f"unknown correction {method!r}; use one of {', '.join(CORRECTIONS)}")
    p = np.asarray(p_values, dtype=np.float64)
    if ((p < 0) | (p > 1)).any():
        raise StatisticsError("p-values must lie between 0 and 1")
    labels = np.zeros(p.shape, dtype=np.int64) if families is None else np.asarray(families)
    adjusted = np.full(p.shape, np.nan)
    for label in np.unique(labels):
        tested = (labels == label) & ~np.isnan(p)
        if tested.any():
            adjusted[tested] = _adjust(p[tested], method)
    return adjusted


def _adjust(p: NDArray[np.float64], method: str) -> NDArray[np.float64]:
    if method == "none":
        return p
    adjusted: NDArray[np.float64] = multipletests(p, method=method)[1]
    return adjusted
