"""Permutations within groups, and random exchanges of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import BoolArray, FloatArray, IntArray


def permute_within(
    values: ArrayLike,
    marked: ArrayLike,
    strata: ArrayLike,
    n_resamples: int = 9999,
    seed: int = 0,
) -> tuple[float, FloatArray]:
    """Compare marked units with the other units of their strata, and with permuted marks.

    The difference is the mean, over marked units, of the value less the mean of the stratum. Under
    H0 marks are exchangeable within each stratum. Strata in which all units or none are marked are
    ignored.

    Args:
        values: (units,), all finite.
        marked: (units,) whether each unit is marked.
        strata: (units,) integer label of each unit's stratum.
        n_resamples: number of permutations.
        seed: of the permutations.

    Returns:
        The difference, and those of permuted marks (n_resamples,); NaN if all strata are ignored.
    """
    numbers = np.asarray(values, dtype=np.float64)
    marks, labels = np.asarray(marked, dtype=bool), np.asarray(strata)
    rng = np.random.default_rng(seed)
    observed, drawn, n_marked = 0.0, np.zeros(n_resamples), 0
    for label in np.unique(labels):
        in_stratum = labels == label
        count = int(marks[in_stratum].sum())
        if count in (0, in_stratum.sum()):
            continue
        centred: FloatArray = numbers[in_stratum] - numbers[in_stratum].mean()
        observed += centred[marks[in_stratum]].sum()
        # the indices of the smallest of random numbers are a random subset
        order = rng.random((n_resamples, len(centred))).argpartition(count - 1, axis=1)[:, :count]
        drawn += centred[order].sum(axis=1)
        n_marked += count
    n = n_marked or np.nan
    return observed / n, drawn / n


_CHUNK = 256


@dataclass(frozen=True)
class Relabelled:
    """Likeness of the pairs that share each label (K,), and of B shuffles of labels.

    ``n_pairs`` (K,) are their numbers, ``mean`` (K,) their mean likeness, and ``drawn`` (B, K) that
    of each shuffle; both are NaN for labels that no pair shares or no shuffle changes.
    """

    n_pairs: IntArray
    mean: FloatArray
    drawn: FloatArray


def shuffle_labels(
    likeness: FloatArray, labels: BoolArray, *, n_resamples: int, seed: int
) -> Relabelled:
    """Compare the likeness of pairs of items with a label before and after shuffling the items.

    The mean likeness is over all pairs of items, within groups, that both have the label. Items are
    shuffled within their group, with all of their labels.

    Args:
        likeness: (G, N, N) of G groups of N items, symmetric; the diagonal is ignored.
        labels: (G, N, K), whether an item has a label.
        n_resamples: B, at least 1.
        seed: of the shuffles.
    """
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
    # a label of all items, or of one, stays where it is in every shuffle
    fixed = ((counts < 2) | (counts == labels.shape[1])).all(axis=0)
    pairs = np.where(fixed, np.nan, np.maximum(n_pairs, 1))
    return Relabelled(n_pairs.astype(np.int64), observed / pairs, np.concatenate(sums) / pairs)


def _sums(between: FloatArray, labels: FloatArray) -> FloatArray:
    """Sum the likeness of pairs that share each label (B, K), for labels (B, G, N, K)."""
    # labels of all shuffles at once; the halved sum counts each pair once
    near = np.einsum("gnm,bgmk->bgnk", between, labels, optimize=True)
    return np.asarray((near * labels).sum(axis=(1, 2)) / 2)


def _shuffled(labels: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Shuffle the items within each group (n, G, N, K)."""
    groups, items, _ = labels.shape
    order = rng.random((n, groups, items)).argsort(axis=2)
    return np.asarray(labels[np.arange(groups)[:, None], order])
