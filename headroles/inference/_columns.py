"""Checks and reductions that all procedures share: input, gaps, clusters, seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.arrays import FloatArray, IndexArray
from headroles.errors import StatisticsError
from headroles.memory import column_slices

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]

ALTERNATIVES: tuple[Alternative, ...] = get_args(Alternative)
OK, UNTESTABLE, DEGENERATE = "", "untestable", "degenerate"


def check_values(values: ArrayLike, name: str = "values") -> NDArray[np.floating]:
    """Return ``values`` as a real array (examples, tests) without infinities, NaN for missing."""
    data = np.asarray(values)
    if data.dtype.kind not in "fiub":
        raise StatisticsError(f"{name} have the type {data.dtype}; give real numbers")
    if data.ndim != 2:
        raise StatisticsError(f"{name} have {data.ndim} dimensions; give (examples, tests)")
    if any(np.isinf(data[:, columns]).any() for columns in column_slices(*data.shape)):
        raise StatisticsError(f"{name} include an infinity; remove it, or mark it as missing (NaN)")
    return data if data.dtype.kind == "f" else data.astype(np.float64)


def check_alternative(alternative: str) -> None:
    """Raise StatisticsError unless ``alternative`` is one of ALTERNATIVES."""
    if alternative not in ALTERNATIVES:
        raise StatisticsError(
            f"unknown alternative {alternative!r}; use one of {', '.join(ALTERNATIVES)}"
        )


def check_share(value: float, name: str) -> None:
    """Raise StatisticsError unless ``value`` lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise StatisticsError(f"{name} is {value}; give a number between 0 and 1")


def check_thresholds(threshold: ArrayLike, n_tests: int) -> FloatArray:
    """Return one finite threshold per test (tests,), from one number or one for each test."""
    try:
        given = np.asarray(threshold, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StatisticsError(f"the threshold is {threshold!r}; give numbers") from error
    if given.shape not in ((), (1,), (n_tests,)):
        raise StatisticsError(
            f"thresholds have shape {given.shape}; give one number, or one for each of the "
            f"{n_tests} tests"
        )
    if not np.isfinite(given).all():
        raise StatisticsError("a threshold is infinite or missing (NaN); give finite numbers")
    return np.broadcast_to(given, (n_tests,))


def check_clusters(clusters: ArrayLike | None, n_examples: int) -> IndexArray:
    """Number the clusters (examples,) from 0; without ``clusters``, each example is its own."""
    if clusters is None:
        return np.arange(n_examples)
    labels = np.asarray(clusters)
    if labels.shape != (n_examples,):
        raise StatisticsError(
            f"clusters have shape {labels.shape}; give ({n_examples},), one for each example"
        )
    if labels.dtype.kind not in "iubUS":
        raise StatisticsError(
            f"clusters have the type {labels.dtype}; label them with integers or strings"
        )
    return renumber(labels)


def renumber(labels: NDArray[np.generic]) -> IndexArray:
    """Replace labels (n,) by 0 to (number of distinct labels - 1)."""
    return np.asarray(np.unique(labels, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def cluster_sums(data: FloatArray, codes: IndexArray) -> FloatArray:
    """Sum the rows (examples, tests) of each cluster to (clusters, tests).

    ``codes`` must use every number from 0 on. A cluster of one gives its row unchanged.
    """
    # stable, so that terms are added in the order of examples: other orders have other last bits
    if (np.diff(codes) < 0).any():
        order = np.argsort(codes, kind="stable")
        data, codes = data[order], codes[order]
    sums: FloatArray = np.add.reduceat(data, np.flatnonzero(np.diff(codes, prepend=-1)), axis=0)
    return sums


def columns_with_the_same_gaps(
    data: NDArray[np.floating],
) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield (columns, rows with values) for every pattern of missing values."""
    packed = [
        np.packbits(~np.isnan(data[:, columns]), axis=0) for columns in column_slices(*data.shape)
    ]
    patterns, which = np.unique(np.concatenate(packed, axis=1), axis=1, return_inverse=True)
    which = which.reshape(-1)
    for pattern in range(patterns.shape[1]):
        columns = np.flatnonzero(which == pattern)
        yield columns, np.flatnonzero(~np.isnan(data[:, columns[0]]))


def resolution_of(data: NDArray[np.floating]) -> float:
    """Return the relative difference of this type's numbers below which it may be rounding."""
    return 8 * float(np.finfo(data.dtype).eps)
