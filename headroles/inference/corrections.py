"""Corrections of p-values for the number of tests; missing p-values are ignored."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.errors import StatisticsError
from headroles.inference._columns import check_share

CORRECTIONS = (
    "fdr_bh",
    "holm",
    "bonferroni",
    "fdr_by",
    "hochberg",
    "fdr_tsbh",
    "none",
)

_STATSMODELS_NAMES = {"hochberg": "simes-hochberg"}


def adjust_p_values(
    p_values: ArrayLike, method: str, families: ArrayLike | None = None, alpha: float = 0.05
) -> FloatArray:
    """Adjust p-values (tests,), each family separately; NaN where p is NaN.

    Missing p-values do not count as tests. No adjusted p-value is below that of its own test.

    Args:
        p_values: (tests,), NaN for tests that were not made.
        method: ``fdr_bh`` (Benjamini and Hochberg 1995), ``fdr_by`` (Benjamini and Yekutieli
            2001, for any dependence), ``fdr_tsbh`` (two-stage Benjamini-Hochberg, which first
            estimates how many H0 are true: the procedure of Benjamini, Krieger and Yekutieli
            2006, for independent tests, with both stages at ``alpha`` where they take
            alpha / (1 + alpha)), ``holm`` (1979), ``hochberg`` (1988, for independent or
            positively dependent tests), ``bonferroni``, or ``none``.
        families: (tests,) label of the family of each test; one family if None.
        alpha: the level at which the adjusted p-values will be read. Only ``fdr_tsbh`` needs it,
            for its first stage: its adjusted p-values are valid at this level only.

    Raises:
        StatisticsError: unknown method, p-values outside [0, 1], or alpha outside (0, 1).

    >>> adjust_p_values([0.011, 0.02, 0.03, 0.04, 0.2], "holm").round(3).tolist()
    [0.055, 0.08, 0.09, 0.09, 0.2]
    """
    if method not in CORRECTIONS:
        raise StatisticsError(f"unknown correction {method!r}; use one of {', '.join(CORRECTIONS)}")
    check_share(alpha, "alpha")
    p = np.asarray(p_values, dtype=np.float64)
    if ((p < 0) | (p > 1)).any():
        raise StatisticsError("a p-value lies outside 0 to 1; give p-values")
    labels = np.zeros(p.shape, dtype=np.int64) if families is None else np.asarray(families)
    adjusted = np.full(p.shape, np.nan)
    for label in np.unique(labels):
        tested = (labels == label) & ~np.isnan(p)
        if tested.any():
            adjusted[tested] = _adjust(p[tested], method, alpha)
    # two-stage Benjamini-Hochberg may reject tests whose own p-value is above alpha if it rejects
    # most tests; the maximum prevents this
    return np.asarray(np.maximum(adjusted, p))


def _adjust(p: FloatArray, method: str, alpha: float) -> FloatArray:
    if method == "none":
        return p
    if method == "holm":  # statsmodels runs the garbage collector: slow for many small families
        return _holm(p)
    from statsmodels.stats.multitest import multipletests  # a second to import

    name = _STATSMODELS_NAMES.get(method, method)
    adjusted: FloatArray = multipletests(p, alpha=alpha, method=name)[1]
    return adjusted


def _holm(p: FloatArray) -> FloatArray:
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return adjusted
