"""Derivatives of losses by gates -> the importance of heads, and the reliability of their order."""

from __future__ import annotations

import numpy as np
from scipy import stats

from headroles.arrays import FloatArray
from headroles.studies.importance.options import (
    ABSOLUTE,
    L2,
    SIGNED,
    TAYLOR,
    TOKEN,
    ImportanceOptions,
)
from headroles.tasks.outcomes import Derivatives

_SPLITS = 50


def values_of(derivatives: Derivatives, estimator: str) -> FloatArray:
    """Return (examples, layers * heads): the values whose means are importances."""
    if estimator == TOKEN:
        # The released code divides by tokens, but by examples in the last layer, in which only the
        # classifier token has a derivative.
        by_token = derivatives.by_token.astype(np.float64)
        by_token[:, :-1] /= derivatives.tokens.mean()
        return by_token.reshape(len(by_token), -1)
    by_gate = derivatives.by_gate.astype(np.float64).reshape(len(derivatives.by_gate), -1)
    made = {ABSOLUTE: np.abs, SIGNED: np.negative, TAYLOR: np.square}
    values: FloatArray = made[estimator](by_gate)
    return values


def normalise(importances: FloatArray, how: str) -> FloatArray:
    """Divide importances (layers, heads) by the Euclidean length of layers if ``how`` is l2.

    A layer of zeros stays as it is.
    """
    if how != L2:
        return importances
    lengths = np.sqrt(np.nansum(importances**2, axis=1, keepdims=True))
    return np.asarray(importances / np.where(lengths > 0, lengths, 1))


def reliability_of(values: FloatArray, options: ImportanceOptions) -> dict[str, float]:
    """Correlate the orders of heads in two halves, and extrapolate to all examples.

    ``values`` are (examples, layers, heads), NaN for removed heads. ``full`` and
    ``examples_needed`` follow from the formula of Spearman (1910) and Brown (1910).
    """
    is_present = ~np.isnan(values).any(axis=0)
    if is_present.sum() < 3 or len(values) < 4:
        return {"split_half": np.nan, "full": np.nan, "examples_needed": np.nan}
    rng = np.random.default_rng(0)
    found = []
    for _ in range(_SPLITS):
        halves = np.array_split(rng.permutation(len(values)), 2)
        one, other = (normalise(values[half].mean(0), options.normalisation) for half in halves)
        found.append(stats.spearmanr(one[is_present], other[is_present]).statistic)
    half = float(np.mean(found))
    full = 2 * half / (1 + half) if half > -1 else -1.0
    needed, wanted = np.inf, options.reliability
    if 0 < full < 1:
        needed = float(np.ceil(len(values) * wanted * (1 - full) / (full * (1 - wanted))))
    return {"split_half": half, "full": full, "examples_needed": needed}
