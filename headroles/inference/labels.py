"""Permutations of labels: tests whether items with the same label are more alike than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.errors import StatisticsError
from headroles.inference._columns import FloatArray

_CHUNK = 256


@dataclass(frozen=True)
class Relabelled:
    """Numbers of pairs that share each label (K,), their mean likeness, and that of shuffles (B,
    K).

    ``mean`` and ``drawn`` are NaN for labels that no pair shares, and for labels that no shuffle
    changes.
    """

    n_pairs: NDArray[np.int64]
    mean: FloatArray
    drawn: FloatArray


def shuffle_labels(
    likeness: FloatArray, labels: NDArray[np.bool_], *, n_resamples: int, seed: int
) -> Relabelled:
    """Compare the likeness of pairs of items with a label before and after shuffling the items.

    The mean likeness is over all pairs of items, within groups, that both have the label. Items are
    shuffled within their group, with all of their labels.

    Args:
        likeness: (G, N, N) of G groups of N items, symmetric; the diagonal is ignored.
        labels: (G, N, K), whether an item has a label.
        n_resamples: B, at least 1.
        seed: of the shuffles.

    Raises:
        StatisticsError: no shuffles, or arrays of different groups or items.
    """
    if n_resamples < 1:
        raise StatisticsError(f"the number of resamples is {n_resamples}; give at least 1")
    if labels.shape[:2] != likeness.shape[:2] or likeness.shape[1] != likeness.shape[2]:
        raise StatisticsError(
            f"likeness has shape {likeness.shape} and labels have shape {labels.shape}; give "
            "(groups, items, items) and (groups, items, labels)"
        )
    rng = np.random.default_rng(seed)
    between = likeness * (1 - np.eye(likeness.shape[1]))
    has = labels.astype(np.float64)
    counts = has.sum(axis=1)
    n_pairs = (counts * (counts - 1) / 2).sum(axis=0)
    observed = _sums(between, has[None])[0]
    sums = [
        _sums(between, _shuffled(has, min(_CHUNK, n_resamples - start), rng))
        for start in range(0, n_resamples, _CHUNK)
    ]
    fixed = ((counts < 2) | (counts == labels.shape[1])).all(axis=0)
    pairs = np.where(fixed, np.nan, np.maximum(n_pairs, 1))
    return Relabelled(n_pairs.astype(np.int64), observed / pairs, np.concatenate(sums) / pairs)


def _sums(between: FloatArray, labels: FloatArray) -> FloatArray:
    """Sum the likeness of pairs that share each label (B, K), for labels (B, G, N, K)."""
    near = np.einsum("gnm,bgmk->bgnk", between, labels, optimize=True)
    return np.asarray((near * labels).sum(axis=(1, 2)) / 2)


def _shuffled(labels: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Shuffle the items within each group (n, G, N, K)."""
    groups, items, _ = labels.shape
    order = rng.random((n, groups, items)).argsort(axis=2)
    return np.asarray(labels[np.arange(groups)[:, None], order])
